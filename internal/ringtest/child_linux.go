package ringtest

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/chunk"
)

const childEnv = "RINGCACHE_TEST_CHILD"

// InChild runs the calling test again in its own process and reports false
// when that is done, and true within that process. Memory can be measured and
// limited there without the rest of the tests.
func InChild(t *testing.T) bool {
	t.Helper()
	if !chunk.OffHeap {
		t.Skip("this build keeps the chunks on the Go heap: the process's memory says little")
	}
	if os.Getenv(childEnv) == t.Name() {
		return true
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	pattern := "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
	// With cgo, the C library would reserve 8 MB of addresses for the stack of each thread, of which
	// the Go runtime starts another at any time, and 64 MB for each thread that allocates.
	cmd := exec.Command("/bin/sh", "-c", `ulimit -S -s 512 && exec "$0" "$@"`,
		exe, "-test.run="+pattern, "-test.v", "-test.count=1")
	// The figures are those of few threads, however many processors the machine has.
	cmd.Env = append(os.Environ(), childEnv+"="+t.Name(), "MALLOC_ARENA_MAX=1", "GOMAXPROCS=2")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "child:\n%s", out)
	if strings.Contains(string(out), "--- SKIP: "+t.Name()) {
		t.Skipf("child:\n%s", out)
	}
	require.Contains(t, string(out), "--- PASS: "+t.Name(), "the child did not run the test")
	return false
}

// Statm returns the bytes of the process's address space, and those of them
// that are resident.
func Statm(t *testing.T) (virtual, resident int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skipf("no memory figures here: %v", err)
	}
	var pages [2]int
	for i, f := range strings.Fields(string(b))[:2] {
		pages[i], err = strconv.Atoi(f)
		require.NoError(t, err)
	}
	return pages[0] * os.Getpagesize(), pages[1] * os.Getpagesize()
}

// Rss returns the resident bytes, with as little of the Go heap in them as can
// be.
func Rss(t *testing.T) int {
	t.Helper()
	runtime.GC()
	debug.FreeOSMemory()
	_, n := Statm(t)
	return n
}
