package ringcache

import (
	"encoding/binary"
	"math"
	"testing"
)

// fillCache sets entries of 8 bytes and a value with ids from first on.
func fillCache(t *testing.T, c *Cache, first, n, valueSize int) {
	t.Helper()
	key, value := make([]byte, 8), make([]byte, valueSize)
	for id := range n {
		binary.LittleEndian.PutUint64(key, uint64(first+id))
		if err := c.Set(key, value); err != nil {
			t.Fatal(err)
		}
	}
}

// Index pages that nobody uses any more become chunks again: a cache that has
// held the tiniest records stays within its one map when large ones come.
func TestBound_PagesBecomeChunks(t *testing.T) {
	if testing.Short() {
		t.Skip("sets two million entries")
	}
	c := mustCache(t, defaultGeometry(minMaxBytes))
	fillCache(t, c, 0, 2_000_000, 0)
	c.Reset()
	fillCache(t, c, 1<<30, 100_000, 1000)
	if n := len(c.shared.pool.maps); n != 1 {
		t.Errorf("%d maps of %d bytes, want 1", n, c.shared.pool.mapSize)
	}
}

// Small records get the memory back that a burst of large ones took.
func TestBound_SmallRecordsRecover(t *testing.T) {
	c := mustCache(t, defaultGeometry(minMaxBytes))
	fillCache(t, c, 0, 100, 1<<20)
	if n := c.Len(); n > 32 {
		t.Fatalf("%d values of 1 MB in 32 MB", n)
	}
	fillCache(t, c, 1<<30, 250_000, 500)
	if n := c.Len(); n < 50_000 {
		t.Errorf("%d entries of 508 bytes in 32 MB, want at least 50,000", n)
	}
}

// No room is kept for index pages that are not needed after all.
func TestBound_NoPagesPendForEver(t *testing.T) {
	c := mustCache(t, defaultGeometry(minMaxBytes))
	fillCache(t, c, 0, 2_500_000, 0)
	var s Stats
	c.UpdateStats(&s)
	if s.ReservedBytes < s.MaxBytesSize/8*7 {
		t.Errorf("%d of %d bytes in use after filling", s.ReservedBytes, s.MaxBytesSize)
	}
}

// The size of a map is right up to the largest bound of 32-bit platforms.
func TestBound_MapSize(t *testing.T) {
	for _, maxBytes := range []int{minMaxBytes, 64 << 20, 1 << 30, math.MaxInt32} {
		p := newChunkPool(osMemory, maxBytes, 64<<10)
		if p.mapSize < 64<<10 || p.mapSize > 65<<20 {
			t.Errorf("maps of %d bytes for %d", p.mapSize, maxBytes)
		}
	}
}
