package ringmemlimit

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These tests run a program in a cgroup of its own, where the system lets them make one.

// newCgroup makes one with a limit.
func newCgroup(t *testing.T, limit int) (dir string) {
	t.Helper()
	if raceDetector {
		t.Skip("with the race detector the cache is on the Go heap")
	}
	h, err := newHost("")
	require.NoError(t, err)
	if len(h.dirs) == 0 {
		t.Skip("the process is in no memory cgroup")
	}
	dir, err = os.MkdirTemp(h.dirs[len(h.dirs)-1], "ringmemlimit")
	if err != nil {
		t.Skipf("no cgroup can be made: %v", err)
	}
	t.Cleanup(func() {
		removed := func() bool { return os.Remove(dir) == nil }
		assert.Eventually(t, removed, 10*time.Second, 10*time.Millisecond)
	})
	write := func(name string, n int) error {
		return os.WriteFile(filepath.Join(dir, name), []byte(strconv.Itoa(n)), 0o644)
	}
	name, swap, noSwap := "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", limit
	if h.v2 {
		name, swap, noSwap = "memory.max", "memory.swap.max", 0
	}
	if err := write(name, limit); err != nil {
		t.Skipf("the cgroup can have no limit: %v", err)
	}
	if err := write(swap, noSwap); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Skipf("the cgroup may swap: %v", err)
	}
	return dir
}

// runChild runs this program in a cgroup.
func runChild(t *testing.T, dir string, environment ...string) (output string, err error) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), program)
	command.Env = append(append(os.Environ(), childVariable+"="+dir), environment...)
	out, err := command.CombinedOutput()
	return string(out), err
}

// kills returns how many processes of a cgroup were killed for memory.
func kills(t *testing.T, dir string) int {
	t.Helper()
	for _, name := range []string{"memory.events", "memory.oom_control"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
				kills, err := strconv.Atoi(strings.TrimSpace(n))
				require.NoError(t, err)
				return kills
			}
		}
	}
	require.Fail(t, "no count of kills")
	return 0
}

// The heap swings by 300 MB under a limit of 1 GB, and the cache takes all that is left. The child
// checks each reading itself: see record.check.
func TestController_HeapSwingsInACgroup(t *testing.T) {
	dir := newCgroup(t, childLimit)
	out, err := runChild(t, dir)
	require.NoError(t, err, out)
	require.Zero(t, kills(t, dir))
	require.GreaterOrEqual(t, strings.Count(out, "cache resized"), 3*swings, out)
}

// A cache that has the same share of the limit, and keeps it.
func TestController_WithoutItTheSameProgramIsKilled(t *testing.T) {
	dir := newCgroup(t, childLimit)
	share := defaultShare * childLimit
	out, err := runChild(t, dir, fixedVariable+"="+strconv.Itoa(int(share)))
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, out)
	require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal(), out)
	require.Equal(t, 1, kills(t, dir))
}
