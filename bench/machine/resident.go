package machine

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// Resident returns the bytes of memory that the process has now. Only Linux
// tells.
func Resident() (int64, error) { return field("VmRSS") }

// Live returns Resident without garbage and free pages; 0 where the system does not tell.
func Live() int64 {
	debug.FreeOSMemory() // collects first
	n, _ := Resident()
	return n
}

// Peak returns the most bytes of memory that the process has had since its start
// or the last ResetPeak.
func Peak() (int64, error) { return field("VmHWM") }

// ResetPeak makes what the process has now its peak.
func ResetPeak() error {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return fmt.Errorf("machine: reset peak memory: %w", err)
	}
	return nil
}

// field reads one field of the process's status, in bytes.
func field(name string) (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("machine: read %s: %w", name, err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("machine: read %s: %w", name, err)
			}
			return kb << 10, nil
		}
	}
	return 0, fmt.Errorf("machine: read %s: not in the status", name)
}
