package loads

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// A negative entry is there for loads, and for nobody else.
func TestLoader_Absent(t *testing.T) {
	// In a small bucket, and in a large one.
	for _, k := range [][]byte{[]byte("key"), make([]byte, 3000)} {
		t.Run(fmt.Sprint(len(k)), func(t *testing.T) {
			testAbsent(t, k)
		})
	}
}

func testAbsent(t *testing.T, k []byte) {
	nothing := func(context.Context, []byte) ([]byte, time.Duration, error) {
		return []byte("ignored"), 0, ringcache.ErrAbsent
	}
	absent := func(t *testing.T) *ringcache.Cache {
		c := ringtest.MustCache(t, ringtest.Tiny(4, 1024, 64))
		for range 2 {
			v, err := c.GetOrLoad(context.Background(), []byte("held"), k, nothing)
			require.ErrorIs(t, err, ringcache.ErrAbsent)
			require.Equal(t, "held", string(v))
		}
		var s ringcache.Stats
		c.UpdateStats(&s)
		require.EqualValues(t, 1, s.Loads.Started)
		require.EqualValues(t, 2, s.Misses)
		require.Zero(t, s.Loads.Errors)
		require.Equal(t, 1, c.Len())
		return c
	}
	for name, look := range map[string]func(c *ringcache.Cache) bool{
		"Get":    func(c *ringcache.Cache) bool { return c.Get(nil, k) != nil },
		"HasGet": func(c *ringcache.Cache) bool { _, ok := c.HasGet(nil, k); return ok },
		"Has":    func(c *ringcache.Cache) bool { return c.Has(k) },
		"View": func(c *ringcache.Cache) bool {
			return ringtest.View(c, k, func([]byte) { assert.Fail(t, "called") })
		},
		"GetBatch": func(c *ringcache.Cache) bool {
			_, n := c.GetBatch(nil, [][]byte{k}, make([][]byte, 1))
			return n != 0
		},
		"TTL":   func(c *ringcache.Cache) bool { _, ok := c.TTL(k); return ok },
		"Touch": func(c *ringcache.Cache) bool { return c.Touch(k, time.Hour) },
		"swap": func(c *ringcache.Cache) bool {
			ok, _ := c.CompareAndSwap(k, nil, []byte("v"))
			return ok
		},
		"Del":       func(c *ringcache.Cache) bool { return c.Del(k) },
		"GetAndDel": func(c *ringcache.Cache) bool { _, ok := c.GetAndDel(nil, k); return ok },
		"Update": func(c *ringcache.Cache) (there bool) {
			c.Update(k, ringtest.Replace(func(_ []byte, ok bool) ([]byte, bool) {
				there = ok
				return nil, false
			}))
			return there
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := absent(t)
			require.False(t, look(c))
			require.NoError(t, ringtest.Validate(c))
			if name == "Del" || name == "GetAndDel" || name == "Update" {
				require.Zero(t, c.Len(), "the negative entry is to be removed")
			}
		})
	}
	for name, set := range map[string]func(c *ringcache.Cache, v []byte) error{
		"Set": func(c *ringcache.Cache, v []byte) error { return c.Set(k, v) },
		"SetIfAbsent": func(c *ringcache.Cache, v []byte) error {
			ok, err := ringtest.SetIfAbsent(c, k, v)
			require.True(t, ok)
			return err
		},
		"SetIfChanged": func(c *ringcache.Cache, v []byte) error {
			ok, err := c.SetIfChanged(k, v)
			require.True(t, ok)
			return err
		},
		"SetWithTTL": func(c *ringcache.Cache, v []byte) error { return c.SetWithTTL(k, v, time.Hour) },
		"Append":     func(c *ringcache.Cache, v []byte) error { return c.Update(k, ringtest.Append(v)) },
	} {
		for _, v := range [][]byte{nil, []byte("value"), ringtest.Filler(3000)} {
			t.Run(fmt.Sprint(name, len(v)), func(t *testing.T) {
				c := absent(t)
				require.NoError(t, set(c, v))
				got, err := c.GetOrLoad(context.Background(), nil, k, nothing)
				require.NoError(t, err)
				require.True(t, bytes.Equal(v, got))
				require.Equal(t, 1, c.Len())
				require.NoError(t, ringtest.Validate(c))
			})
		}
	}
}

// A value gives way to a negative entry, and that to another.
func TestLoader_AbsentReplaces(t *testing.T) {
	g := ringtest.Roomy(0)
	g.TTL = time.Minute
	c, age := ringtest.TimedCache(t, g)
	k := []byte("key")
	for _, r := range []ringtest.Loaded{
		{}, {Err: ringcache.ErrAbsent}, {Err: ringcache.ErrAbsent, TTL: time.Hour},
		{Value: []byte("v"), TTL: time.Hour}, {Err: fmt.Errorf("no row: %w", ringcache.ErrAbsent)}, {},
	} {
		*age += 2 * time.Hour // what is there has expired, and has not been removed
		_, err := c.GetOrLoad(t.Context(), nil, k,
			func(context.Context, []byte) ([]byte, time.Duration, error) {
				return r.Value, r.TTL, r.Err
			})
		require.Equal(t, r.Err != nil, errors.Is(err, ringcache.ErrAbsent))
		require.Equal(t, -1, ringtest.Waiting(c, k))
		require.Equal(t, 1, c.Len())
		require.Equal(t, r.Err != nil, ringtest.IsNegative(c, k))
		require.Equal(t, r.Err == nil, c.Has(k))
		require.NoError(t, ringtest.Validate(c))
	}
}

// OnRemove is told of values that a negative entry replaces, and never of the negative entry.
func TestLoader_AbsentAndOnRemove(t *testing.T) {
	g := ringtest.Tiny(2, 512, 12)
	told := map[string]ringcache.RemovalReason{}
	due := make(chan ringcache.RemovalReason, 1)
	g.OnRemove = func(gone ringcache.Removal) {
		if string(gone.Key) == "due" {
			due <- gone.Reason // by a load that nobody waits for
			return
		}
		told[string(gone.Key)] = gone.Reason
	}
	var now time.Duration
	g.Elapsed = func() time.Duration { return now }
	g.RefreshAhead = 2 * time.Hour
	c := ringtest.MustCache(t, g)
	ttl := time.Hour
	nothing := func(context.Context, []byte) ([]byte, time.Duration, error) {
		return nil, ttl, ringcache.ErrAbsent
	}
	for i := range 5000 { // more than fit
		_, err := c.GetOrLoad(context.Background(), nil, fmt.Append(nil, "key ", i), nothing)
		require.ErrorIs(t, err, ringcache.ErrAbsent)
	}
	require.NoError(t, c.Set([]byte("key 4999"), nil))
	require.True(t, c.Del([]byte("key 4999")))
	require.Equal(t, map[string]ringcache.RemovalReason{"key 4999": ringcache.RemovedDeleted}, told)
	require.NotZero(t, c.Len())
	now = 2 * time.Hour
	require.NotZero(t, c.DeleteExpired())
	_, err := c.GetOrLoad(context.Background(), nil, []byte("key"), nothing)
	require.ErrorIs(t, err, ringcache.ErrAbsent)
	c.Reset()
	require.Len(t, told, 1)

	require.NoError(t, c.SetWithTTL([]byte("due"), nil, time.Minute))
	_, err = c.GetOrLoad(context.Background(), nil, []byte("due"), nothing)
	require.NoError(t, err)
	require.Equal(t, ringcache.RemovedDeleted, <-due)
	require.Equal(t, 1, c.Len())
}

// A panic in OnRemove, which a load's result has brought about, is the load's.
func TestLoader_OnRemovePanics(t *testing.T) {
	g := ringtest.Tiny(2, 512, 12)
	g.OnRemove = func(gone ringcache.Removal) { panic(gone.Reason) }
	c := ringtest.MustCache(t, g)
	load, _ := ringtest.Gives("a value of some length")
	for i := range 5000 {
		r := <-ringtest.Ask(context.Background(), c, fmt.Append(nil, "key ", i), load)
		if p, ok := r.Panicked.(*ringcache.LoadPanic); ok {
			require.Equal(t, ringcache.RemovedEvicted, p.Value)
			require.NoError(t, ringtest.Validate(c))
			return
		}
		require.NoError(t, r.Err)
	}
	require.Fail(t, "nothing was dropped")
}

// Negative entries that are asked for stay longer than those that are not, as entries do.
func TestLoader_AbsentStays(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(2, 512, 24))
	nothing := ringtest.LoadFunc(ringtest.FindsNothing)
	ask := func(k string) {
		_, err := c.GetOrLoad(context.Background(), nil, []byte(k), nothing)
		require.ErrorIs(t, err, ringcache.ErrAbsent)
	}
	const rounds = 2000 // many times what fits
	for i := range rounds {
		ask("asked for again and again")
		ask(fmt.Sprint("asked for once ", i))
		require.NoError(t, c.Set(fmt.Append(nil, "other ", i), make([]byte, 50)))
	}
	var s ringcache.Stats
	c.UpdateStats(&s)
	require.Less(t, s.Loads.Started, uint64(rounds+5))
}

// An error that is ErrAbsent is the negative result: of a load that asks another cache, or
// that has no better word for it. It is remembered for as long as loaded says.
func TestLoader_ErrAbsentIsTheNegativeResult(t *testing.T) {
	for _, loadErr := range []error{ringcache.ErrAbsent, fmt.Errorf("user 7: %w", ringcache.ErrAbsent),
		fmt.Errorf("ringcache: load entry: %w", ringcache.ErrAbsent)} {
		g := ringtest.Tiny(4, 1024, 16)
		var now time.Duration
		g.Elapsed = func() time.Duration { return now }
		c := ringtest.MustCache(t, g)
		k, loads := []byte("key"), 0
		load := func(context.Context, []byte) ([]byte, time.Duration, error) {
			loads++
			return []byte("not this"), time.Minute, loadErr
		}
		for range 3 {
			v, err := c.GetOrLoad(context.Background(), []byte("dst"), k, load)
			require.ErrorIs(t, err, ringcache.ErrAbsent)
			require.Equal(t, "dst", string(v))
		}
		require.Equal(t, 1, loads)
		require.True(t, ringtest.IsNegative(c, k))
		require.False(t, c.Has(k))
		now += time.Minute
		_, err := c.GetOrLoad(context.Background(), nil, k, load)
		require.ErrorIs(t, err, ringcache.ErrAbsent)
		require.Equal(t, 2, loads, "it is over")
		var s ringcache.Stats
		c.UpdateStats(&s)
		require.Zero(t, s.Loads.Errors)
	}
}

// A result with a TTL below 0 is for those who wait, and replaces what is there
// with nothing.
func TestLoader_NotToBeStored(t *testing.T) {
	c := ringtest.LoaderCache(t)
	k := []byte("key")
	for i := range 3 {
		load := func(context.Context, []byte) ([]byte, time.Duration, error) {
			return []byte{byte(i)}, -1, nil
		}
		v, err := c.GetOrLoad(context.Background(), nil, k, load)
		require.NoError(t, err)
		require.Equal(t, []byte{byte(i)}, v)
		require.Zero(t, c.Len())
	}
	var s ringcache.Stats
	c.UpdateStats(&s)
	require.EqualValues(t, 3, s.Loads.Started)
	require.Zero(t, s.Loads.Dropped)
}
