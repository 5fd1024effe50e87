package ringcache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// asideCache returns a cache in which a Set of key has just been put aside: its
// value is "newer", and that in the ring "older".
func asideCache(t *testing.T, g geometry, key string) *Cache {
	t.Helper()
	c := mustCache(t, g)
	for i := range 20 {
		mustSet(t, c, fmt.Sprint("other", i), "value", 0)
	}
	mustSet(t, c, key, "older", 0)
	mustSet(t, c, key, "newer", 0)
	if !isPutAside(c, key) {
		t.Fatal("the Set was not put aside")
	}
	return c
}

func isPutAside(c *Cache, key string) bool {
	h := c.shared.hash([]byte(key))
	b := c.bucket(h)
	b.mu.hold()
	defer b.mu.release()
	return b.isAside([]byte(key), h)
}

// Whatever comes after a Set that was put aside finds it made.
func TestAside_NobodyCanTell(t *testing.T) {
	k, newer := []byte("key"), []byte("newer")
	get := func(c *Cache) string {
		v, ok := c.HasGet(nil, k)
		return fmt.Sprintf("%s %v", v, ok)
	}
	for name, tt := range map[string]struct {
		call func(c *Cache) string
		want string
		then string // what a Get finds afterwards
	}{
		"Get":    {func(c *Cache) string { return string(c.Get([]byte("-"), k)) }, "-newer", "newer true"},
		"HasGet": {get, "newer true", "newer true"},
		"Has":    {func(c *Cache) string { return fmt.Sprint(c.Has(k)) }, "true", "newer true"},
		"View": {func(c *Cache) (s string) {
			c.View(k, func(v []byte) { s = fmt.Sprintf("%s of %d", v, cap(v)) })
			return s
		}, "newer of 5", "newer true"},
		"GetBatch": {func(c *Cache) string {
			vals := make([][]byte, 2)
			_, n := c.GetBatch(nil, [][]byte{k, k}, vals)
			return fmt.Sprintf("%s %d", vals, n)
		}, "[newer newer] 2", "newer true"},
		"Set":           {func(c *Cache) string { return fmt.Sprint(c.Set(k, []byte("third"))) }, "<nil>", "third true"},
		"Set, longer":   {func(c *Cache) string { return fmt.Sprint(c.Set(k, []byte("longer"))) }, "<nil>", "longer true"},
		"SetBatch":      {func(c *Cache) string { return fmt.Sprint(c.SetBatch([][]byte{k}, [][]byte{{'b'}})) }, "<nil>", "b true"},
		"Set, large":    {func(c *Cache) string { return fmt.Sprint(c.Set(k, make([]byte, c.shared.maxValue()))) }, "<nil>", strings.Repeat("\x00", 1<<14) + " true"},
		"Set, too long": {func(c *Cache) string { return fmt.Sprint(errors.Is(c.Set(k, make([]byte, 1<<20)), ErrTooLarge)) }, "true", " false"},
		"Del":           {func(c *Cache) string { return fmt.Sprint(c.Del(k)) }, "true", " false"},
		"GetAndDel": {func(c *Cache) string {
			v, ok := c.GetAndDel(nil, k)
			return fmt.Sprintf("%s %v", v, ok)
		}, "newer true", " false"},
		"SetIfAbsent":    {func(c *Cache) string { return fmt.Sprint(c.SetIfAbsent(k, []byte("new"))) }, "false <nil>", "newer true"},
		"SetIfChanged":   {func(c *Cache) string { return fmt.Sprint(c.SetIfChanged(k, newer)) }, "false <nil>", "newer true"},
		"CompareAndSwap": {func(c *Cache) string { return fmt.Sprint(c.CompareAndSwap(k, newer, []byte("third"))) }, "true <nil>", "third true"},
		"Append":         {func(c *Cache) string { return fmt.Sprint(c.Append(k, []byte("+"))) }, "<nil>", "newer+ true"},
		"Update": {func(c *Cache) string {
			return fmt.Sprint(c.Update(k, func(old []byte, ok bool) ([]byte, bool) { return append([]byte("not "), old...), true }))
		}, "<nil>", "not newer true"},
		"Touch":         {func(c *Cache) string { return fmt.Sprint(c.Touch(k, time.Hour)) }, "true", "newer true"},
		"TTL":           {func(c *Cache) string { _, ok := c.TTL(k); return fmt.Sprint(ok) }, "true", "newer true"},
		"DeleteExpired": {func(c *Cache) string { return fmt.Sprint(c.DeleteExpired()) }, "0", "newer true"},
		"GetOrLoad": {func(c *Cache) string {
			v, err := c.GetOrLoad(context.Background(), nil, k, func(context.Context, []byte) (Loaded, error) {
				return Loaded{}, errors.New("there is nothing to load")
			})
			return fmt.Sprintf("%s %v", v, err)
		}, "newer <nil>", "newer true"},
		"All": {func(c *Cache) (s string) {
			for key, v := range c.All() {
				if string(key) == string(k) {
					s += string(v)
				}
			}
			return s
		}, "newer", "newer true"},
		"Len": {func(c *Cache) string { return fmt.Sprint(c.Len()) }, "21", "newer true"},
		"UpdateStats": {func(c *Cache) string {
			var s Stats
			c.UpdateStats(&s)
			return fmt.Sprintf("%d %d", s.EntriesCount, s.SetCalls)
		}, "21 22", "newer true"},
		"Reset":  {func(c *Cache) string { c.Reset(); return fmt.Sprint(c.Len()) }, "0", " false"},
		"Resize": {func(c *Cache) string { return fmt.Sprint(c.Resize(minMaxBytes)) }, "<nil>", "newer true"},
		"Close":  {func(c *Cache) string { return fmt.Sprint(c.Close()) }, "<nil>", " false"},
	} {
		for state, c := range map[string]*Cache{
			"aside": asideCache(t, tiny(1, 4096, 64), string(k)),
			"off":   offCache(t, "key", "newer"),
		} {
			t.Run(name+"/"+state, func(t *testing.T) {
				if got := tt.call(c); got != tt.want {
					t.Errorf("%q, want %q", got, tt.want)
				}
				if got := get(c); got != tt.then {
					t.Errorf("then a Get finds %.40q, want %.40q", got, tt.then)
				}
				if name == "Reset" {
					mustSet(t, c, "key", "again", 0)
					if got := get(c); got != "again true" {
						t.Errorf("after Reset and a Set: %q", got)
					}
				}
			})
		}
	}
}

// A Set that expires while it is aside takes the older value with it.
func TestAside_Expires(t *testing.T) {
	g := tiny(1, 256, 64)
	for name, lookup := range map[string]func(c *Cache) bool{
		"Get":  func(c *Cache) bool { return c.Get(nil, []byte("key")) != nil },
		"Has":  func(c *Cache) bool { return c.Has([]byte("key")) },
		"View": func(c *Cache) bool { return c.View([]byte("key"), nil) },
		"Len":  func(c *Cache) bool { return c.DeleteExpired() != 1 || c.Len() != 0 },
	} {
		c, age := timedCache(t, g)
		mustSet(t, c, "key", "older", 0)
		mustSet(t, c, "key", "newer", time.Minute)
		if !isPutAside(c, "key") {
			t.Fatal("the Set was not put aside")
		}
		*age = 2 * time.Minute
		if lookup(c) {
			t.Errorf("%s finds what has expired", name)
		}
	}
}

// Where all hashes are equal, what was put aside is still found by its own key
// alone, and the key that it was taken for keeps its value.
func TestAside_EqualHashes(t *testing.T) {
	g := tiny(1, 256, 64)
	g.seed = [2]uint64{}
	c := mustCache(t, g)
	mustSet(t, c, "one", "1", 0)
	mustSet(t, c, "two", "2", 0)
	if !isPutAside(c, "two") {
		t.Fatal("the Set was not put aside")
	}
	for k, want := range map[string]string{"one": "1", "two": "2", "three": "", "tw": ""} {
		if got := string(c.Get(nil, []byte(k))); got != want {
			t.Errorf("key %s: %q, want %q", k, got, want)
		}
	}
	if n := c.Len(); n != 2 {
		t.Errorf("%d entries, want 2", n)
	}
}

// On many processors, where what is aside has to cross, less is.
func TestAside_Longest(t *testing.T) {
	for processors, want := range map[int]int{1: asideMost, 2: asideMost, 3: asideMany, 64: asideMany} {
		if n := asideLongest(processors); n != want {
			t.Errorf("%d processors: at most %d bytes are put aside, want %d", processors, n, want)
		}
	}
}

// Only what may wait is put aside.
func TestAside_Not(t *testing.T) {
	for name, tt := range map[string]struct {
		g     func(g *geometry)
		key   string
		value int
		want  bool
	}{
		"as it comes":          {want: true, key: "key", value: 5},
		"another length":       {want: true, key: "key", value: 9},
		"as long as it may be": {want: true, key: "key", value: asideMany - 3},
		"too long":             {key: "key", value: asideMany - 2},
		"a new key":            {key: "new", value: 5},
		"OnEvict":              {key: "key", value: 5, g: func(g *geometry) { g.onEvict = func(k, v []byte, reason Reason) {} }},
		"a small index":        {key: "key", value: 5, g: func(g *geometry) { g.asideFrom = 1 << 20 }},
	} {
		g := tiny(1, 256, 64)
		if tt.g != nil {
			tt.g(&g)
		}
		c := mustCache(t, g)
		mustSet(t, c, "key", "older", 0)
		mustSet(t, c, tt.key, strings.Repeat("v", tt.value), 0)
		if got := isPutAside(c, tt.key); got != tt.want {
			t.Errorf("%s: put aside: %v", name, got)
		}
		if n := len(c.Get(nil, []byte(tt.key))); n != tt.value {
			t.Errorf("%s: value of %d bytes, want %d", name, n, tt.value)
		}
	}
}

// A Set that was put aside and finds no memory later is lost, with the older
// value; nothing else is.
func TestAside_NoMemory(t *testing.T) {
	refuse := false
	g := tiny(1, 4096, 64)
	g.mem.mapBytes = func(n int) ([]byte, error) {
		if refuse {
			return nil, errRefused
		}
		return osMemory.mapBytes(g.chunkSize)
	}
	c := mustCache(t, g)
	mustSet(t, c, "key", "older", 0)
	mustSet(t, c, "other", "value", 0)
	r := &c.buckets[0].rings[0]
	refuse = true
	for i := 0; r.size+200 < uint64(r.held())<<r.shift; i++ {
		mustSet(t, c, fmt.Sprint("fill", i), strings.Repeat("f", 100), 0)
	}
	mustSet(t, c, "key", strings.Repeat("v", 290), 0)
	if !isPutAside(c, "key") {
		t.Fatal("the Set was not put aside")
	}
	if got := len(c.Get(nil, []byte("key"))); got != 290 {
		t.Errorf("a value of %d bytes while it is aside", got)
	}
	c.Len()
	if v, ok := c.HasGet(nil, []byte("key")); ok {
		t.Errorf("a value of %d bytes is there without memory for it", len(v))
	}
	if got := string(c.Get(nil, []byte("other"))); got != "value" {
		t.Errorf("the other key has %q", got)
	}
}

// Sets that are put aside take nothing from the Go heap.
func TestAside_Allocations(t *testing.T) {
	c := asideCache(t, tiny(1, 4096, 64), "key")
	k, v := []byte("key"), []byte("value")
	aside := 0
	n := testing.AllocsPerRun(100, func() {
		if err := c.Set(k, v); err != nil {
			t.Fatal(err)
		}
		if isPutAside(c, "key") {
			aside++
		}
	})
	if n != 0 || aside < 100 {
		t.Errorf("%v allocations a Set, %d of 101 put aside", n, aside)
	}
}

// SetBatch has asked for the lines of all its keys before it sets the first.
func TestAside_BatchIsPrompt(t *testing.T) {
	c := asideCache(t, tiny(1, 4096, 64), "key")
	if err := c.SetBatch([][]byte{[]byte("key")}, [][]byte{[]byte("batch")}); err != nil {
		t.Fatal(err)
	}
	if isPutAside(c, "key") {
		t.Error("a Set of a batch was put aside")
	}
}

// A key that has been evicted is new, though its ghost has the hash.
func TestAside_GhostIsNew(t *testing.T) {
	g := tiny(1, 4096, 64)
	g.policy = PolicyFIFO
	c := mustCache(t, g)
	mustSet(t, c, "key", "older", 0)
	h := c.shared.hash([]byte("key"))
	var f found
	for i := 0; c.bucket(h).find(&f, []byte("key"), h); i++ {
		mustSet(t, c, fmt.Sprint("other", i), strings.Repeat("v", 1000), 0)
	}
	if !f.ghost {
		t.Fatal("the key has gone without a ghost: the test proves nothing")
	}
	mustSet(t, c, "key", "again", 0)
	if isPutAside(c, "key") {
		t.Error("a Set of a key that is not there was put aside")
	}
}
