package machine

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Resident returns the bytes of memory that the process has now. Only Linux
// tells.
func Resident() (int64, error) { return status("VmRSS") }

// Peak returns the most bytes of memory that the process has had since its start
// or the last ResetPeak.
func Peak() (int64, error) { return status("VmHWM") }

// ResetPeak makes what the process has now its peak.
func ResetPeak() error {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return fmt.Errorf("machine: reset peak memory: %w", err)
	}
	return nil
}

// status reads one field of the process's status.
func status(field string) (int64, error) {
	const file = "/proc/self/status"
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("machine: read %s: %w", field, err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("machine: read %s: %w", field, err)
			}
			return kb << 10, nil
		}
	}
	return 0, fmt.Errorf("machine: read %s: not in %s", field, file)
}
