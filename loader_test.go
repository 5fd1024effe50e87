package ringcache

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/record"
)

// gives returns a load of a value, and the count of its calls.
func gives(v string) (loadFunc, *atomic.Int64) {
	n := new(atomic.Int64)
	return func(context.Context, []byte) ([]byte, time.Duration, error) {
		n.Add(1)
		return []byte(v), 0, nil
	}, n
}

// held returns a load that waits until it is let go, and the function that does.
func held(load loadFunc) (loadFunc, func()) {
	gate := make(chan struct{})
	return func(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
		<-gate
		return load(ctx, k)
	}, func() { close(gate) }
}

func TestLoader_Hit(t *testing.T) {
	c := loaderCache(t)
	ctx, k := context.Background(), []byte("key")
	load, n := gives("value")
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

	var s Stats
	c.UpdateStats(&s)
	require.EqualValues(t, 1, s.Loads.Started)
	require.EqualValues(t, 6, s.GetCalls)
	require.EqualValues(t, 2, s.Misses)
	require.Zero(t, s.SetCalls)
}

func TestLoader_EmptyKeyAndValue(t *testing.T) {
	c := loaderCache(t)
	load, n := gives("")
	for range 2 {
		v, err := c.GetOrLoad(context.Background(), nil, nil, load)
		require.NoError(t, err)
		require.Empty(t, v)
	}
	require.EqualValues(t, 1, n.Load())
	require.True(t, c.Has(nil))
}

func TestLoader_OneLoadForMany(t *testing.T) {
	c := loaderCache(t)
	const callers = 1000
	k := []byte("key")
	load, n := gives("value")
	load, release := held(load)
	var all []<-chan reply
	for range callers {
		all = append(all, ask(context.Background(), c, k, load))
	}
	awaitWaiting(t, c, k, callers)
	release()
	for _, ch := range all {
		r := <-ch
		require.NoError(t, r.err)
		require.Equal(t, "value", string(r.v))
		clear(r.v) // it is the caller's own
	}
	require.EqualValues(t, 1, n.Load())
	require.Equal(t, "value", string(c.Get(nil, k)))
}

// However callers come in, between the end of a load and the next lookup too.
func TestLoader_OneLoadForEachKey(t *testing.T) {
	c := mustCache(t, defaultGeometry(minMaxBytes))
	const workers = 8
	load, n := gives("value")
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
	c := loaderCache(t)
	k, broken := []byte("key"), errors.New("broken")
	load, release := held(func(context.Context, []byte) ([]byte, time.Duration, error) {
		return []byte("ignored"), 0, broken
	})
	a, b := ask(context.Background(), c, k, load), ask(context.Background(), c, k, load)
	awaitWaiting(t, c, k, 2)
	release()
	for _, r := range []reply{<-a, <-b} {
		require.ErrorIs(t, r.err, broken)
		require.Equal(t, "ringcache: load entry: broken", r.err.Error())
		require.Nil(t, r.v)
	}
	require.Zero(t, c.Len())
	load, n := gives("value")
	v, err := c.GetOrLoad(context.Background(), nil, k, load)
	require.NoError(t, err)
	require.Equal(t, "value", string(v))
	require.EqualValues(t, 1, n.Load())
	var s Stats
	c.UpdateStats(&s)
	require.EqualValues(t, 2, s.Loads.Started)
	require.EqualValues(t, 1, s.Loads.Errors)
	require.Zero(t, s.Loads.Dropped)
}

func TestLoader_PanicReachesAll(t *testing.T) {
	c := loaderCache(t)
	k, broken := []byte("key"), errors.New("broken")
	load, release := held(func(context.Context, []byte) ([]byte, time.Duration, error) {
		panic(broken)
	})
	a, b := ask(context.Background(), c, k, load), ask(context.Background(), c, k, load)
	awaitWaiting(t, c, k, 2)
	release()
	for _, r := range []reply{<-a, <-b} {
		p, ok := r.panicked.(*LoadPanic)
		require.True(t, ok, "%T", r.panicked)
		require.Equal(t, broken, p.Value)
		require.ErrorIs(t, p, broken)
		require.Contains(t, string(p.Stack), "TestLoader_PanicReachesAll")
		require.Contains(t, p.Error(), "ringcache: load entry: panic: broken\n")
	}
	require.NoError(t, (&LoadPanic{Value: 1}).Unwrap())
	load, _ = gives("value")
	v, err := c.GetOrLoad(context.Background(), nil, k, load)
	require.NoError(t, err)
	require.Equal(t, "value", string(v))
}

func TestLoader_Goexit(t *testing.T) {
	c := loaderCache(t)
	k := []byte("key")
	load, release := held(func(context.Context, []byte) ([]byte, time.Duration, error) {
		runtime.Goexit()
		return nil, 0, nil
	})
	a, b := ask(context.Background(), c, k, load), ask(context.Background(), c, k, load)
	awaitWaiting(t, c, k, 2)
	release()
	for _, r := range []reply{<-a, <-b} {
		require.ErrorContains(t, r.err, exitedText)
		require.EqualError(t, r.err,
			"ringcache: load entry: the load called runtime.Goexit, as t.FailNow does")
		require.Nil(t, r.panicked)
	}
	require.Equal(t, -1, c.waiting(k))
	require.Zero(t, c.Len())
}

// Whatever writes a key while it is loaded: what the load brings is for those
// who waited, and for nobody else.
func TestLoader_Invalidated(t *testing.T) {
	k, other := []byte("key"), []byte("other key")
	large := pattern(3000)
	keep := func(old []byte, ok bool) ([]byte, bool) { return []byte("new"), true }
	drop := func(old []byte, ok bool) ([]byte, bool) { return nil, false }
	made, loaded := []byte("new"), []byte("loaded")
	for name, tt := range map[string]struct {
		write func(c *Cache)
		want  []byte // what is there afterwards
		joins bool   // nothing was written: the load may still be joined
	}{
		"Set":                       {func(c *Cache) { c.Set(k, made) }, made, false},
		"Set large":                 {func(c *Cache) { c.Set(k, large) }, large, false},
		"Set too large":             {func(c *Cache) { c.Set(k, make([]byte, 1<<20)) }, nil, false},
		"SetWithTTL":                {func(c *Cache) { c.SetWithTTL(k, made, time.Hour) }, made, false},
		"SetWithTTL past":           {func(c *Cache) { c.SetWithTTL(k, made, -1) }, nil, false},
		"SetIfAbsent":               {func(c *Cache) { c.SetIfAbsent(k, made) }, made, false},
		"SetIfChanged":              {func(c *Cache) { c.SetIfChanged(k, made) }, made, false},
		"Update":                    {func(c *Cache) { c.Update(k, keep) }, made, false},
		"Update away":               {func(c *Cache) { c.Update(k, drop) }, nil, false},
		"Append":                    {func(c *Cache) { c.Append(k, made) }, made, false},
		"Del":                       {func(c *Cache) { c.Del(k) }, nil, false},
		"GetAndDel":                 {func(c *Cache) { c.GetAndDel(nil, k) }, nil, false},
		"Touch away":                {func(c *Cache) { c.Touch(k, -1) }, nil, false},
		"Reset":                     {func(c *Cache) { c.Reset() }, nil, false},
		"CompareAndSwap":            {func(c *Cache) { c.CompareAndSwap(k, large, made) }, loaded, true},
		"Touch":                     {func(c *Cache) { c.Touch(k, time.Hour) }, loaded, true},
		"Set of another":            {func(c *Cache) { c.Set(other, made) }, loaded, true},
		"Del of another":            {func(c *Cache) { c.Del(other) }, loaded, true},
		"DeleteExpired":             {func(c *Cache) { c.DeleteExpired() }, loaded, true},
		"a lookup that is no write": {func(c *Cache) { c.Get(nil, k) }, loaded, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := tiny(4, 1024, 64)
			g.seed = [2]uint64{} // all keys meet in one bucket
			c := mustCache(t, g)
			load, _ := gives("loaded")
			load, release := held(load)
			early := ask(context.Background(), c, k, load)
			awaitWaiting(t, c, k, 1)
			tt.write(c)
			if tt.joins {
				require.Equal(t, 1, c.waiting(k))
			} else {
				require.Equal(t, -1, c.waiting(k), "a load that is out of date can be joined")
			}
			release()
			r := <-early
			require.NoError(t, r.err)
			require.Equal(t, "loaded", string(r.v))
			require.Equal(t, -1, c.waiting(k))
			got, ok := c.HasGet(nil, k)
			require.Equal(t, tt.want != nil, ok)
			require.True(t, bytes.Equal(tt.want, got), "%q is there", got)
		})
	}
}

// pattern returns n bytes that are not all the same.
func pattern(n int) []byte { return stamp{id: 1, size: n}.value(nil) }

// Of two loads of a key, the one that began before a write does not spoil what
// the other has brought.
func TestLoader_InvalidatedTwice(t *testing.T) {
	c := loaderCache(t)
	k := []byte("key")
	oldLoad, _ := gives("old")
	oldLoad, releaseOld := held(oldLoad)
	newLoad, _ := gives("new")
	newLoad, releaseNew := held(newLoad)

	early := ask(context.Background(), c, k, oldLoad)
	awaitWaiting(t, c, k, 1)
	c.Del(k)
	late := ask(context.Background(), c, k, newLoad)
	awaitWaiting(t, c, k, 1)
	releaseOld()
	require.Equal(t, "old", string((<-early).v))
	require.False(t, c.Has(k))
	require.Equal(t, 1, c.waiting(k), "the end of the old load must leave the new one alone")
	releaseNew()
	require.Equal(t, "new", string((<-late).v))
	require.Equal(t, "new", string(c.Get(nil, k)))
	var s Stats
	c.UpdateStats(&s)
	require.EqualValues(t, 1, s.Loads.Dropped)
}

func TestLoader_Refused(t *testing.T) {
	c := loaderCache(t)
	for name, k := range map[string][]byte{
		"value": []byte("key"),
		"key":   make([]byte, record.MaxKey+1),
	} {
		t.Run(name, func(t *testing.T) {
			v := pattern(c.shared.MaxValue())
			if name == "value" {
				v = pattern(c.shared.MaxValue() + 1)
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
	var s Stats
	c.UpdateStats(&s)
	require.EqualValues(t, 4, s.Loads.Started)
	require.EqualValues(t, 4, s.Loads.Dropped)
}

// A closed cache stores nothing, but its loads are made, and shared, as before.
func TestLoader_Closed(t *testing.T) {
	c := loaderCache(t)
	k := []byte("key")
	load, n := gives("value")
	held, release := held(load)
	under := ask(context.Background(), c, k, held)
	awaitWaiting(t, c, k, 1)
	require.NoError(t, c.Close())
	first := ask(context.Background(), c, k, held)
	awaitWaiting(t, c, k, 1)
	second := ask(context.Background(), c, k, neverLoads)
	awaitWaiting(t, c, k, 2)
	release()
	for _, ch := range []<-chan reply{under, first, second} {
		r := <-ch
		require.NoError(t, r.err)
		require.Equal(t, "value", string(r.v))
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
			v, err := bytesView(c).GetOrLoad(context.Background(), k,
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
		func(context.Context, []byte) ([]byte, time.Duration, error) { return nil, 0, ErrAbsent })
	require.ErrorIs(t, err, ErrAbsent)
	require.Zero(t, c.Len())
}

// The key that a load gets is its own, and so is the one that the cache keeps:
// a caller that has left may change his.
func TestLoader_KeyCopies(t *testing.T) {
	c := loaderCache(t)
	k, same := []byte("key"), []byte("key")
	begun, gate := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	load := func(_ context.Context, key []byte) ([]byte, time.Duration, error) {
		clear(key)
		close(begun)
		<-gate
		return []byte("value"), 0, nil
	}
	first := ask(ctx, c, k, load)
	<-begun
	second := ask(context.Background(), c, same, load)
	awaitWaiting(t, c, same, 2)
	cancel()
	require.ErrorIs(t, (<-first).err, context.Canceled)
	clear(k)
	require.Equal(t, 1, c.waiting(same))
	close(gate)
	require.NoError(t, (<-second).err)
	require.Equal(t, "value", string(c.Get(nil, same)))
}

func TestLoader_OneRefresh(t *testing.T) {
	g := defaultGeometry(minMaxBytes)
	g.ahead = 2 * time.Hour
	c := mustCache(t, g)
	const keys, workers = 500, 4
	load, n := gives("fresh")
	load, release := held(load)
	for i := range keys {
		require.NoError(t, c.SetWithTTL([]byte{byte(i), byte(i >> 8)}, []byte("value"), time.Hour))
	}
	var wg sync.WaitGroup
	late := []byte{1, 0} // has seen that the entry is due, and comes when another has begun
	for range 2 {
		v, err := c.GetOrLoad(context.Background(), nil, late, load)
		require.NoError(t, err)
		require.Equal(t, "value", string(v))
	}
	for range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range keys {
				v, err := c.GetOrLoad(context.Background(), nil, []byte{byte(i), byte(i >> 8)}, load)
				if err != nil || string(v) != "value" {
					assert.Fail(t, "loaded", "%q, %v", v, err)
				}
			}
		}()
	}
	wg.Wait()
	release()
	for i := range keys {
		awaitWaiting(t, c, []byte{byte(i), byte(i >> 8)}, -1)
		require.Equal(t, "fresh", string(c.Get(nil, []byte{byte(i), byte(i >> 8)})))
	}
	require.EqualValues(t, keys, n.Load())
}

func TestLoader_Options(t *testing.T) {
	for _, o := range []Options{
		{MaxBytes: 1 << 20, RefreshAhead: -1},
		{MaxBytes: 1 << 20, TTL: time.Minute, RefreshAhead: time.Minute},
	} {
		_, err := NewWithOptions(o)
		require.ErrorIs(t, err, ErrInvalidOptions)
		require.ErrorContains(t, err, "RefreshAhead is ")
	}
	for _, d := range []time.Duration{-1, 30, clock.Tick - 1} {
		_, err := NewWithOptions(Options{MaxBytes: 1 << 20, RefreshTimeout: d})
		require.ErrorIs(t, err, ErrInvalidOptions)
		require.ErrorContains(t, err, "RefreshTimeout is ")
	}
	for _, ttl := range []time.Duration{0, time.Hour} {
		c, err := NewWithOptions(Options{MaxBytes: 1 << 20, TTL: ttl, RefreshAhead: time.Minute})
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
}

func TestLoader_Allocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates on its own account")
	}
	g := defaultGeometry(minMaxBytes)
	g.ahead = time.Minute
	c := mustCache(t, g)
	load := func(context.Context, []byte) ([]byte, time.Duration, error) {
		return nil, 0, errors.New("called")
	}
	value, dst := make([]byte, 100), make([]byte, 0, 100)
	keys := []string{"plain", "long", "timed", "negative"}
	require.NoError(t, c.Set([]byte(keys[0]), value))
	require.NoError(t, c.Set([]byte(keys[1]), make([]byte, 50_000)))
	require.NoError(t, c.SetWithTTL([]byte(keys[2]), value, time.Hour))
	absent := func(context.Context, []byte) ([]byte, time.Duration, error) { return nil, 0, ErrAbsent }
	_, err := c.GetOrLoad(context.Background(), nil, []byte(keys[3]), absent)
	require.ErrorIs(t, err, ErrAbsent)
	dst = make([]byte, 0, 50_000)
	for _, name := range keys {
		var key [16]byte // on the stack: it must not escape
		n := copy(key[:], name)
		got := testing.AllocsPerRun(1000, func() {
			dst, err = c.GetOrLoad(context.Background(), dst[:0], key[:n], load)
		})
		require.Zero(t, got, name)
		if name == "negative" {
			require.ErrorIs(t, err, ErrAbsent)
		} else {
			require.NoError(t, err)
		}
	}
}
