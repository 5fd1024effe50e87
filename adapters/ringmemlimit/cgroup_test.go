package ringmemlimit

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Files of the same form as the kernel's, in a folder of the test.

const (
	meminfo = "MemTotal:       1000000 kB\nMemFree:          100 kB\nMemAvailable:    400000 kB\n"
	total   = 1_000_000 << 10
	mountV2 = "31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n"
)

// mountV1 is a table of mounts, in which the hierarchy of the memory controller has that root.
func mountV1(root string) string {
	return "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n" +
		"32 31 0:29 / /sys/fs/cgroup/cpu rw shared:1 - cgroup cgroup rw,cpu\n" +
		"35 31 0:32 " + root + " /sys/fs/cgroup/memory rw,relatime shared:2 master:1 - " +
		"cgroup cgroup rw,memory\n" +
		"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
}

// mountElsewhere is another mount of the hierarchy of version 2, with that root.
func mountElsewhere(root string) string {
	return "30 23 0:28 " + root + " /sys/fs/cgroup/b rw,relatime - cgroup2 cgroup2 rw\n"
}

// files are texts by their names.
type files map[string]string

// and adds a cgroup of version 2, or of version 1.
func (f files) v2(dir, limit, high string, current, inactive, active int) files {
	return f.and(dir, files{
		"memory.max": limit + "\n", "memory.high": high + "\n",
		"memory.current": strconv.Itoa(current) + "\n",
		"memory.stat": "anon 5\nfile 9\ninactive_file " + strconv.Itoa(inactive) +
			"\nactive_file " + strconv.Itoa(active) + "\nworkingset_refault_file 7\n",
	})
}

func (f files) v1(dir string, limit string, usage, inactive, active int) files {
	return f.and(dir, files{
		"memory.limit_in_bytes": limit + "\n",
		"memory.usage_in_bytes": strconv.Itoa(usage) + "\n",
		"memory.stat": "inactive_file 1\nactive_file 1\ntotal_inactive_file " +
			strconv.Itoa(inactive) + "\ntotal_active_file " + strconv.Itoa(active) + "\n",
	})
}

func (f files) and(dir string, more files) files {
	all := maps.Clone(f)
	for name, text := range more {
		all["sys/fs/cgroup"+dir+"/"+name] = text
	}
	return all
}

// with is the process's cgroup, and the mounts.
func with(cgroup, mounts string) files {
	return files{"proc/self/cgroup": cgroup, "proc/self/mountinfo": mounts, "proc/meminfo": meminfo}
}

func (f files) write(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range f {
		name = filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	return root
}

const unlimitedV1 = "9223372036854771712"

func TestHost_Levels(t *testing.T) {
	const pod = "/kubepods/pod1"
	machine := []level{{total, total - 400_000<<10}}
	tests := map[string]struct {
		files files
		want  []level
	}{
		"version 2, in a container": {
			with("0::/\n", mountV2).v2("", "5000", "max", 900, 100, 50), []level{{5000, 750}}},
		"version 2, the limit of the pod, too": {
			with("0::"+pod+"/c\n", mountV2).v2(pod+"/c", "5000", "max", 900, 100, 50).
				v2(pod, "6000", "max", 4000, 0, 0).and("/kubepods", files{"cgroup.procs": ""}),
			[]level{{5000, 750}, {6000, 4000}}},
		"version 2, only the pod has a limit": {
			with("0::"+pod+"/c\n", mountV2).v2(pod+"/c", "max", "max", 900, 100, 50).
				v2(pod, "6000", "max", 4000, 0, 0), []level{{6000, 4000}}},
		"version 2, where the kernel slows the process down": {
			with("0::/\n", mountV2).v2("", "5000", "4000", 900, 100, 50), []level{{4000, 750}}},
		"version 2, no limit": {with("0::/a\n", mountV2).v2("/a", "max", "max", 9, 0, 0), machine},
		"version 2, a limit above the machine's memory": {
			with("0::/a\n", mountV2).v2("/a", "99999999999", "max", 9, 0, 0), machine},
		"version 1": {
			with("9:name=systemd:/\n4:memory:/a/b\n0::/\n", mountV1("/")).
				v1("/memory/a/b", "5000", 900, 100, 50).v1("/memory/a", unlimitedV1, 1000, 100, 50).
				v1("/memory", unlimitedV1, 9999, 0, 0), []level{{5000, 750}}},
		"version 1, with another controller": {
			with("4:cpu,memory:/a\n", mountV1("/")).v1("/memory/a", "5000", 900, 100, 50),
			[]level{{5000, 750}}},
		"version 1, a container whose mount begins with its cgroup": {
			with("4:memory:/docker/x\n", mountV1("/docker/x")).v1("/memory", "5000", 900, 100, 50),
			[]level{{5000, 750}}},
		"version 1, a container that sees only its own files": {
			with("4:memory:/docker/x\n", mountV1("/")).v1("/memory", "5000", 900, 100, 50),
			[]level{{5000, 750}}},
		"version 1, no limit": {
			with("4:memory:/a\n", mountV1("/")).v1("/memory/a", unlimitedV1, 9, 0, 0), machine},
		"more pages of files than use": {
			with("0::/\n", mountV2).v2("", "5000", "max", 900, 800, 200), []level{{5000, 0}}},
		"version 2, after a mount of another cgroup": {
			with("0::/a\n", mountElsewhere("/b")+mountV2).v2("/a", "5000", "max", 900, 100, 50).
				v2("/b", "4000", "max", 9, 0, 0), []level{{5000, 750}}},
		"version 2, after a mount of the host's": {
			with("0::/\n", mountElsewhere("/../..")+mountV2).v2("", "5000", "max", 900, 100, 50).
				and("/b", files{"cgroup.procs": ""}), []level{{5000, 750}}},
		"no cgroup":       {with("", mountV2), machine},
		"no mount":        {with("0::/\n", ""), machine},
		"no such mount":   {with("4:memory:/a\n", mountV2), machine},
		"no files at all": {with("0::/a\n", mountV2), machine},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h, err := newHost(test.files.write(t))
			require.NoError(t, err)
			got, err := h.levels()
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

// The files are read each time.
func TestHost_LimitThatChanges(t *testing.T) {
	root := with("0::/\n", mountV2).v2("", "5000", "max", 900, 100, 50).write(t)
	h, err := newHost(root)
	require.NoError(t, err)
	for _, limit := range []int64{5000, 4000, 8000} {
		name := filepath.Join(root, "sys", "fs", "cgroup", "memory.max")
		require.NoError(t, os.WriteFile(name, strconv.AppendInt(nil, limit, 10), 0o644))
		got, err := h.levels()
		require.NoError(t, err)
		require.Equal(t, []level{{limit, 750}}, got)
	}
}

// A kernel without cgroups, such as that of gVisor, does not have the file.
func TestHost_NoCgroups(t *testing.T) {
	f := with("", mountV2)
	delete(f, "proc/self/cgroup")
	h, err := newHost(f.write(t))
	require.NoError(t, err)
	got, err := h.levels()
	require.NoError(t, err)
	require.Equal(t, []level{{total, total - 400_000<<10}}, got)
}

func TestHost_Errors(t *testing.T) {
	_, err := newHost(t.TempDir())
	require.ErrorIs(t, err, fs.ErrNotExist)

	h, err := newHost(with("0::/\n", mountV2).v2("", "many", "max", 900, 100, 50).write(t))
	require.NoError(t, err)
	_, err = h.levels()
	require.ErrorContains(t, err, "memory.max")
	require.ErrorIs(t, err, strconv.ErrSyntax)

	f := with("0::/\n", mountV2)
	f["proc/meminfo"] = "nothing\n"
	h, err = newHost(f.write(t))
	require.NoError(t, err)
	_, err = h.levels()
	require.ErrorContains(t, err, "no MemTotal")
}

// A name of a mount may have spaces.
func TestUnescape(t *testing.T) {
	require.Equal(t, `/a b\040`, unescape(`/a\040b\134040`))
}
