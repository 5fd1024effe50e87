// Package machine says where figures come from, and reads what the operating
// system knows about this process.
package machine

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/ringcache/ringcache/bench/store"
)

// Machine is the place and time of a measurement.
type Machine struct {
	CPU      string
	Cores    int
	OS       string
	Go       string
	Date     string
	Versions map[string]string // of the stores
}

// This returns the machine that the process runs on.
func This() Machine {
	return Machine{
		CPU:      cpuModel(),
		Cores:    runtime.NumCPU(),
		OS:       osVersion(),
		Go:       runtime.Version(),
		Date:     time.Now().UTC().Format(time.DateOnly),
		Versions: versions(),
	}
}

// Header returns the lines that begin a document of figures of the named stores.
func (m Machine) Header(command string, stores []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- CPU: %s, %d cores\n- OS: %s\n- Go: %s\n- Date: %s\n- Command: `%s`\n", m.CPU,
		m.Cores, m.OS, m.Go, m.Date, command)
	var versions []string
	for _, name := range stores {
		if v := m.Versions[name]; v != "" {
			versions = append(versions, name+" "+v)
		}
	}
	if len(versions) > 0 {
		fmt.Fprintf(&b, "- Versions: %s\n", strings.Join(versions, ", "))
	}
	return b.String()
}

// Short names the machine in a few words: what else is to be known stands in Header.
func (m Machine) Short() string { return fmt.Sprintf("%d cores, %s", m.Cores, m.Date) }

// Long is Short with the processor, the system and the version of Go.
func (m Machine) Long() string {
	return fmt.Sprintf("%d cores of %s, %s, %s, %s", m.Cores, m.CPU, m.OS, m.Go, m.Date)
}

func cpuModel() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.Trim(name, "\t :\n")
		}
	}
	return "unknown " + runtime.GOARCH
}

func osVersion() string {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	version, _, _ := strings.Cut(strings.TrimSpace(string(kernel)), "-") // without the build
	return strings.TrimSpace(runtime.GOOS + "/" + runtime.GOARCH + " " + version)
}

func versions() map[string]string {
	found := map[string]string{}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return found
	}
	for _, dep := range build.Deps {
		for _, info := range store.Known() {
			if info.Module == dep.Path && dep.Replace == nil {
				found[info.Name] = dep.Version
			}
		}
	}
	return found
}
