package loads

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// held returns a load that waits until it is let go, and the function that does.
func held(load ringtest.LoadFunc) (ringtest.LoadFunc, func()) {
	gate := make(chan struct{})
	return func(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
		<-gate
		return load(ctx, k)
	}, func() { close(gate) }
}

func TestLoader_Hit(t *testing.T) {
	c := ringtest.LoaderCache(t)
	ctx, k := context.Background(), []byte("key")
	load, n := ringtest.Gives("value")
	for range 3 {
		v, err := c.GetOrLoad(ctx, []byte("held "), k, load)
		require.NoError(t, err)
		require.Equal(t, "held value", string(v))
	}
	require.EqualValues(t, 1, n.Load())
	require.Equal(t, "value", string(c.Get(nil, k)))

	ended, cancel := context.WithCancel(ctx)
	cancel()
	v, err := c.GetOrLoad(ended, nil, k, load)
	require.NoError(t, err, "a hit does not wait")
	require.Equal(t, "value", string(v))
	v, err = c.GetOrLoad(ended, []byte("held"), []byte("other"), load)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "held", string(v))
	require.EqualValues(t, 1, n.Load())

	var s ringcache.Stats
	c.UpdateStats(&s)
	require.EqualValues(t, 1, s.Loads.Started)
	require.EqualValues(t, 6, s.GetCalls)
	require.EqualValues(t, 2, s.Misses)
	require.Zero(t, s.SetCalls)
}

func TestLoader_EmptyKeyAndValue(t *testing.T) {
	c := ringtest.LoaderCache(t)
	load, n := ringtest.Gives("")
	for range 2 {
		v, err := c.GetOrLoad(context.Background(), nil, nil, load)
		require.NoError(t, err)
		require.Empty(t, v)
	}
	require.EqualValues(t, 1, n.Load())
	require.True(t, c.Has(nil))
}

func TestLoader_OneLoadForMany(t *testing.T) {
	c := ringtest.LoaderCache(t)
	const callers = 1000
	k := []byte("key")
	load, n := ringtest.Gives("value")
	load, release := held(load)
	var all []<-chan ringtest.Reply
	for range callers {
		all = append(all, ringtest.Ask(context.Background(), c, k, load))
	}
	ringtest.AwaitWaiting(t, c, k, callers)
	release()
	for _, ch := range all {
		r := <-ch
		require.NoError(t, r.Err)
		require.Equal(t, "value", string(r.V))
		clear(r.V) // it is the caller's own
	}
	require.EqualValues(t, 1, n.Load())
	require.Equal(t, "value", string(c.Get(nil, k)))
}

// However callers come in, between the end of a load and the next lookup too.
func TestLoader_OneLoadForEachKey(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	const workers = 8
	load, n := ringtest.Gives("value")
	var wg sync.WaitGroup
	for range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 2000 {
				_, err := c.GetOrLoad(context.Background(), nil, []byte{byte(i), byte(i >> 8)}, load)
				if err != nil {
					assert.NoError(t, err)
				}
			}
		}()
	}
	wg.Wait()
	require.EqualValues(t, 2000, n.Load())
}

func TestLoader_ErrorIsSharedAndNotStored(t *testing.T) {
	c := ringtest.LoaderCache(t)
	k, broken := []byte("key"), errors.New("broken")
	load, release := held(func(context.Context, []byte) ([]byte, time.Duration, error) {
		return []byte("ignored"), 0, broken
	})
	a, b := ringtest.Ask(context.Background(), c, k, load),
		ringtest.Ask(context.Background(), c, k, load)
	ringtest.AwaitWaiting(t, c, k, 2)
	release()
	for _, r := range []ringtest.Reply{<-a, <-b} {
		require.ErrorIs(t, r.Err, broken)
		require.Equal(t, "ringcache: load entry: broken", r.Err.Error())
		require.Nil(t, r.V)
	}
	require.Zero(t, c.Len())
	load, n := ringtest.Gives("value")
	v, err := c.GetOrLoad(context.Background(), nil, k, load)
	require.NoError(t, err)
	require.Equal(t, "value", string(v))
	require.EqualValues(t, 1, n.Load())
	var s ringcache.Stats
	c.UpdateStats(&s)
	require.EqualValues(t, 2, s.Loads.Started)
	require.EqualValues(t, 1, s.Loads.Errors)
	require.Zero(t, s.Loads.Dropped)
}

func TestLoader_PanicReachesAll(t *testing.T) {
	c := ringtest.LoaderCache(t)
	k, broken := []byte("key"), errors.New("broken")
	load, release := held(func(context.Context, []byte) ([]byte, time.Duration, error) {
		panic(broken)
	})
	a, b := ringtest.Ask(context.Background(), c, k, load),
		ringtest.Ask(context.Background(), c, k, load)
	ringtest.AwaitWaiting(t, c, k, 2)
	release()
	for _, r := range []ringtest.Reply{<-a, <-b} {
		p, ok := r.Panicked.(*ringcache.LoadPanic)
		require.True(t, ok, "%T", r.Panicked)
		require.Equal(t, broken, p.Value)
		require.ErrorIs(t, p, broken)
		require.Contains(t, string(p.Stack), "TestLoader_PanicReachesAll")
		require.Contains(t, p.Error(), "ringcache: load entry: panic: broken\n")
	}
	require.NoError(t, (&ringcache.LoadPanic{Value: 1}).Unwrap())
	load, _ = ringtest.Gives("value")
	v, err := c.GetOrLoad(context.Background(), nil, k, load)
	require.NoError(t, err)
	require.Equal(t, "value", string(v))
}

func TestLoader_Goexit(t *testing.T) {
	c := ringtest.LoaderCache(t)
	k := []byte("key")
	load, release := held(func(context.Context, []byte) ([]byte, time.Duration, error) {
		runtime.Goexit()
		return nil, 0, nil
	})
	a, b := ringtest.Ask(context.Background(), c, k, load),
		ringtest.Ask(context.Background(), c, k, load)
	ringtest.AwaitWaiting(t, c, k, 2)
	release()
	for _, r := range []ringtest.Reply{<-a, <-b} {
		require.ErrorContains(t, r.Err, ringtest.ExitedText)
		require.EqualError(t, r.Err,
			"ringcache: load entry: the load called runtime.Goexit, as t.FailNow does")
		require.Nil(t, r.Panicked)
	}
	require.Equal(t, -1, ringtest.Waiting(c, k))
	require.Zero(t, c.Len())
}

// Whatever writes a key while it is loaded: what the load brings is for those
// who waited, and for nobody else.
func TestLoader_Invalidated(t *testing.T) {
	k, other := []byte("key"), []byte("other key")
	large := ringtest.Filler(3000)
	drop := func(old []byte, ok bool) ([]byte, bool) { return nil, false }
	made, loaded := []byte("new"), []byte("loaded")
	for name, tt := range map[string]struct {
		write func(c *ringcache.Cache)
		want  []byte // what is there afterwards
		joins bool   // nothing was written: the load may still be joined
	}{
		"Set":       {func(c *ringcache.Cache) { c.Set(k, made) }, made, false},
		"Set large": {func(c *ringcache.Cache) { c.Set(k, large) }, large, false},
		"Set too large": {func(c *ringcache.Cache) {
			c.Set(k, make([]byte, 1<<20))
		}, nil, false},
		"SetWithTTL": {func(c *ringcache.Cache) {
			c.SetWithTTL(k, made, time.Hour)
		}, made, false},
		"SetWithTTL past": {func(c *ringcache.Cache) { c.SetWithTTL(k, made, -1) }, nil, false},
		"SetIfAbsent":     {func(c *ringcache.Cache) { ringtest.SetIfAbsent(c, k, made) }, made, false},
		"SetIfChanged":    {func(c *ringcache.Cache) { c.SetIfChanged(k, made) }, made, false},
		"Update":          {func(c *ringcache.Cache) { c.Update(k, ringtest.Store(made)) }, made, false},
		"Update away":     {func(c *ringcache.Cache) { c.Update(k, ringtest.Replace(drop)) }, nil, false},
		"Append":          {func(c *ringcache.Cache) { c.Update(k, ringtest.Append(made)) }, made, false},
		"Del":             {func(c *ringcache.Cache) { c.Del(k) }, nil, false},
		"GetAndDel":       {func(c *ringcache.Cache) { c.GetAndDel(nil, k) }, nil, false},
		"Touch away":      {func(c *ringcache.Cache) { c.Touch(k, -1) }, nil, false},
		"Reset":           {func(c *ringcache.Cache) { c.Reset() }, nil, false},
		"CompareAndSwap": {func(c *ringcache.Cache) {
			c.CompareAndSwap(k, large, made)
		}, loaded, true},
		"Touch":                     {func(c *ringcache.Cache) { c.Touch(k, time.Hour) }, loaded, true},
		"Set of another":            {func(c *ringcache.Cache) { c.Set(other, made) }, loaded, true},
		"Del of another":            {func(c *ringcache.Cache) { c.Del(other) }, loaded, true},
		"DeleteExpired":             {func(c *ringcache.Cache) { c.DeleteExpired() }, loaded, true},
		"a lookup that is no write": {func(c *ringcache.Cache) { c.Get(nil, k) }, loaded, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := ringtest.Tiny(4, 1024, 64)
			g.Seed = [2]uint64{} // all keys meet in one bucket
			c := ringtest.MustCache(t, g)
			load, _ := ringtest.Gives("loaded")
			load, release := held(load)
			early := ringtest.Ask(context.Background(), c, k, load)
			ringtest.AwaitWaiting(t, c, k, 1)
			tt.write(c)
			if tt.joins {
				require.Equal(t, 1, ringtest.Waiting(c, k))
			} else {
				require.Equal(t, -1, ringtest.Waiting(c, k), "a load that is out of date can be joined")
			}
			release()
			r := <-early
			require.NoError(t, r.Err)
			require.Equal(t, "loaded", string(r.V))
			require.Equal(t, -1, ringtest.Waiting(c, k))
			got, ok := c.HasGet(nil, k)
			require.Equal(t, tt.want != nil, ok)
			require.True(t, bytes.Equal(tt.want, got), "%q is there", got)
		})
	}
}

// Of two loads of a key, the one that began before a write does not spoil what
// the other has brought.
func TestLoader_InvalidatedTwice(t *testing.T) {
	c := ringtest.LoaderCache(t)
	k := []byte("key")
	oldLoad, _ := ringtest.Gives("old")
	oldLoad, releaseOld := held(oldLoad)
	newLoad, _ := ringtest.Gives("new")
	newLoad, releaseNew := held(newLoad)

	early := ringtest.Ask(context.Background(), c, k, oldLoad)
	ringtest.AwaitWaiting(t, c, k, 1)
	c.Del(k)
	late := ringtest.Ask(context.Background(), c, k, newLoad)
	ringtest.AwaitWaiting(t, c, k, 1)
	releaseOld()
	require.Equal(t, "old", string((<-early).V))
	require.False(t, c.Has(k))
	require.Equal(t, 1, ringtest.Waiting(c, k), "the end of the old load must leave the new one alone")
	releaseNew()
	require.Equal(t, "new", string((<-late).V))
	require.Equal(t, "new", string(c.Get(nil, k)))
	var s ringcache.Stats
	c.UpdateStats(&s)
	require.EqualValues(t, 1, s.Loads.Dropped)
}

func TestLoader_Refused(t *testing.T) {
	c := ringtest.LoaderCache(t)
	for name, k := range map[string][]byte{
		"value": []byte("key"),
		"key":   make([]byte, record.MaxKey+1),
	} {
		t.Run(name, func(t *testing.T) {
			v := ringtest.Filler(ringtest.Shared(c).MaxValue())
			if name == "value" {
				v = ringtest.Filler(ringtest.Shared(c).MaxValue() + 1)
			}
			for range 2 {
				load := func(context.Context, []byte) ([]byte, time.Duration, error) { return v, 0, nil }
				got, err := c.GetOrLoad(context.Background(), nil, k, load)
				require.NoError(t, err)
				require.True(t, bytes.Equal(v, got))
				require.False(t, c.Has(k))
			}
		})
	}
	var s ringcache.Stats
	c.UpdateStats(&s)
	require.EqualValues(t, 4, s.Loads.Started)
	require.EqualValues(t, 4, s.Loads.Dropped)
}

// A closed cache stores nothing, but its loads are made, and shared, as before.
func TestLoader_Closed(t *testing.T) {
	c := ringtest.LoaderCache(t)
	k := []byte("key")
	load, n := ringtest.Gives("value")
	held, release := held(load)
	under := ringtest.Ask(context.Background(), c, k, held)
	ringtest.AwaitWaiting(t, c, k, 1)
	require.NoError(t, c.Close())
	first := ringtest.Ask(context.Background(), c, k, held)
	ringtest.AwaitWaiting(t, c, k, 1)
	second := ringtest.Ask(context.Background(), c, k, ringtest.NeverLoads)
	ringtest.AwaitWaiting(t, c, k, 2)
	release()
	for _, ch := range []<-chan ringtest.Reply{under, first, second} {
		r := <-ch
		require.NoError(t, r.Err)
		require.Equal(t, "value", string(r.V))
	}
	require.EqualValues(t, 2, n.Load())
	for name, get := range map[string]func() (string, error){
		"Cache": func() (string, error) {
			v, err := c.GetOrLoad(context.Background(), nil, k, load)
			return string(v), err
		},
		"Namespace": func() (string, error) {
			v, err := c.Namespace("n").GetOrLoad(context.Background(), nil, k, load)
			return string(v), err
		},
		"Typed": func() (string, error) {
			v, err := ringtest.BytesView(c).GetOrLoad(context.Background(), k,
				func(context.Context, []byte) ([]byte, time.Duration, error) {
					n.Add(1)
					return []byte("value"), 0, nil
				})
			return string(v), err
		},
	} {
		before := n.Load()
		for range 2 {
			v, err := get()
			require.NoError(t, err, name)
			require.Equal(t, "value", v, name)
		}
		require.Equal(t, before+2, n.Load(), "%s: nothing is stored", name)
	}
	_, err := c.GetOrLoad(context.Background(), nil, k,
		func(context.Context, []byte) ([]byte, time.Duration, error) {
			return nil, 0, ringcache.ErrAbsent
		})
	require.ErrorIs(t, err, ringcache.ErrAbsent)
	require.Zero(t, c.Len())
}

// The key that a load gets is its own, and so is the one that the cache keeps:
// a caller that has left may change his.
func TestLoader_KeyCopies(t *testing.T) {
	c := ringtest.LoaderCache(t)
	k, same := []byte("key"), []byte("key")
	begun, gate := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	load := func(_ context.Context, key []byte) ([]byte, time.Duration, error) {
		clear(key)
		close(begun)
		<-gate
		return []byte("value"), 0, nil
	}
	first := ringtest.Ask(ctx, c, k, load)
	<-begun
	second := ringtest.Ask(context.Background(), c, same, load)
	ringtest.AwaitWaiting(t, c, same, 2)
	cancel()
	require.ErrorIs(t, (<-first).Err, context.Canceled)
	clear(k)
	require.Equal(t, 1, ringtest.Waiting(c, same))
	close(gate)
	require.NoError(t, (<-second).Err)
	require.Equal(t, "value", string(c.Get(nil, same)))
}

func TestLoader_Options(t *testing.T) {
	for _, o := range []ringcache.Options{
		{MaxBytes: 1 << 20, RefreshAhead: -1},
		{MaxBytes: 1 << 20, TTL: time.Minute, RefreshAhead: time.Minute},
	} {
		_, err := ringcache.NewWithOptions(o)
		require.ErrorIs(t, err, ringcache.ErrInvalidOptions)
		require.ErrorContains(t, err, "RefreshAhead is ")
	}
	for _, d := range []time.Duration{-1, 30, clock.Tick - 1} {
		_, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 1 << 20, RefreshTimeout: d})
		require.ErrorIs(t, err, ringcache.ErrInvalidOptions)
		require.ErrorContains(t, err, "RefreshTimeout is ")
	}
	for _, ttl := range []time.Duration{0, time.Hour} {
		c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 1 << 20, TTL: ttl,
			RefreshAhead: time.Minute})
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
}

func TestLoader_Allocs(t *testing.T) {
	if ringtest.RaceEnabled {
		t.Skip("the race detector allocates on its own account")
	}
	g := ringtest.Default(ringtest.MinBytes)
	g.RefreshAhead = time.Minute
	c := ringtest.MustCache(t, g)
	load := func(context.Context, []byte) ([]byte, time.Duration, error) {
		return nil, 0, errors.New("called")
	}
	value, dst := make([]byte, 100), make([]byte, 0, 100)
	keys := []string{"plain", "long", "timed", "negative"}
	require.NoError(t, c.Set([]byte(keys[0]), value))
	require.NoError(t, c.Set([]byte(keys[1]), make([]byte, 50_000)))
	require.NoError(t, c.SetWithTTL([]byte(keys[2]), value, time.Hour))
	absent := func(context.Context, []byte) ([]byte, time.Duration, error) {
		return nil, 0, ringcache.ErrAbsent
	}
	_, err := c.GetOrLoad(context.Background(), nil, []byte(keys[3]), absent)
	require.ErrorIs(t, err, ringcache.ErrAbsent)
	dst = make([]byte, 0, 50_000)
	for _, name := range keys {
		var key [16]byte // on the stack: it must not escape
		n := copy(key[:], name)
		got := testing.AllocsPerRun(1000, func() {
			dst, err = c.GetOrLoad(context.Background(), dst[:0], key[:n], load)
		})
		require.Zero(t, got, name)
		if name == "negative" {
			require.ErrorIs(t, err, ringcache.ErrAbsent)
		} else {
			require.NoError(t, err)
		}
	}
}
