package machine

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// Resident returns the bytes of memory that the process has now. Only Linux tells.
func Resident() (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("machine: read resident memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("machine: read resident memory: %w", err)
			}
			return kb << 10, nil
		}
	}
	return 0, errors.New("machine: read resident memory: not in the status")
}

// Live returns Resident without garbage and free pages; 0 where the system does not tell.
func Live() int64 {
	debug.FreeOSMemory() // collects first
	n, _ := Resident()
	return n
}
