package ringtest

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// Watch sets n entries of various sizes, and keeps those that are there then.
func Watch(t *testing.T, c *ringcache.Cache, n uint32, sizeOf func(id uint32) int) *watched {
	t.Helper()
	w := &watched{c, map[uint32]int{}}
	for id := range n {
		v := Stamp{ID: id, Version: 1, Size: sizeOf(id)}.Value(nil)
		if err := c.Set(TrafficKey(nil, id), v); err != nil {
			require.NoError(t, err)
		}
	}
	for id := range n {
		if c.Has(TrafficKey(nil, id)) {
			w.Size[id] = sizeOf(id)
		}
	}
	return w
}

// watched are entries that a loop has to see exactly once, whatever happens to
// others.
type watched struct {
	c    *ringcache.Cache
	Size map[uint32]int
}

// Loop goes over all entries, calls body in each round, and reports what was
// not seen as often as it must be. Ids from others on are not watched.
func (w *watched) Loop(t *testing.T, body func()) {
	t.Helper()
	seen := map[uint32]int{}
	for k, v := range w.c.All() {
		id := binary.LittleEndian.Uint32(k)
		if size, ok := w.Size[id]; ok {
			seen[id]++
			if !slices.Equal(k, TrafficKey(nil, id)) ||
				!(Stamp{ID: id, Version: 1, Size: size}).Wrote(v) {
				assert.Fail(t, "not what was set", "key %d comes with %d bytes", id, len(v))
			}
		}
		body()
	}
	for id, size := range w.Size {
		if seen[id] != 1 {
			assert.Equal(t, 1, seen[id], "the entry %d of %d bytes was seen so often", id, size)
		}
		if !w.c.Has(TrafficKey(nil, id)) {
			assert.Fail(t, "it has gone: the test proves nothing", "entry %d", id)
			return
		}
	}
}
