package ringcache

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// The operating system itself refuses the memory here, as under ulimit -v.
func TestMemory_RefusedByTheSystem(t *testing.T) {
	if !inChild(t) {
		return
	}
	g := defaultGeometry(256 << 20)
	c := mustCache(t, g)
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &old); err != nil {
		t.Fatal(err)
	}
	// The Go heap must not have to grow while there is nothing to be had: what it
	// was once given stays in its address space.
	runtime.KeepAlive(make([]byte, 32<<20))
	// Room for one map of 64 MB and for what the Go runtime may want.
	virtual, _ := statm(t)
	limit := old
	limit.Cur = uint64(virtual) + 100<<20
	if err := unix.Setrlimit(unix.RLIMIT_AS, &limit); err != nil {
		t.Skipf("cannot lower the limit: %v", err)
	}
	refused := fillUntilRefused(t, c, g)
	if err := c.validate(); err != nil {
		t.Errorf("validate after refusals: %v", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_AS, &old); err != nil {
		t.Fatal(err)
	}
	for _, id := range refused {
		if err := c.Set(trafficKey(nil, id), []byte("new")); err != nil {
			t.Fatalf("once memory is there again: %v", err)
		}
		if got := c.Get(nil, trafficKey(nil, id)); string(got) != "new" {
			t.Fatalf("key %d, set once memory was there again: found %q", id, got)
		}
	}
}
