package entries

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

func mustSet(t testing.TB, c *ringcache.Cache, k, v string, ttl time.Duration) {
	t.Helper()
	require.NoError(t, c.SetWithTTL([]byte(k), []byte(v), ttl))
}

// Lookups read the clock ahead in a bucket where nearly all records have an expiry, and
// afterwards elsewhere. Either way, they find what has not expired, and nothing else.
func TestExpiry_ClockIsReadAheadWhereNearlyAllExpires(t *testing.T) {
	c, age := ringtest.TimedCache(t, ringtest.Tiny(1, 1024, 64))
	b := ringtest.Nth(c, 0)
	keys, vals := [][]byte{[]byte("brief"), []byte("long")}, make([][]byte, 2)
	check := func(ahead bool, what string) {
		t.Helper()
		require.Equal(t, ahead, b.Mortal.Load(), what)
		mustSet(t, c, "brief", "v", *age%clock.Tick+2*clock.Tick)
		mustSet(t, c, "long", "v", time.Hour)
		for _, found := range []bool{true, false} {
			require.Equal(t, found, c.Get(nil, keys[0]) != nil, what)
			require.NotNil(t, c.Get(nil, keys[1]), what)
			_, n := c.GetBatch(nil, keys, vals)
			require.Equal(t, found, n == 2, what)
			require.NotNil(t, vals[1], what)
			*age += 3 * clock.Tick
		}
		require.True(t, c.Del(keys[1]))
		c.DeleteExpired()
	}
	require.NoError(t, c.Set([]byte("plain"), nil))
	require.False(t, b.Mortal.Load(), "nothing expires")
	c.Reset()
	for i := range 60 {
		mustSet(t, c, fmt.Sprint(i), "v", time.Hour)
	}
	check(true, "all expire")
	for i := range 6 {
		require.NoError(t, c.Set(fmt.Append(nil, "plain", i), nil))
	}
	check(false, "a tenth does not")
	for i := range 6 {
		require.True(t, c.Del(fmt.Append(nil, "plain", i)))
	}
	mustSet(t, c, "0", "longer", time.Hour)
	check(true, "all expire again")
	c.Reset()
	require.False(t, b.Mortal.Load(), "there are none")
}

// An entry is found until up to a tick before its time, and never after it, by
// every call that could find it.
func TestExpiry_EveryLookup(t *testing.T) {
	lookups := map[string]func(c *ringcache.Cache, k []byte) bool{
		"Get":    func(c *ringcache.Cache, k []byte) bool { return c.Get(nil, k) != nil },
		"HasGet": func(c *ringcache.Cache, k []byte) bool { _, ok := c.HasGet(nil, k); return ok },
		"Has":    func(c *ringcache.Cache, k []byte) bool { return c.Has(k) },
		"View":   func(c *ringcache.Cache, k []byte) bool { return ringtest.View(c, k, func([]byte) {}) },
		"GetBatch": func(c *ringcache.Cache, k []byte) bool {
			_, n := c.GetBatch(nil, [][]byte{k}, make([][]byte, 1))
			return n == 1
		},
		"Peek": func(c *ringcache.Cache, k []byte) bool { _, ok := c.Peek(nil, k); return ok },
		"TTL":  func(c *ringcache.Cache, k []byte) bool { _, ok := c.TTL(k); return ok },
		"GetWithTTL": func(c *ringcache.Cache, k []byte) bool {
			_, _, ok := c.GetWithTTL(nil, k)
			return ok
		},
	}
	for _, size := range []int{1, 40_000, floorValue} { // short, long, and in a large bucket
		for offset := time.Duration(0); offset < clock.Tick; offset += clock.Tick / 3 {
			for name, found := range lookups {
				c, age := ringtest.TimedCache(t, ringtest.Default(ringtest.MinBytes))
				*age = offset
				mustSet(t, c, "k", string(make([]byte, size)), time.Second)
				*age = offset + time.Second - clock.Tick
				assert.True(t, found(c, []byte("k")), "%s of %d bytes, a tick before its time", name, size)
				*age = offset + time.Second
				assert.False(t, found(c, []byte("k")), "%s of %d bytes, at the end of its time", name, size)
			}
		}
	}
}

const floorValue = ringtest.MinBytes / 16

// GetWithTTL tells both of one entry, and never 0 of one that expires.
func TestGetWithTTL(t *testing.T) {
	for _, size := range []int{0, 1, 40_000, floorValue} { // short, long, and in a large bucket
		c, age := ringtest.TimedCache(t, ringtest.Default(ringtest.MinBytes))
		k, value := []byte("k"), make([]byte, size)
		check := func(want []byte, wantTTL time.Duration, wantOK bool) {
			t.Helper()
			before := c.Stats()
			v, ttl, ok := c.GetWithTTL([]byte("dst "), k)
			assert.Equal(t, append([]byte("dst "), want...), v)
			assert.Equal(t, wantTTL, ttl)
			assert.Equal(t, wantOK, ok)
			after := c.Stats()
			assert.Equal(t, before.GetCalls+1, after.GetCalls, "it is one lookup")
			assert.Equal(t, wantOK, before.Misses == after.Misses)
		}
		check(nil, 0, false)
		require.NoError(t, c.Set(k, value))
		check(value, 0, true)
		require.NoError(t, c.SetWithTTL(k, value, time.Minute))
		check(value, time.Minute, true)
		*age += time.Minute - clock.Tick
		check(value, clock.Tick, true)
		*age += clock.Tick
		check(nil, 0, false)
	}
}

// The clock goes on between the lookup and the question how long there is left.
func TestGetWithTTL_ExpiresMeanwhile(t *testing.T) {
	age, asked := time.Duration(0), 0
	g := ringtest.Tiny(1, 1024, 32)
	g.Elapsed = func() time.Duration {
		if asked++; asked == 2 { // the first is whether it has expired
			age += time.Hour
		}
		return age
	}
	c := ringtest.MustCache(t, g)
	mustSet(t, c, "k", "v", time.Minute)
	asked = 0
	v, ttl, ok := c.GetWithTTL(nil, []byte("k"))
	require.Equal(t, "v", string(v))
	require.True(t, ok)
	require.Equal(t, time.Duration(1), ttl, "0 would be for ever")
	_, _, ok = c.GetWithTTL(nil, []byte("k"))
	require.False(t, ok)
}

func TestExpiry_SetWithTTL(t *testing.T) {
	g := ringtest.Default(ringtest.MinBytes)
	g.TTL = time.Minute
	c, age := ringtest.TimedCache(t, g)
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
		{clock.Tick, clock.Tick, true},
	} {
		mustSet(t, c, "k", "v", time.Hour)
		mustSet(t, c, "k", "v", tt.set)
		left, ok := c.TTL(k)
		assert.Equal(t, tt.ok, ok, "set for %v", tt.set)
		assert.Equal(t, tt.left, left, "set for %v", tt.set)
	}
	require.NoError(t, c.Set(k, []byte("v")))
	*age += time.Second
	left, ok := c.TTL(k)
	require.True(t, ok)
	require.Equal(t, 59*time.Second, left, "by Set: the default less a second")
	require.ErrorIs(t, c.SetWithTTL(k, make([]byte, floorValue+1), time.Hour), ringcache.ErrTooLarge)
	require.False(t, c.Has(k))
	require.NoError(t, c.SetWithTTL(make([]byte, record.MaxKey+1), nil, -1),
		"removing a key that is too long to be there")
}

// A time to live below the clock's tick cannot be kept. As after any error of a Set, the
// key is absent; what a load brings is returned and not stored.
func TestExpiry_BelowATickIsRefused(t *testing.T) {
	g := ringtest.Tiny(2, 1024, 64)
	var left []ringcache.RemovalReason
	g.OnRemove = func(gone ringcache.Removal) { left = append(left, gone.Reason) }
	for _, ttl := range []time.Duration{1, 60, clock.Tick - 1} {
		for _, size := range []int{3, 2000} {
			c, v := ringtest.MustCache(t, g), ringtest.Filler(size)
			k := []byte("k")
			require.NoError(t, c.Set(k, v))
			left = nil
			err := c.SetWithTTL(k, v, ttl)
			require.ErrorIs(t, err, ringcache.ErrTTLTooShort)
			require.EqualError(t, err, "ringcache: set entry: time to live of "+ttl.String()+
				", at least 100ms: time to live too short")
			require.Zero(t, c.Len())
			require.Equal(t, []ringcache.RemovalReason{ringcache.RemovedReplaced}, left)

			require.NoError(t, c.Set(k, v))
			left = nil
			require.True(t, c.Touch(k, ttl), "it was there")
			require.Zero(t, c.Len())
			require.False(t, c.Touch(k, ttl), "it is gone")
			require.Equal(t, []ringcache.RemovalReason{ringcache.RemovedDeleted}, left)

			for _, absent := range []bool{false, true} {
				got, err := c.GetOrLoad(t.Context(), nil, k,
					func(context.Context, []byte) ([]byte, time.Duration, error) {
						return v, ttl, ringtest.AbsentIf(absent)
					})
				require.Equal(t, absent, errors.Is(err, ringcache.ErrAbsent))
				require.True(t, absent || bytes.Equal(v, got))
				require.Zero(t, c.Len())
			}
			var s ringcache.Stats
			c.UpdateStats(&s)
			require.EqualValues(t, 2, s.Loads.Dropped)
			require.EqualValues(t, 3, s.SetCalls)
			require.NoError(t, ringtest.Validate(c))
		}
	}
}

// What Touch does to the forms of a record: in place where there is room, else
// by writing it again. Value and standing stay.
func TestExpiry_Touch(t *testing.T) {
	for _, size := range []int{0, 5, 33_000, floorValue} {
		c, age := ringtest.TimedCache(t, ringtest.Default(ringtest.MinBytes))
		k := []byte("k")
		value := string(ringtest.Stamp{ID: 1, Version: 2, Size: size}.Value(nil))
		for _, ttl := range []time.Duration{time.Second, 0, -1} {
			require.False(t, c.Touch(k, ttl), "it is not there")
		}
		mustSet(t, c, "k", value, 0)
		for range 3 { // a standing that is to be kept
			c.Has(k)
		}
		for _, ttl := range []time.Duration{0, time.Minute, time.Second, 0, time.Hour} {
			what := fmt.Sprintf("touched %d bytes for %v", size, ttl)
			require.True(t, c.Touch(k, ttl), what)
			left, ok := c.TTL(k)
			require.True(t, ok, what)
			require.Equal(t, ttl, left, what)
			require.True(t, string(c.Get(nil, k)) == value, what)
			require.Equal(t, 1, c.Len(), what)
		}
		require.Equal(t, 3, freqOf(t, c, k), "frequency of %d bytes", size)
		*age += time.Hour
		require.False(t, c.Touch(k, time.Hour), "it has expired")
		require.False(t, c.Has(k))
		mustSet(t, c, "k", value, time.Hour)
		require.True(t, c.Touch(k, -1))
		require.False(t, c.Has(k))
		require.Zero(t, c.Len())
	}
	c, _ := ringtest.TimedCache(t, ringtest.Default(ringtest.MinBytes))
	mustSet(t, c, "k", "v", 0)
	before := ringtest.StatsOf(c)
	c.Touch([]byte("k"), time.Second)
	c.TTL([]byte("k"))
	after := ringtest.StatsOf(c)
	require.Equal(t, before.SetCalls, after.SetCalls)
	require.Equal(t, before.GetCalls, after.GetCalls)
	require.Equal(t, before.DelCalls, after.DelCalls)
}

// freqOf returns the frequency of an entry.
func freqOf(t testing.TB, c *ringcache.Cache, k []byte) int {
	t.Helper()
	h := ringtest.HashOf(c, k)
	for _, b := range []ringtest.Bucket{ringtest.BucketOf(c, h), ringtest.LargeBucketOf(c, h)} {
		var f store.Found
		if b.Find(&f, k, h) {
			return index.Freq(f.Slot)
		}
	}
	require.Fail(t, "it is not there", "%s", k)
	return 0
}

func TestExpiry_DeleteExpired(t *testing.T) {
	c, age := ringtest.TimedCache(t, ringtest.Default(ringtest.MinBytes))
	require.Zero(t, c.DeleteExpired(), "of an empty cache")
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
		require.Equal(t, want, c.DeleteExpired(), "after %d s", s)
		require.Zero(t, c.DeleteExpired(), "again after %d s", s)
		require.Equal(t, n/10*(10-s), c.Len(), "after %d s", s)
	}
	s := ringtest.StatsOf(c)
	require.EqualValues(t, n/10*9+1, s.ExpiredEntries)
	require.GreaterOrEqual(t, s.DeadBytes, uint64(floorValue))
	require.Zero(t, s.EvictedEntries)
	assert.NoError(t, ringtest.Validate(c))
}

// A Set, a Del and the like that come across an expired entry reclaim it, and
// treat it as absent.
func TestExpiry_ComeAcross(t *testing.T) {
	k, v := []byte("k"), []byte("v")
	for name, call := range map[string]func(c *ringcache.Cache) bool{
		"Del":       func(c *ringcache.Cache) bool { return !c.Del(k) },
		"GetAndDel": func(c *ringcache.Cache) bool { _, ok := c.GetAndDel(nil, k); return !ok },
		"SetIfAbsent": func(c *ringcache.Cache) bool {
			ok, _ := ringtest.SetIfAbsent(c, k, v)
			return ok
		},
		"SetIfChanged": func(c *ringcache.Cache) bool { ok, _ := c.SetIfChanged(k, v); return ok },
		"CompareAndSwap": func(c *ringcache.Cache) bool {
			ok, _ := c.CompareAndSwap(k, v, nil)
			return !ok
		},
		"Append": func(c *ringcache.Cache) bool {
			return c.Update(k, ringtest.Append([]byte("x"))) == nil && string(c.Get(nil, k)) == "x"
		},
		"Update": func(c *ringcache.Cache) bool {
			missed := false
			err := c.Update(k, ringtest.Replace(func(old []byte, ok bool) ([]byte, bool) {
				missed = !ok && len(old) == 0
				return nil, true
			}))
			return missed && err == nil
		},
		"Set": func(c *ringcache.Cache) bool { return c.Set(k, v) == nil && freqOf(t, c, k) == 0 },
		"SetWithTTL": func(c *ringcache.Cache) bool {
			return c.SetWithTTL(k, v, time.Second) == nil && freqOf(t, c, k) == 0
		},
	} {
		c, age := ringtest.TimedCache(t, ringtest.Default(ringtest.MinBytes))
		mustSet(t, c, "k", "v", time.Second)
		for range 3 {
			c.Has(k)
		}
		*age = time.Second
		assert.True(t, call(c), "%s: an expired entry is not taken for absent", name)
		if name != "CompareAndSwap" {
			assert.EqualValues(t, 1, ringtest.StatsOf(c).ExpiredEntries, name)
		}
		assert.NoError(t, ringtest.Validate(c), "%s", name)
	}
}

// The space of what is expired is taken before that of what is live: new
// entries in as many bytes as have expired drop next to nothing.
func TestExpiry_SpaceIsReclaimedFirst(t *testing.T) {
	ringtest.SkipUnderRace(t)
	for _, kind := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		g := ringtest.Default(ringtest.MinBytes)
		g.Policy = kind
		g.Seed = ringtest.TestSeed
		c, age := ringtest.TimedCache(t, g)
		key := func(id uint32) []byte { return binary.LittleEndian.AppendUint32(nil, id) }
		value := make([]byte, 400)
		set := func(id uint32, ttl time.Duration) {
			if err := c.SetWithTTL(key(id), value, ttl); err != nil {
				require.NoError(t, err)
			}
		}
		isLong := func(id uint32) bool { return id%2 != 0 }
		full := uint32(0) // more than fits, every second entry for a second
		for ; full == 0 || full%256 != 0 || int(ringtest.StatsOf(c).EvictedEntries) < c.Len()/4; full++ {
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
		assert.LessOrEqual(t, before+int(more)-after, before/20,
			"%v: of %d live entries and %d new ones so many were dropped, with as many expired",
			kind, before, more)
		assert.NoError(t, ringtest.Validate(c))
	}
}

// A cache in which nothing expires hardly ever asks for the time.
func TestExpiry_ClockIsNotRead(t *testing.T) {
	g := ringtest.Tiny(2, 256, 64)
	reads := 0
	g.Elapsed = func() time.Duration { reads++; return 0 }
	c := ringtest.MustCache(t, g)
	for id := range uint32(3000) {
		k := ringtest.TrafficKey(nil, id%500)
		if err := c.Set(k, make([]byte, id%100)); err != nil {
			require.NoError(t, err)
		}
		c.Get(nil, k)
		c.Del(ringtest.TrafficKey(nil, id%7))
		c.DeleteExpired()
	}
	require.Less(t, reads, 3000/20, "it is read once for each turn of a ring, and never by a lookup")
	reads = 0
	for id := range uint32(3000) {
		c.Get(nil, ringtest.TrafficKey(nil, id%500))
	}
	require.Zero(t, reads)
}

func TestOptions_TTL(t *testing.T) {
	_, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 1 << 20, TTL: -1})
	require.ErrorIs(t, err, ringcache.ErrInvalidOptions)
	c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 1 << 20, TTL: time.Hour})
	require.NoError(t, err)
	defer ringtest.CloseCache(t, c)
	k, v, w := []byte("k"), []byte("v"), []byte("w")
	keep := func([]byte, bool) ([]byte, bool) { return v, true }
	for name, set := range map[string]func(){
		"Set":            func() { c.Set(k, v) },
		"SetIfChanged":   func() { c.SetIfChanged(k, v) },
		"CompareAndSwap": func() { c.Set(k, v); c.CompareAndSwap(k, v, w) },
		"Update":         func() { c.Update(k, ringtest.Replace(keep)) },
		"Append":         func() { c.Update(k, ringtest.Append(v)) },
		"SetBatch":       func() { c.SetBatch([][]byte{k}, [][]byte{v}) },
	} {
		c.Del(k)
		set()
		left, ok := c.TTL(k)
		assert.True(t, ok, name)
		assert.InDelta(t, time.Hour, left, float64(time.Minute), name)
	}
}
