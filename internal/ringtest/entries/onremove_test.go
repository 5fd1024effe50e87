package entries

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// listener returns a cache and the entries that its OnRemove was told of.
func listener(t *testing.T, o ringcache.Options) (*ringcache.Cache, *[]string) {
	t.Helper()
	told := new([]string)
	o.MaxBytes = ringtest.MinBytes
	o.OnRemove = func(gone ringcache.Removal) {
		*told = append(*told, fmt.Sprintf("%s %.20s %s", gone.Key, gone.Value, gone.Reason))
		clear(gone.Key[:cap(gone.Key)]) // they are the callback's
		clear(gone.Value[:cap(gone.Value)])
	}
	c, err := ringcache.NewWithOptions(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c, told
}

func TestOnRemove_Reasons(t *testing.T) {
	c, told := listener(t, ringcache.Options{})
	k, other := []byte("k"), []byte("new")
	away := func([]byte, bool) ([]byte, bool) { return nil, false }
	cas := func(old, new []byte) error { _, err := c.CompareAndSwap(k, old, new); return err }
	ifChanged := func(v string) error { _, err := c.SetIfChanged(k, []byte(v)); return err }
	for _, tt := range []struct {
		name string
		call func() error
		want string // of the value "old"
	}{
		{"Set, same length", func() error { return c.Set(k, other) }, "replaced"},
		{"Set, other length", func() error { return c.Set(k, []byte("longer")) }, "replaced"},
		{"Set, large", func() error { return c.Set(k, make([]byte, ringtest.MaxValue)) }, "replaced"},
		{"Set, too large", func() error {
			require.ErrorIs(t, c.Set(k, make([]byte, ringtest.MaxValue+1)), ringcache.ErrTooLarge)
			return nil
		}, "replaced"},
		{"SetWithTTL", func() error { return c.SetWithTTL(k, other, time.Hour) }, "replaced"},
		{"SetWithTTL(-1)", func() error { return c.SetWithTTL(k, other, -1) }, "deleted"},
		{"Touch", func() error { c.Touch(k, time.Hour); return nil }, ""},
		{"Touch(-1)", func() error { c.Touch(k, -1); return nil }, "deleted"},
		{"Del", func() error { c.Del(k); return nil }, "deleted"},
		{"GetAndDel", func() error { c.GetAndDel(nil, k); return nil }, "deleted"},
		{"SetIfAbsent", func() error { _, err := ringtest.SetIfAbsent(c, k, nil); return err }, ""},
		{"SetIfChanged", func() error { return ifChanged("new") }, "replaced"},
		{"SetIfChanged, equal", func() error { return ifChanged("old") }, ""},
		{"CompareAndSwap", func() error { return cas([]byte("old"), nil) }, "replaced"},
		{"CompareAndSwap, not", func() error { return cas([]byte("x"), nil) }, ""},
		{"Update", func() error { return c.Update(k, ringtest.Replace(keep(nil))) }, "replaced"},
		{"Update, not kept", func() error { return c.Update(k, ringtest.Replace(away)) }, "deleted"},
		{"Append", func() error { return c.Update(k, ringtest.Append([]byte("er"))) }, "replaced"},
		{"Reset", func() error { c.Reset(); return nil }, "reset"},
		{"Get", func() error { c.Get(nil, k); return nil }, ""},
	} {
		c.Del(k)
		require.NoError(t, c.Set(k, []byte("old")))
		*told = nil
		require.NoError(t, tt.call(), tt.name)
		if tt.want == "" {
			require.Empty(t, *told, tt.name)
			continue
		}
		require.Equal(t, []string{"k old " + tt.want}, *told, tt.name)
	}
	c.Reset()
	*told = nil
	require.NoError(t, c.Set(k, make([]byte, ringtest.MaxValue)))
	c.Del(k)
	require.Len(t, *told, 1, "a large value")
}

func TestOnRemove_Expired(t *testing.T) {
	c, told := listener(t, ringcache.Options{TTL: 100 * time.Millisecond})
	require.NoError(t, c.Set([]byte("a"), []byte("1")))
	time.Sleep(100 * time.Millisecond)
	require.False(t, c.Has([]byte("a")))
	require.Empty(t, *told)
	require.NoError(t, c.Set([]byte("a"), []byte("2")))
	require.Equal(t, []string{"a 1 expired"}, *told)
	time.Sleep(100 * time.Millisecond)
	require.Equal(t, 1, c.DeleteExpired())
	require.Equal(t, []string{"a 1 expired", "a 2 expired"}, *told)
}

// OnRemove is also told of entries that a large Set evicts from other buckets.
func TestOnRemove_Evicted(t *testing.T) {
	c, told := listener(t, ringcache.Options{})
	for i := range 60_000 {
		require.NoError(t, c.Set([]byte("small"+strconv.Itoa(i)), make([]byte, 300)))
	}
	for i := range 40 {
		require.NoError(t, c.Set([]byte("large"+strconv.Itoa(i)), make([]byte, ringtest.MaxValue)))
	}
	s := ringtest.StatsOf(c)
	require.EqualValues(t, s.EvictedEntries, len(*told))
	require.Equal(t, 60_040, c.Len()+len(*told))
}

// The callback may call the cache, and a panic in it comes to the caller.
func TestOnRemove_NoLockIsHeld(t *testing.T) {
	var c *ringcache.Cache
	calls := 0
	onRemove := func(gone ringcache.Removal) {
		if calls++; gone.Reason == ringcache.RemovedDeleted {
			panic("mine")
		}
		assert.NoError(t, c.Set([]byte("copy"+strconv.Itoa(calls)), gone.Value[:1]))
		assert.NoError(t, c.Set([]byte("large"+strconv.Itoa(calls)), make([]byte, ringtest.MaxValue)))
		c.Has(gone.Key)
	}
	c, err := ringcache.NewWithOptions(ringcache.Options{
		MaxBytes: ringtest.MinBytes, OnRemove: onRemove,
	})
	require.NoError(t, err)
	ringtest.Within(t, func() {
		k := []byte("k")
		for _, n := range []int{10, 5000, ringtest.MaxValue} {
			assert.NoError(t, c.Set(k, ringtest.Pattern("v", n)))
			assert.NoError(t, c.Set(k, ringtest.Pattern("w", n)))
			assert.NoError(t, c.Set(k, ringtest.Pattern("w", n-1)))
			assert.PanicsWithValue(t, "mine", func() { c.Del(k) })
			assert.False(t, c.Has(k))
		}
		assert.Positive(t, calls)
		assert.NoError(t, c.Close())
	})
}

func TestRemovalReason_String(t *testing.T) {
	for r, want := range map[ringcache.RemovalReason]string{
		ringcache.RemovedEvicted:  "evicted",
		ringcache.RemovedExpired:  "expired",
		ringcache.RemovedDeleted:  "deleted",
		ringcache.RemovedReplaced: "replaced",
		ringcache.RemovedReset:    "reset",
		0:                         "unknown",
		99:                        "unknown",
	} {
		require.Equal(t, want, r.String())
	}
}

// Reset tells why an entry that had expired already is removed, and counts it.
func TestOnRemove_ResetOfExpiredEntries(t *testing.T) {
	now, told := time.Minute, map[string]ringcache.RemovalReason{}
	g := ringtest.Default(ringtest.MinBytes)
	g.Elapsed = func() time.Duration { return now }
	g.OnRemove = func(gone ringcache.Removal) { told[string(gone.Key)] = gone.Reason }
	c := ringtest.MustCache(t, g)
	require.NoError(t, c.Set([]byte("live"), nil))
	require.NoError(t, c.SetWithTTL([]byte("expired"), nil, time.Hour))
	now += time.Hour
	c.Reset()
	require.Equal(t, map[string]ringcache.RemovalReason{
		"live": ringcache.RemovedReset, "expired": ringcache.RemovedExpired,
	}, told)
	require.EqualValues(t, 1, ringtest.StatsOf(c).ExpiredEntries)
}
