package ringcache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"
)

// timedCache returns a cache whose clock the test moves.
func timedCache(t testing.TB, g geometry) (*Cache, *time.Duration) {
	t.Helper()
	age := new(time.Duration)
	g.now = func() time.Duration { return *age }
	return mustCache(t, g), age
}

func mustSet(t testing.TB, c *Cache, k, v string, ttl time.Duration) {
	t.Helper()
	if err := c.SetWithTTL([]byte(k), []byte(v), ttl); err != nil {
		t.Fatal(err)
	}
}

// An entry is found until up to a tick before its time, and never after it, by
// every call that could find it.
func TestExpiry_EveryLookup(t *testing.T) {
	lookups := map[string]func(c *Cache, k []byte) bool{
		"Get":      func(c *Cache, k []byte) bool { return c.Get(nil, k) != nil },
		"HasGet":   func(c *Cache, k []byte) bool { _, ok := c.HasGet(nil, k); return ok },
		"Has":      func(c *Cache, k []byte) bool { return c.Has(k) },
		"View":     func(c *Cache, k []byte) bool { return c.View(k, func([]byte) {}) },
		"GetBatch": func(c *Cache, k []byte) bool { _, n := c.GetBatch(nil, [][]byte{k}, make([][]byte, 1)); return n == 1 },
		"TTL":      func(c *Cache, k []byte) bool { _, ok := c.TTL(k); return ok },
	}
	for _, size := range []int{1, 40_000, floorValue} { // short, long, and in a large bucket
		for offset := time.Duration(0); offset < tick; offset += tick / 3 {
			for name, found := range lookups {
				c, age := timedCache(t, defaultGeometry(minMaxBytes))
				*age = offset
				mustSet(t, c, "k", string(make([]byte, size)), time.Second)
				*age = offset + time.Second - tick
				if !found(c, []byte("k")) {
					t.Errorf("%s of %d bytes: gone a whole tick before its time", name, size)
				}
				*age = offset + time.Second
				if found(c, []byte("k")) {
					t.Errorf("%s of %d bytes: found at the end of its time", name, size)
				}
			}
		}
	}
}

const floorValue = minMaxBytes / 16

func TestExpiry_SetWithTTL(t *testing.T) {
	c, age := timedCache(t, defaultGeometry(minMaxBytes))
	c.shared.ttl, c.plain = time.Minute, false
	k := []byte("k")
	for _, tt := range []struct {
		set  time.Duration
		left time.Duration
		ok   bool
	}{
		{0, 0, true}, // never, whatever the default
		{-1, 0, false},
		{math.MinInt64, 0, false},
		{time.Hour, time.Hour, true},
		{math.MaxInt64, 0, true},
		{14 * 365 * 24 * time.Hour, 0, true},
		{13 * 365 * 24 * time.Hour, 13 * 365 * 24 * time.Hour, true},
		{tick - 1, 0, false},
		{tick, tick, true},
	} {
		mustSet(t, c, "k", "v", time.Hour)
		mustSet(t, c, "k", "v", tt.set)
		if left, ok := c.TTL(k); left != tt.left || ok != tt.ok {
			t.Errorf("set for %v: TTL is %v, %v, want %v, %v", tt.set, left, ok, tt.left, tt.ok)
		}
	}
	if err := c.Set(k, []byte("v")); err != nil {
		t.Fatal(err)
	}
	*age += time.Second
	if left, ok := c.TTL(k); left != 59*time.Second || !ok {
		t.Errorf("by Set: TTL is %v, %v, want the default less a second", left, ok)
	}
	if err := c.SetWithTTL(k, make([]byte, floorValue+1), time.Hour); !errors.Is(err, ErrTooLarge) || c.Has(k) {
		t.Errorf("a value that is too long: got %v", err)
	}
	if err := c.SetWithTTL(make([]byte, maxKey+1), nil, -1); err != nil {
		t.Errorf("removing a key that is too long to be there: got %v", err)
	}
}

// What Touch does to the forms of a record: in place where there is room, else
// by writing it again. Value and standing stay.
func TestExpiry_Touch(t *testing.T) {
	for _, size := range []int{0, 5, 33_000, floorValue} {
		c, age := timedCache(t, defaultGeometry(minMaxBytes))
		k := []byte("k")
		value := string(stamp{id: 1, version: 2, size: size}.value(nil))
		if c.Touch(k, time.Second) || c.Touch(k, 0) || c.Touch(k, -1) {
			t.Error("a key that is not there was touched")
		}
		mustSet(t, c, "k", value, 0)
		for range 3 { // a standing that is to be kept
			c.Has(k)
		}
		for _, ttl := range []time.Duration{0, time.Minute, time.Second, 0, time.Hour} {
			if !c.Touch(k, ttl) {
				t.Fatalf("touch %d bytes for %v: not there", size, ttl)
			}
			if left, ok := c.TTL(k); left != ttl || !ok {
				t.Errorf("touch %d bytes for %v: TTL is %v, %v", size, ttl, left, ok)
			}
			if got := c.Get(nil, k); string(got) != value {
				t.Errorf("touch %d bytes for %v: another value", size, ttl)
			}
			if c.Len() != 1 {
				t.Errorf("touch %d bytes for %v: %d entries", size, ttl, c.Len())
			}
		}
		if freq := freqOf(t, c, k); freq != 3 {
			t.Errorf("touched entry of %d bytes has frequency %d, want 3", size, freq)
		}
		*age += time.Hour
		if c.Touch(k, time.Hour) || c.Has(k) {
			t.Error("an expired entry came back")
		}
		mustSet(t, c, "k", value, time.Hour)
		if !c.Touch(k, -1) || c.Has(k) || c.Len() != 0 {
			t.Error("a ttl below 0 did not remove the entry")
		}
	}
	c, _ := timedCache(t, defaultGeometry(minMaxBytes))
	mustSet(t, c, "k", "v", 0)
	before := statsOf(c)
	c.Touch([]byte("k"), time.Second)
	c.TTL([]byte("k"))
	after := statsOf(c)
	if before.SetCalls != after.SetCalls || before.GetCalls != after.GetCalls || before.DelCalls != after.DelCalls {
		t.Errorf("Touch and TTL are counted: %+v, %+v", before, after)
	}
}

func statsOf(c *Cache) (s Stats) {
	c.UpdateStats(&s)
	return s
}

// freqOf returns the frequency of an entry.
func freqOf(t testing.TB, c *Cache, k []byte) int {
	t.Helper()
	h := c.shared.hash(k)
	for _, b := range []*bucket{c.bucket(h), c.largeBucket(h)} {
		var f found
		if b.find(&f, k, h) {
			return slotFreq(f.slot)
		}
	}
	t.Fatalf("%s is not there", k)
	return 0
}

func TestExpiry_DeleteExpired(t *testing.T) {
	c, age := timedCache(t, defaultGeometry(minMaxBytes))
	if c.DeleteExpired() != 0 {
		t.Error("an empty cache had something expired")
	}
	const n = 5000
	for i := range n {
		ttl := time.Duration(i%10) * time.Second // every tenth never
		mustSet(t, c, fmt.Sprintf("key%d", i), "value", ttl)
	}
	mustSet(t, c, "large", string(make([]byte, floorValue)), time.Second)
	for s := 1; s < 10; s++ {
		*age = time.Duration(s) * time.Second
		want := n / 10
		if s == 1 {
			want++
		}
		if got := c.DeleteExpired(); got != want {
			t.Errorf("after %d s: %d removed, want %d", s, got, want)
		}
		if got := c.DeleteExpired(); got != 0 {
			t.Errorf("after %d s: %d removed again", s, got)
		}
		if got := c.Len(); got != n/10*(10-s) {
			t.Errorf("after %d s: %d entries left", s, got)
		}
	}
	s := statsOf(c)
	if s.ExpiredEntries != n/10*9+1 || s.ExpiredBytes < floorValue || s.EvictedEntries != 0 {
		t.Errorf("%d entries of %d bytes counted as expired, %d as evicted", s.ExpiredEntries, s.ExpiredBytes, s.EvictedEntries)
	}
	if err := c.validate(); err != nil {
		t.Error(err)
	}
}

// A Set, a Del and the like that come across an expired entry reclaim it, and
// treat it as absent.
func TestExpiry_ComeAcross(t *testing.T) {
	k := []byte("k")
	for name, call := range map[string]func(c *Cache) bool{
		"Del":            func(c *Cache) bool { return !c.Del(k) },
		"GetAndDel":      func(c *Cache) bool { _, ok := c.GetAndDel(nil, k); return !ok },
		"SetIfAbsent":    func(c *Cache) bool { ok, err := c.SetIfAbsent(k, []byte("v")); return ok && err == nil },
		"SetIfChanged":   func(c *Cache) bool { ok, err := c.SetIfChanged(k, []byte("v")); return ok && err == nil },
		"CompareAndSwap": func(c *Cache) bool { ok, err := c.CompareAndSwap(k, []byte("v"), nil); return !ok && err == nil },
		"Append": func(c *Cache) bool {
			return c.Append(k, []byte("x")) == nil && string(c.Get(nil, k)) == "x"
		},
		"Update": func(c *Cache) bool {
			missed := false
			err := c.Update(k, func(old []byte, ok bool) ([]byte, bool) { missed = !ok && len(old) == 0; return nil, true })
			return missed && err == nil
		},
		"Set": func(c *Cache) bool { return c.Set(k, []byte("v")) == nil && freqOf(t, c, k) == 0 },
	} {
		c, age := timedCache(t, defaultGeometry(minMaxBytes))
		mustSet(t, c, "k", "v", time.Second)
		for range 3 {
			c.Has(k)
		}
		*age = time.Second
		if !call(c) {
			t.Errorf("%s: an expired entry is not taken for absent", name)
		}
		if s := statsOf(c); name != "CompareAndSwap" && s.ExpiredEntries != 1 {
			t.Errorf("%s: %d entries counted as expired", name, s.ExpiredEntries)
		}
		if err := c.validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The space of what is expired is taken before that of what is alive: new
// entries in as many bytes as have expired drop next to nothing.
func TestExpiry_SpaceIsReclaimedFirst(t *testing.T) {
	for _, kind := range []Policy{PolicyS3FIFO, PolicyFIFO} {
		g := defaultGeometry(minMaxBytes)
		g.policy = kind
		g.seed = testSeed
		c, age := timedCache(t, g)
		key := func(id uint32) []byte { return binary.LittleEndian.AppendUint32(nil, id) }
		value := make([]byte, 400)
		set := func(id uint32, ttl time.Duration) {
			if err := c.SetWithTTL(key(id), value, ttl); err != nil {
				t.Fatal(err)
			}
		}
		isLong := func(id uint32) bool { return id%2 != 0 }
		full := uint32(0) // more than fits, every second entry for a second
		for ; full == 0 || full%256 != 0 || int(statsOf(c).EvictedEntries) < c.Len()/4; full++ {
			if isLong(full) {
				set(full, time.Hour)
			} else {
				set(full, time.Second)
			}
		}
		count := func(upTo uint32) (n int) {
			for id := range upTo {
				if (isLong(id) || id >= full) && c.Has(key(id)) {
					n++
				}
			}
			return n
		}
		before := count(full)
		*age = time.Second
		more := uint32(before / 2) // as many bytes as half of what has expired
		for id := full; id < full+more; id++ {
			set(id, time.Hour)
		}
		after := count(full + more)
		t.Logf("%v: %d and %d, %d", kind, before, more, after)
		if lost := before + int(more) - after; lost > before/20 {
			t.Errorf("%v: of %d live entries and %d new ones %d were dropped, with as many expired ones there", kind, before, more, lost)
		}
		if err := c.validate(); err != nil {
			t.Error(err)
		}
	}
}

// A cache in which nothing expires never asks for the time.
func TestExpiry_ClockIsNotRead(t *testing.T) {
	g := tiny(2, 256, 64)
	reads := 0
	g.now = func() time.Duration { reads++; return 0 }
	c := mustCache(t, g)
	for id := range uint32(3000) {
		k := trafficKey(nil, id%500)
		if err := c.Set(k, make([]byte, id%100)); err != nil {
			t.Fatal(err)
		}
		c.Get(nil, k)
		c.Del(trafficKey(nil, id%7))
		c.DeleteExpired()
	}
	if reads != 0 {
		t.Errorf("the clock was read %d times", reads)
	}
}

func TestOptions_TTL(t *testing.T) {
	if _, err := NewWithOptions(Options{MaxBytes: 1, TTL: -1}); !errors.Is(err, ErrInvalidOptions) {
		t.Errorf("TTL below 0: got %v, want ErrInvalidOptions", err)
	}
	c, err := NewWithOptions(Options{MaxBytes: 1, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer closeCache(t, c)
	k := []byte("k")
	sets := map[string]func(){
		"Set":            func() { c.Set(k, []byte("v")) },
		"SetIfAbsent":    func() { c.SetIfAbsent(k, []byte("v")) },
		"SetIfChanged":   func() { c.SetWithTTL(k, []byte("v"), 0); c.SetIfChanged(k, []byte("v")) },
		"CompareAndSwap": func() { c.SetWithTTL(k, []byte("v"), 0); c.CompareAndSwap(k, []byte("v"), []byte("w")) },
		"Update":         func() { c.Update(k, func([]byte, bool) ([]byte, bool) { return []byte("v"), true }) },
		"Append":         func() { c.Append(k, []byte("v")) },
	}
	for name, set := range sets {
		c.Del(k)
		set()
		if left, ok := c.TTL(k); !ok || left < time.Hour-time.Minute || left > time.Hour {
			t.Errorf("%s: TTL is %v, %v, want an hour", name, left, ok)
		}
	}
}

// An entry that is written again, in another form, has not left, even where a crowd of equal hashes makes an index that
// grows lose entries: if it loses this one, that is told, and there is nothing to write again.
func TestTouch_InACrowd(t *testing.T) {
	for _, large := range []bool{false, true} {
		kept, lost := 0, 0
		for round := range uint32(60) {
			left := map[uint32]bool{}
			g := tiny(32, 64, 256)
			g.seed = [2]uint64{} // all hashes are equal
			g.onEvict = func(k, _ []byte, _ Reason) { left[binary.LittleEndian.Uint32(k)] = true }
			c := mustCache(t, g)
			b, size := c.bucket(c.shared.hash(nil)), 1
			if large {
				b, size = c.largeBucket(c.shared.hash(nil)), g.maxBytes/g.buckets/largeShare+1
			}
			for id := range uint32(60) {
				if err := c.Set(trafficKey(nil, id), make([]byte, size)); err != nil {
					t.Fatal(err)
				}
				if id == 0 {
					growTo(t, b, 8) // a path goes by all of 8 groups, but by 4 of 9
				}
				if !b.index.growing() || b.index.old.groups != 8 {
					continue
				}
				for n := range id { // with each, some homes move
					clear(left)
					of := (n + round) % id
					there := c.Touch(trafficKey(nil, of), time.Hour)
					switch {
					case there && left[of]:
						t.Errorf("large %v, round %d: key %d has left, and is there", large, round, of)
					case there:
						kept++
					case left[of]:
						lost++
					}
				}
			}
		}
		if kept < 100 || lost < 10 {
			t.Errorf("large %v: %d touched entries were kept and %d lost, which proves too little", large, kept, lost)
		}
	}
}

// growTo gives a bucket's index, which has one group, so many.
func growTo(t *testing.T, b *bucket, groups int) {
	t.Helper()
	b.lock()
	defer b.mu.Unlock()
	if err := b.growIndexLocked(groups - 1); err != nil {
		t.Fatal(err)
	}
}
