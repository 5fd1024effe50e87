package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/ringcache/ringcache/bench/store"
)

// machine says where figures come from.
type machine struct {
	CPU      string
	Cores    int
	OS       string
	Go       string
	Date     string
	Versions map[string]string // of the stores
}

func thisMachine() machine {
	return machine{
		CPU:      cpuModel(),
		Cores:    runtime.NumCPU(),
		OS:       osVersion(),
		Go:       runtime.Version(),
		Date:     time.Now().UTC().Format(time.DateOnly),
		Versions: versions(),
	}
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
	return strings.TrimSpace(runtime.GOOS + "/" + runtime.GOARCH + " " + string(kernel))
}

func versions() map[string]string {
	found := map[string]string{}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return found
	}
	for _, dep := range build.Deps {
		for _, info := range store.All {
			if info.Module == dep.Path && dep.Replace == nil {
				found[info.Name] = dep.Version
			}
		}
	}
	return found
}
