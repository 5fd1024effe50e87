package system

import (
	"os"
	"regexp"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// The operating system itself refuses the memory here, as under ulimit -v.
func TestMemory_RefusedByTheSystem(t *testing.T) {
	t.Parallel()
	if !ringtest.InChild(t) {
		return
	}
	g := ringtest.Default(256 << 20)
	c := ringtest.MustCache(t, g)
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_AS, &old))
	// The Go heap must not have to grow while there is nothing to be had: what it
	// was once given stays in its address space, and is free once it is collected.
	runtime.KeepAlive(make([]byte, 32<<20))
	runtime.GC()
	// Room for the cache, and for the 64 MB (4 where addresses have 32 bits) that it leaves to the Go
	// runtime.
	virtual, _ := ringtest.Statm(t)
	limit := old
	limit.Cur = uint64(virtual) + 100<<20
	if err := unix.Setrlimit(unix.RLIMIT_AS, &limit); err != nil {
		t.Skipf("cannot lower the limit: %v", err)
	}
	got := 36 << 20
	if strconv.IntSize == 32 {
		got = 96 << 20
	}
	ringtest.FillLimited(t, c, got)
	require.NoError(t, ringtest.Validate(c), "validate after refusals")
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_AS, &old))
	requireGrowsBack(t, c)
}

// Whatever the limit, the Go runtime gets the memory that it needs: refused that, it ends the
// process.
func TestMemory_LeavesTheRuntimeItsPart(t *testing.T) {
	if strconv.IntSize == 32 {
		t.Skip("the pool leaves 4 MB where addresses have 32 bits, and this test's heap grows by more")
	}
	for _, megabytes := range []uint64{66, 74, 90, 140} {
		t.Run(strconv.FormatUint(megabytes, 10), func(t *testing.T) {
			if !ringtest.InChild(t) {
				return
			}
			status, err := os.ReadFile("/proc/self/status")
			require.NoError(t, err)
			m := regexp.MustCompile(`VmData:\s+(\d+) kB`).FindSubmatch(status)
			has, err := strconv.ParseUint(string(m[1]), 10, 64)
			require.NoError(t, err)
			limit := unix.Rlimit{Cur: has<<10 + megabytes<<20, Max: unix.RLIM_INFINITY}
			require.NoError(t, unix.Setrlimit(unix.RLIMIT_DATA, &limit))
			c := ringcache.New(300 << 20)
			value, kept := make([]byte, 4000), [][]byte(nil)
			for i := range uint32(60_000) {
				if i%20 == 0 {
					kept = append(kept, make([]byte, 4000))
				}
				if err := c.Set(ringtest.TrafficKey(nil, i), value); err != nil {
					require.ErrorIs(t, err, ringcache.ErrNoMemory)
				}
			}
			runtime.KeepAlive(kept)
		})
	}
}
