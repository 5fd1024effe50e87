package ringcache

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/chunk"
)

var errRefused = errors.New("refused by the test")

// meter is memory that refuses maps beyond a number.
type meter struct {
	allowed atomic.Int32
	maps    atomic.Int32
}

func (m *meter) memory() chunk.Memory {
	mem := osMemory()
	mem.Map = func(n int) ([]byte, error) {
		if m.maps.Load() >= m.allowed.Load() {
			return nil, errRefused
		}
		m.maps.Add(1)
		return osMemory().Map(n)
	}
	return mem
}

func TestMemory_RefusedFromTheStart(t *testing.T) {
	var m meter
	g := tiny(2, 256, 64)
	g.mem = m.memory()
	c := mustCache(t, g)
	for _, size := range []int{0, 10, 300, g.maxBytes / 16} {
		k := trafficKey(nil, uint32(size))
		for range 3 { // a lock left held would stop the second
			err := c.Set(k, make([]byte, size))
			require.ErrorIs(t, err, ErrNoMemory, "Set of %d bytes", size)
			require.ErrorIs(t, err, errRefused, "Set of %d bytes", size)
			require.False(t, c.Has(k), "%d bytes that were refused", size)
			require.False(t, c.Del(k), "%d bytes that were refused", size)
			require.Zero(t, c.Len(), "%d bytes that were refused", size)
		}
	}
	c.Reset()
	m.allowed.Store(1)
	runShort(t, c, g)
}

// runShort checks that c works as ever.
func runShort(t *testing.T, c *Cache, g geometry) {
	t.Helper()
	r := &runner{c: c, g: g, bound: g.maxBytes, life: newLife(false)}
	for i := range uint32(500) {
		o := op{kind: opSet, id: i % 50, class: 16, arg: uint16(i)}
		if err := r.step(o); err != nil {
			require.NoError(t, err, "once memory is there again: set %d", i)
		}
	}
	require.NoError(t, r.finish(), "once memory is there again")
}

// The second map is refused in the middle of a filling cache: whatever is
// stored stays, and nothing is read of what was refused.
func TestMemory_RefusedWhileFilling(t *testing.T) {
	var m meter
	m.allowed.Store(1)
	g := defaultGeometry(160 << 20) // maps of 64 MB
	g.seed = testSeed
	g.mem = m.memory()
	c := mustCache(t, g)
	refused := fillUntilRefused(t, c, g)
	overwriteRefused(t, c, 3000)
	m.allowed.Store(100)
	for _, id := range refused[:100] {
		s := stamp{id: id, version: 2, size: 4000}
		if err := c.Set(trafficKey(nil, id), s.value(nil)); err != nil {
			require.NoError(t, err, "once memory is there again")
		}
		if got, ok := c.HasGet(nil, trafficKey(nil, id)); !ok || !s.wrote(got) {
			require.Fail(t, "set once memory was there again", "key %d: found %v", id, ok)
		}
	}
}

// fillUntilRefused sets keys of 4000 bytes until many have been refused, checks
// all that the cache then holds, and returns the refused.
func fillUntilRefused(t *testing.T, c *Cache, g geometry) (refused []uint32) {
	t.Helper()
	const size = 4000
	stored := 0
	isRefused := map[uint32]bool{}
	var key, val, dst []byte
	for id := uint32(0); len(refused) < 1000; id++ {
		if int(id)*size > 2*g.maxBytes {
			require.Fail(t, "memory was never refused", "%d sets", id)
		}
		key = trafficKey(key, id)
		val = stamp{id: id, version: 1, size: size}.value(val)
		switch err := c.Set(key, val); {
		case err == nil:
			stored++
		case errors.Is(err, ErrNoMemory):
			refused = append(refused, id)
			isRefused[id] = true
		default:
			require.ErrorIs(t, err, ErrNoMemory, "set %d", id)
		}
	}
	var s Stats
	c.UpdateStats(&s)
	assert.Equal(t, stored, c.Len()+int(s.EvictedEntries), "what became of Sets that succeeded")
	assert.LessOrEqual(t, s.EvictedEntries, uint64(stored)/10, "a refusal harms others")
	live := 0
	for id := range uint32(stored + len(refused)) {
		got, ok := c.HasGet(dst[:0], trafficKey(key, id))
		dst = got
		if !ok {
			continue
		}
		live++
		if isRefused[id] || !(stamp{id: id, version: 1, size: size}).wrote(got) {
			require.Fail(t, "a wrong value", "key %d (refused: %v)", id, isRefused[id])
		}
	}
	assert.Equal(t, c.Len(), live, "keys that are found")
	return refused
}

// overwriteRefused overwrites keys with values of another size, of which some
// must be refused: they must not leave the old value to be read.
func overwriteRefused(t *testing.T, c *Cache, keys uint32) {
	t.Helper()
	refusals := 0
	for id := range keys {
		k := trafficKey(nil, id)
		s := stamp{id: id, version: 3, size: 5000}
		err := c.Set(k, s.value(nil))
		got, ok := c.HasGet(nil, k)
		switch {
		case err == nil && !(ok && s.wrote(got)):
			require.Fail(t, "overwritten, and not found", "key %d: %v", id, ok)
		case errors.Is(err, ErrNoMemory):
			refusals++
			require.False(t, ok, "key %d is found after a refused overwrite", id)
		case err != nil:
			require.ErrorIs(t, err, ErrNoMemory, "overwrite key %d", id)
		}
	}
	require.NotZero(t, refusals, "no overwrite was refused: the test proves nothing")
}
