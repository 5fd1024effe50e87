package system

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

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
	// Room for maps of 8 and 64 MB, and for what the Go runtime may want.
	virtual, _ := ringtest.Statm(t)
	limit := old
	limit.Cur = uint64(virtual) + 100<<20
	if err := unix.Setrlimit(unix.RLIMIT_AS, &limit); err != nil {
		t.Skipf("cannot lower the limit: %v", err)
	}
	got := 72 << 20
	if strconv.IntSize == 32 {
		got = 96 << 20 // the pool leaves fewer addresses to the rest of the process
	}
	ringtest.FillLimited(t, c, got)
	require.NoError(t, ringtest.Validate(c), "validate after refusals")
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_AS, &old))
	requireGrowsBack(t, c)
}
