package loads

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// Goroutines change a store and then tell the cache, as programs do, while others read
// through it, alone and in batches: nobody reads what was out of date before he asked. So it
// is where entries expire at every turn and stand in for loads that fail.
func TestLoader_NothingOutOfDate(t *testing.T) { testOutOfDate(t, false) }

func TestLoaderStale_NothingOutOfDate(t *testing.T) { testOutOfDate(t, true) }

func testOutOfDate(t *testing.T, stale bool) {
	const workers = 8
	w := &outOfDate{errs: make(chan error, workers)}
	g := ringtest.Tiny(2, 1024, 16)
	if stale {
		g.StaleIfError = time.Hour
		w.ttl = clock.Tick
		g.Elapsed = func() time.Duration { return time.Duration(w.now.Add(int64(clock.Tick / 50))) }
	}
	w.c = ringtest.MustCache(t, g)
	var wg sync.WaitGroup
	for id := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			w.run(ringtest.NewRand(uint64(id)), 4000*ringtest.Rounds())
		}()
	}
	wg.Wait()
	close(w.errs)
	for err := range w.errs {
		assert.NoError(t, err)
	}
	for id := range w.store {
		for n := 0; ringtest.Waiting(w.c, []byte{byte(id)}) >= 0; n++ {
			runtime.Gosched()
			require.LessOrEqual(t, n, int(1e7), "key %d: a load is left behind", id)
		}
	}
	require.False(t, w.twice.Load(), "a batch was to load a key twice")
	var s ringcache.Stats
	w.c.UpdateStats(&s)
	require.Equal(t, stale, s.Loads.StaleHits > 100, "%d stale hits", s.Loads.StaleHits)
}

// outOfDate is a store of versions, and a cache before it.
type outOfDate struct {
	c     *ringcache.Cache
	store [8]atomic.Uint64
	told  [8]atomic.Uint64 // at least this version the cache has been told of
	now   atomic.Int64
	ttl   time.Duration // of what is loaded
	errs  chan error
	twice atomic.Bool // a load was asked for one key twice
}

// load finds what the store has.
func (w *outOfDate) load(_ context.Context, k []byte) ([]byte, time.Duration, error) {
	v := w.store[k[0]].Load()
	runtime.Gosched()
	if v%7 == 3 {
		return nil, 0, errors.New("down")
	}
	if v%5 == 0 {
		return nil, w.ttl, ringcache.ErrAbsent
	}
	s := ringtest.Stamp{ID: uint32(k[0]), Version: v, Size: ringtest.SelfSize + int(v%400)}
	return s.Value(nil), w.ttl, nil
}

// loadAll is load for a batch.
func (w *outOfDate) loadAll(ctx context.Context, keys [][]byte) (all []ringtest.Loaded, err error) {
	seen := map[byte]bool{}
	for _, k := range keys {
		v, ttl, err := w.load(ctx, k)
		if err != nil && err != ringcache.ErrAbsent {
			return nil, err
		}
		if all = append(all, ringtest.Loaded{Value: v, TTL: ttl, Err: err}); seen[k[0]] {
			w.twice.Store(true)
		}
		seen[k[0]] = true
	}
	return all, nil
}

// run changes the store and reads it through the cache.
func (w *outOfDate) run(rnd *rand.Rand, steps int) {
	var dst []byte
	var keys, vals [][]byte
	for range steps {
		id := rnd.IntN(len(w.store))
		keys = append(keys[:0], []byte{byte(id)})
		switch rnd.IntN(12) {
		case 0, 1:
			v := w.store[id].Add(1)
			w.c.Del(keys[0])
			raise(&w.told[id], v)
			continue
		case 2:
			k := []byte{byte(len(w.store) + rnd.IntN(200))}
			w.c.Set(k, ringtest.Filler(rnd.IntN(500))) // pushes others out
			continue
		case 3, 4, 5, 6:
			for range rnd.IntN(10) { // some are asked for twice
				keys = append(keys, []byte{byte(rnd.IntN(len(w.store)))})
			}
		}
		var floors [len(w.told)]uint64
		for i := range w.told {
			floors[i] = w.told[i].Load()
		}
		ctx, cancel := context.Background(), context.CancelFunc(func() {})
		if rnd.IntN(4) == 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(rnd.IntN(50))*time.Microsecond)
		}
		vals = append(vals[:0], make([][]byte, len(keys))...)
		if len(keys) == 1 {
			if v, err := w.c.GetOrLoad(ctx, dst[:0], keys[0], w.load); err == nil {
				dst, vals[0] = v, v
			}
		} else {
			dst, _, _ = w.c.GetOrLoadBatch(ctx, dst[:0], keys, vals, w.loadAll)
		}
		cancel()
		for i, k := range keys {
			if err := checkVersion(k[0], vals[i], floors[k[0]]); err != nil {
				w.errs <- err
				return
			}
		}
	}
}

// checkVersion returns an error if v, unless nil, is not a version of the key from floor on.
func checkVersion(id byte, v []byte, floor uint64) error {
	if v == nil {
		return nil
	}
	s, err := ringtest.ReadStamp(v)
	if err != nil || s.ID != uint32(id) || s.Version < floor {
		return fmt.Errorf("key %d: %v %v, the cache was told of version %d", id, s, err, floor)
	}
	return nil
}

// raise makes x at least v.
func raise(x *atomic.Uint64, v uint64) {
	for {
		old := x.Load()
		if old >= v || x.CompareAndSwap(old, v) {
			return
		}
	}
}

// Loads, negative entries and everything else at random, against a map.
func TestLoader_Random(t *testing.T) {
	for seed := range uint64(ringtest.Rounds()) {
		for _, p := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
			g := ringtest.Tiny(2, 512, 12)
			g.Policy = p
			var now time.Duration
			g.Elapsed = func() time.Duration { return now }
			g.StaleIfError = 2 * time.Second
			c := ringtest.MustCache(t, g)
			rnd := ringtest.NewRand(seed)
			type entry struct {
				v      []byte
				absent bool
				until  time.Duration
			}
			model, behind := map[uint16]entry{}, 0
			failing := func(context.Context, []byte) ([]byte, time.Duration, error) {
				return nil, 0, errors.New("down")
			}
			for i := range 20_000 {
				now += time.Duration(rnd.IntN(3)) * 10 * time.Millisecond
				id := uint16(rnd.IntN(300))
				k := binary.LittleEndian.AppendUint16(nil, id)
				ttl := clock.Tick * time.Duration(1+rnd.IntN(60))
				v := ringtest.Stamp{ID: uint32(id), Version: uint64(i), Size: rnd.IntN(100)}.Value(nil)
				if rnd.IntN(50) == 0 {
					v = ringtest.Filler(rnd.IntN(ringtest.Shared(c).MaxValue()))
				}
				switch rnd.IntN(7) {
				case 0:
					require.NoError(t, c.SetWithTTL(k, v, ttl))
					model[id] = entry{v: v, until: now + ttl}
				case 1:
					if c.Del(k) {
						require.False(t, model[id].absent)
					}
					delete(model, id)
				case 2:
					e, there := model[id]
					got, ok := c.HasGet(nil, k)
					if ok && (!there || e.absent || now >= e.until || !bytes.Equal(got, e.v)) {
						require.Fail(t, "found", "step %d: %q of %+v at %v", i, got, e, now)
					}
				case 3:
					e, there := model[id]
					got, err := c.GetOrLoad(context.Background(), nil, k, failing)
					ringtest.AwaitWaiting(t, c, k, -1) // it may load in the background
					right := there && !e.absent && now < e.until+g.StaleIfError && bytes.Equal(got, e.v)
					if isAbsent := there && e.absent && now < e.until; err == nil && !right ||
						errors.Is(err, ringcache.ErrAbsent) && !isAbsent {
						require.Fail(t, "stale", "step %d: %q, %v of %+v at %v", i, got, err, e, now)
					}
					if rnd.IntN(100) == 0 {
						c.DeleteExpired()
					}
				default:
					absent, asked := rnd.IntN(3) == 0, false
					load := func(context.Context, []byte) ([]byte, time.Duration, error) {
						asked = true
						return v, ttl, ringtest.AbsentIf(absent)
					}
					was := model[id]
					got, err := c.GetOrLoad(context.Background(), nil, k, load)
					ringtest.AwaitWaiting(t, c, k, -1)
					if asked {
						model[id] = entry{v: v, absent: absent, until: now + ttl}
					}
					e := model[id]
					right := e.absent == errors.Is(err, ringcache.ErrAbsent) &&
						(e.absent || bytes.Equal(got, e.v)) && now < e.until
					usable := !was.absent && was.until <= now+clock.Tick && now < was.until+g.StaleIfError
					if !right && !(usable && err == nil && bytes.Equal(got, was.v)) {
						require.Fail(t, "loaded", "step %d: %q, %v of %+v at %v", i, got, err, e, now)
					}
					if !right {
						behind++
					}
				}
				if i%500 == 0 {
					require.NoError(t, ringtest.Validate(c), "step %d", i)
				}
			}
			var s ringcache.Stats
			c.UpdateStats(&s)
			require.Greater(t, s.Loads.StaleHits, uint64(100))
			require.Greater(t, behind, 100, "expired values while their loads pause")
		}
	}
}
