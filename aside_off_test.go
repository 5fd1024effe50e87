package ringcache

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// offCache returns a cache in which a Set of key has just been put off. The value in the ring is "older".
func offCache(t *testing.T, key, value string) *Cache {
	t.Helper()
	g := tiny(1, 4096, 64)
	g.laterFrom = 0
	c := mustCache(t, g)
	for i := range 20 {
		setPlain(t, c, fmt.Sprint("other", i), "value")
	}
	setPlain(t, c, key, "older")
	c.Len() // which makes what was put off
	setPlain(t, c, key, value)
	if !isPutOff(c, key) {
		t.Fatal("the Set was not put off")
	}
	return c
}

func setPlain(t *testing.T, c *Cache, k, v string) {
	t.Helper()
	if err := c.Set([]byte(k), []byte(v)); err != nil {
		t.Fatal(err)
	}
}

func isPutOff(c *Cache, key string) bool {
	h := c.shared.hash([]byte(key))
	b := c.bucket(h)
	b.mu.hold()
	defer b.mu.release()
	return b.isAside([]byte(key), h) && b.aside.slot == unsought
}

// Sets are put off after some that have found older values, and no longer once one has found none.
func TestAsideOff_After(t *testing.T) {
	g := tiny(1, 4096, 64)
	g.laterFrom = laterFrom
	c := mustCache(t, g)
	set := func(key string) bool {
		setPlain(t, c, key, "value")
		return isPutOff(c, key)
	}
	for i := range 20 {
		if set(fmt.Sprint("key", i)) {
			t.Fatal("a new key was put off")
		}
	}
	for i := range laterFrom + 1 {
		if off := set(fmt.Sprint("key", i)); off && i < laterFrom-1 {
			t.Errorf("a Set was put off after %d that found a value", i)
		}
	}
	for i := range 20 {
		if !set(fmt.Sprint("key", i)) {
			t.Error("a Set of many that find a value was not put off")
		}
	}
	if !set("new") {
		t.Error("nobody can know that this one is new, and yet it was not put off")
	}
	if set("key1") {
		t.Error("a Set was put off after a new key")
	}
	if n := c.Len(); n != 21 {
		t.Errorf("%d entries, want 21", n)
	}
}

// Only what may wait is put off.
func TestAsideOff_Not(t *testing.T) {
	for name, tt := range map[string]struct {
		set  func(c *Cache) error
		g    func(g *geometry)
		want bool
	}{
		"as it comes":          {set: func(c *Cache) error { return c.Set([]byte("key"), []byte("newer")) }, want: true},
		"as long as it may be": {set: func(c *Cache) error { return c.Set([]byte("key"), make([]byte, asideMany-3)) }, want: true},
		"too long":             {set: func(c *Cache) error { return c.Set([]byte("key"), make([]byte, asideMany-2)) }},
		"a batch":              {set: func(c *Cache) error { return c.SetBatch([][]byte{[]byte("key")}, [][]byte{[]byte("newer")}) }},
		"to be removed":        {set: func(c *Cache) error { c.Del([]byte("key")); return nil }},
		"a time to live":       {set: func(c *Cache) error { return c.SetWithTTL([]byte("key"), []byte("newer"), 1<<40) }},
		"on a condition":       {set: func(c *Cache) error { _, err := c.SetIfChanged([]byte("key"), []byte("newer")); return err }},
		"OnEvict": {set: func(c *Cache) error { return c.Set([]byte("key"), []byte("newer")) },
			g: func(g *geometry) { g.onEvict = func(k, v []byte, reason Reason) {} }},
		"a small index": {set: func(c *Cache) error { return c.Set([]byte("key"), []byte("newer")) },
			g: func(g *geometry) { g.asideFrom = 1 << 20 }},
	} {
		g := tiny(1, 4096, 64)
		g.laterFrom = 0
		if tt.g != nil {
			tt.g(&g)
		}
		c := mustCache(t, g)
		setPlain(t, c, "key", "older")
		c.Len()
		if err := tt.set(c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := c.buckets[0].asideTag != 0 && c.buckets[0].aside.slot == unsought; got != tt.want {
			t.Errorf("%s: put off: %v", name, got)
		}
	}
}

// A new key that was put off is made later, and one that finds no memory then is lost: nothing
// else is.
func TestAsideOff_NoMemory(t *testing.T) {
	refuse := false
	g := tiny(1, 4096, 64)
	g.laterFrom = 0
	g.mem.mapBytes = func(n int) ([]byte, error) {
		if refuse {
			return nil, errRefused
		}
		return osMemory.mapBytes(g.chunkSize)
	}
	c := mustCache(t, g)
	setPlain(t, c, "other", "value")
	c.Len()
	r := &c.buckets[0].rings[0]
	refuse = true
	for i := 0; r.size+200 < uint64(r.held())<<r.shift; i++ {
		setPlain(t, c, fmt.Sprint("fill", i), strings.Repeat("f", 100))
		c.Len()
	}
	setPlain(t, c, "key", strings.Repeat("v", 290))
	if got := len(c.Get(nil, []byte("key"))); got != 290 || !isPutOff(c, "key") {
		t.Errorf("a value of %d bytes while it is put off", got)
	}
	c.Len()
	if v, ok := c.HasGet(nil, []byte("key")); ok {
		t.Errorf("a value of %d bytes is there without memory for it", len(v))
	}
	if got := string(c.Get(nil, []byte("other"))); got != "value" {
		t.Errorf("the other key has %q", got)
	}
}

// A Set is not put off in a cache that is closed: it has to say so.
func TestAsideOff_Closed(t *testing.T) {
	c := offCache(t, "key", "newer")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Set([]byte("key"), []byte("again")); !errors.Is(err, ErrClosed) {
		t.Errorf("Set after Close: %v", err)
	}
}

// Sets that are put off take nothing from the Go heap.
func TestAsideOff_Allocations(t *testing.T) {
	c := offCache(t, "key", "newer")
	k, v, off := []byte("key"), []byte("value"), 0
	n := testing.AllocsPerRun(100, func() {
		if err := c.Set(k, v); err != nil {
			t.Fatal(err)
		}
		if isPutOff(c, "key") {
			off++
		}
	})
	if n != 0 || off < 100 {
		t.Errorf("%v allocations a Set, %d of 101 put off", n, off)
	}
}
