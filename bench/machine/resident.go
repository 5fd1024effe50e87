package machine

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Resident returns the bytes of memory that the process has now. Only Linux
// tells.
func Resident() (int64, error) { return field("status", "VmRSS") }

// Peak returns the most bytes of memory that the process has had since its start
// or the last ResetPeak.
func Peak() (int64, error) { return field("status", "VmHWM") }

// LargePages returns the bytes of it that lie on transparent large pages.
func LargePages() (int64, error) { return field("smaps_rollup", "AnonHugePages") }

// ResetPeak makes what the process has now its peak.
func ResetPeak() error {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return fmt.Errorf("machine: reset peak memory: %w", err)
	}
	return nil
}

// field reads one field of a file about the process, in bytes.
func field(file, name string) (int64, error) {
	text, err := os.ReadFile("/proc/self/" + file)
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
	return 0, fmt.Errorf("machine: read %s: not in %s", name, file)
}
