package ringmemlimit

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// level is a cgroup with a limit, or the machine: the limit, and the memory in use that the kernel
// cannot drop, both in bytes.
type level struct{ limit, used int64 }

// host reads limits and memory use from the kernel's files. Each level of the hierarchy of cgroups
// has its own limit, and a process is killed if it exceeds any of them.
type host struct {
	root string   // of the file system; not empty in tests
	v2   bool     // the version of the hierarchy
	dirs []string // of the process's cgroup and its visible parents
}

// newHost finds the cgroups of the process, if there are any.
func newHost(root string) (*host, error) {
	h := &host{root: root}
	own, err := h.read("/proc/self/cgroup")
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without cgroups, there is no such file
		return nil, err
	}
	mounts, err := h.read("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var within string // the process's cgroup in its hierarchy
	for line := range strings.Lines(own) {
		// 4:memory:/path, or 0::/path for version 2
		number, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, at, _ := strings.Cut(rest, ":")
		switch {
		case has(controllers, "memory"): // the controller is in version 1, so not in version 2
			h.v2, within = false, at
			h.find(mounts, within)
			return h, nil
		case number == "0" && controllers == "":
			h.v2, within = true, at
		}
	}
	if within != "" {
		h.find(mounts, within)
	}
	return h, nil
}

// find sets dirs to those of the cgroup and its parents, by the table of mounts.
func (h *host) find(mounts, within string) {
	var other string // the first mount without the cgroup
	for line := range strings.Lines(mounts) {
		// 36 35 98:0 ROOT POINT rw,noatime [optional ...] - TYPE source SUPER
		fields := strings.Fields(line)
		dash := len(fields) - 4
		if dash < 6 || fields[dash] != "-" {
			continue
		}
		root, point, kind, super := fields[3], fields[4], fields[dash+1], fields[dash+3]
		if h.v2 && kind != "cgroup2" || !h.v2 && (kind != "cgroup" || !has(super, "memory")) {
			continue
		}
		point = unescape(point)
		below, ok := strings.CutPrefix(within, strings.TrimSuffix(unescape(root), "/"))
		dir := path.Join(point, path.Clean("/"+below))
		if _, err := os.Stat(h.name(dir)); !ok || err != nil {
			other = cmp.Or(other, point) // a later mount may have it
			continue
		}
		h.dirs = append(h.dirs, dir)
		for dir != point && dir != "/" {
			dir = path.Dir(dir)
			h.dirs = append(h.dirs, dir)
		}
		return
	}
	if other != "" { // a container may see only the files of its cgroup, as a mount
		h.dirs = append(h.dirs, other)
	}
}

// has reports whether a comma-separated list contains the name.
func has(list, name string) bool { return strings.Contains(","+list+",", ","+name+",") }

// unescape decodes the name of a mount.
func unescape(name string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(name)
}

// levels returns the levels with a limit below the machine's memory, or the machine if there are
// none.
func (h *host) levels() ([]level, error) {
	machine, err := h.machine()
	if err != nil {
		return nil, err
	}
	var all []level
	for _, dir := range h.dirs {
		l, err := h.level(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the root of a hierarchy, or a level without the controller
		}
		if err != nil {
			return nil, err
		}
		if l.limit < machine.limit {
			all = append(all, l)
		}
	}
	if len(all) == 0 {
		all = append(all, machine)
	}
	return all, nil
}

// level reads the level of a directory. Without a limit, its limit is math.MaxInt64.
func (h *host) level(dir string) (l level, err error) {
	limits, use := []string{"memory.max", "memory.high"}, "memory.current"
	inactive, active := "inactive_file", "active_file"
	if !h.v2 {
		limits, use = []string{"memory.limit_in_bytes"}, "memory.usage_in_bytes"
		inactive, active = "total_"+inactive, "total_"+active // with child cgroups
	}
	l.limit = math.MaxInt64
	for _, name := range limits {
		n, err := h.number(path.Join(dir, name))
		if err != nil {
			return l, err
		}
		l.limit = min(l.limit, n)
	}
	if l.used, err = h.number(path.Join(dir, use)); err != nil {
		return l, err
	}
	stat, err := h.fields(path.Join(dir, "memory.stat"), "")
	if err != nil {
		return l, err
	}
	// The kernel drops pages of files, even active ones, before it kills a process. Files in tmpfs
	// are not included.
	l.used = max(0, l.used-stat[inactive]-stat[active])
	return l, nil
}

// machine reads the level of the machine.
func (h *host) machine() (level, error) {
	const name = "/proc/meminfo"
	info, err := h.fields(name, ":")
	total := info["MemTotal"] << 10
	if err == nil && total == 0 {
		err = fmt.Errorf("%s has no MemTotal", name)
	}
	return level{total, total - info["MemAvailable"]<<10}, err
}

// fields reads a file with a name, followed by end, and a number in each line.
func (h *host) fields(name, end string) (map[string]int64, error) {
	text, err := h.read(name)
	if err != nil {
		return nil, err
	}
	all := map[string]int64{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 1 {
			if n, err := strconv.ParseInt(words[1], 10, 64); err == nil {
				all[strings.TrimSuffix(words[0], end)] = n
			}
		}
	}
	return all, nil
}

// number reads a file that contains a number, or "max", which means math.MaxInt64.
func (h *host) number(name string) (int64, error) {
	text, err := h.read(name)
	text = strings.TrimSpace(text)
	if err != nil || text == "max" {
		return math.MaxInt64, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

func (h *host) read(name string) (string, error) {
	b, err := os.ReadFile(h.name(name))
	return string(b), err
}

// name returns the path of a file for the operating system.
func (h *host) name(name string) string { return filepath.Join(h.root, filepath.FromSlash(name)) }
