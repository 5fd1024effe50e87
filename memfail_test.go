package ringcache

import (
	"errors"
	"sync/atomic"
	"testing"
)

var errRefused = errors.New("refused by the test")

// meter is memory that refuses maps beyond a number.
type meter struct {
	allowed atomic.Int32
	maps    atomic.Int32
}

func (m *meter) memory() memory {
	return memory{
		mapBytes: func(n int) ([]byte, error) {
			if m.maps.Load() >= m.allowed.Load() {
				return nil, errRefused
			}
			m.maps.Add(1)
			return osMemory.mapBytes(n)
		},
		unmapBytes: osMemory.unmapBytes,
	}
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
			if !errors.Is(err, ErrNoMemory) || !errors.Is(err, errRefused) {
				t.Fatalf("Set of %d bytes: got %v, want ErrNoMemory and its cause", size, err)
			}
			if c.Has(k) || c.Del(k) || c.Len() != 0 {
				t.Errorf("something is there after a refused Set of %d bytes", size)
			}
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
			t.Fatalf("once memory is there again: set %d: %v", i, err)
		}
	}
	if err := r.finish(); err != nil {
		t.Fatalf("once memory is there again: %v", err)
	}
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
			t.Fatalf("once memory is there again: %v", err)
		}
		if got, ok := c.HasGet(nil, trafficKey(nil, id)); !ok || !s.wrote(got) {
			t.Fatalf("key %d, set once memory was there again: found %v", id, ok)
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
			t.Fatalf("memory was never refused in %d sets", id)
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
			t.Fatalf("set %d: got %v, want ErrNoMemory", id, err)
		}
	}
	var s Stats
	c.UpdateStats(&s)
	if c.Len()+int(s.EvictedEntries) != stored {
		t.Errorf("%d sets succeeded; the cache holds %d and evicted %d", stored, c.Len(), s.EvictedEntries)
	}
	if s.EvictedEntries > uint64(stored)/10 {
		t.Errorf("%d of %d entries were evicted: a refusal harms others", s.EvictedEntries, stored)
	}
	live := 0
	for id := range uint32(stored + len(refused)) {
		got, ok := c.HasGet(dst[:0], trafficKey(key, id))
		dst = got
		if !ok {
			continue
		}
		live++
		if isRefused[id] || !(stamp{id: id, version: 1, size: size}).wrote(got) {
			t.Fatalf("key %d (refused: %v) has a wrong value", id, isRefused[id])
		}
	}
	if live != c.Len() {
		t.Errorf("%d keys are found, Len is %d", live, c.Len())
	}
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
			t.Fatalf("key %d: overwritten, and found %v", id, ok)
		case errors.Is(err, ErrNoMemory):
			refusals++
			if ok {
				t.Fatalf("key %d: %d bytes are found after a refused overwrite", id, len(got))
			}
		case err != nil:
			t.Fatalf("overwrite key %d: got %v, want ErrNoMemory", id, err)
		}
	}
	if refusals == 0 {
		t.Error("no overwrite was refused: the test proves nothing")
	}
}

func TestMemory_UnmapFails(t *testing.T) {
	g := tiny(2, 256, 64)
	g.mem.unmapBytes = func([]byte) error { return errRefused }
	c, err := newCache(g)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Set([]byte("k"), []byte("v")); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); !errors.Is(err, errRefused) {
		t.Errorf("Close: got %v, want the cause", err)
	}
	if err := c.Set([]byte("k"), nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Set after a failed Close: got %v, want ErrClosed", err)
	}
	if c.Has([]byte("k")) {
		t.Error("found after a failed Close")
	}
	if err := c.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}
