package ringcache

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

	"github.com/ringcache/ringcache/internal/clock"
)

// Goroutines change a store and then tell the cache, as programs do, while others read
// through it, alone and in batches: nobody reads what was out of date before he asked. So it
// is where entries expire at every turn and stand in for loads that fail.
func TestLoader_NothingOutOfDate(t *testing.T) { testOutOfDate(t, false) }

func TestLoaderStale_NothingOutOfDate(t *testing.T) { testOutOfDate(t, true) }

func testOutOfDate(t *testing.T, stale bool) {
	const workers = 8
	w := &outOfDate{errs: make(chan error, workers)}
	g := tiny(2, 1024, 16)
	if stale {
		g.stale = time.Hour
		w.ttl = clock.Tick
		g.now = func() time.Duration { return time.Duration(w.now.Add(int64(clock.Tick / 50))) }
	}
	w.c = mustCache(t, g)
	var wg sync.WaitGroup
	for id := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			w.run(newRand(uint64(id)), 4000*rounds())
		}()
	}
	wg.Wait()
	close(w.errs)
	for err := range w.errs {
		assert.NoError(t, err)
	}
	for id := range w.store {
		for n := 0; w.c.waiting([]byte{byte(id)}) >= 0; n++ {
			runtime.Gosched()
			require.LessOrEqual(t, n, int(1e7), "key %d: a load is left behind", id)
		}
	}
	require.False(t, w.twice.Load(), "a batch was to load a key twice")
	var s Stats
	w.c.UpdateStats(&s)
	require.Equal(t, stale, s.Loads.StaleHits > 100, "%d stale hits", s.Loads.StaleHits)
}

// outOfDate is a store of versions, and a cache before it.
type outOfDate struct {
	c     *Cache
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
		return nil, w.ttl, ErrAbsent
	}
	s := stamp{id: uint32(k[0]), version: v, size: selfSize + int(v%400)}
	return s.value(nil), w.ttl, nil
}

// loadAll is load for a batch.
func (w *outOfDate) loadAll(ctx context.Context, keys [][]byte) (all []loaded, err error) {
	seen := map[byte]bool{}
	for _, k := range keys {
		v, ttl, err := w.load(ctx, k)
		if err != nil && err != ErrAbsent {
			return nil, err
		}
		if all = append(all, loaded{v, ttl, err}); seen[k[0]] {
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
			w.c.Set(k, pattern(rnd.IntN(500))) // pushes others out
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
	s, err := readStamp(v)
	if err != nil || s.id != uint32(id) || s.version < floor {
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
	for seed := range uint64(rounds()) {
		for _, p := range []Policy{PolicyS3FIFO, PolicyFIFO} {
			g := tiny(2, 512, 12)
			g.policy = p
			var now time.Duration
			g.now = func() time.Duration { return now }
			g.stale = 2 * time.Second
			c := mustCache(t, g)
			rnd := newRand(seed)
			type entry struct {
				v      []byte
				absent bool
				until  time.Duration
			}
			model := map[uint16]entry{}
			failing := func(context.Context, []byte) ([]byte, time.Duration, error) {
				return nil, 0, errors.New("down")
			}
			for i := range 20_000 {
				now += time.Duration(rnd.IntN(3)) * 10 * time.Millisecond
				id := uint16(rnd.IntN(300))
				k := binary.LittleEndian.AppendUint16(nil, id)
				ttl := clock.Tick * time.Duration(1+rnd.IntN(60))
				v := stamp{id: uint32(id), version: uint64(i), size: rnd.IntN(100)}.value(nil)
				if rnd.IntN(50) == 0 {
					v = pattern(rnd.IntN(c.shared.MaxValue()))
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
					right := there && !e.absent && now < e.until+g.stale && bytes.Equal(got, e.v)
					if isAbsent := there && e.absent && now < e.until; err == nil && !right ||
						errors.Is(err, ErrAbsent) && !isAbsent {
						require.Fail(t, "stale", "step %d: %q, %v of %+v at %v", i, got, err, e, now)
					}
					if rnd.IntN(100) == 0 {
						c.DeleteExpired()
					}
				default:
					absent, asked := rnd.IntN(3) == 0, false
					load := func(context.Context, []byte) ([]byte, time.Duration, error) {
						asked = true
						return v, ttl, absentIf(absent)
					}
					got, err := c.GetOrLoad(context.Background(), nil, k, load)
					if asked {
						model[id] = entry{v: v, absent: absent, until: now + ttl}
					}
					e := model[id]
					right := e.absent == errors.Is(err, ErrAbsent) && (e.absent || bytes.Equal(got, e.v))
					if !right || now >= e.until {
						require.Fail(t, "loaded", "step %d: %q, %v of %+v at %v", i, got, err, e, now)
					}
				}
				if i%500 == 0 {
					require.NoError(t, c.validate(), "step %d", i)
				}
			}
			var s Stats
			c.UpdateStats(&s)
			require.Greater(t, s.Loads.StaleHits, uint64(100))
		}
	}
}

// getOrLoad is a GetOrLoad that finds a value, finds a negative entry, or loads one of
// the two.
func (r *runner) getOrLoad(o op) error {
	ttl := r.ttlOf(o)
	s, v := r.newValue(o, r.sizeOf(o))
	// OnRemove is not told of negative entries, so what it says would not add up with them.
	absent := !r.told && o.flags&4 != 0
	known, calls := r.before(o.id), 0
	k := bytes.Clone(r.keyOf(o.id))
	load := func(_ context.Context, key []byte) ([]byte, time.Duration, error) {
		calls++
		if !bytes.Equal(k, key) {
			return nil, 0, fmt.Errorf("asked to load %.32x", key)
		}
		return v, ttl, absentIf(absent)
	}
	get := r.c.GetOrLoad
	if _, bad := r.g.compressor.(*badCompressor); o.class&64 != 0 && !bad {
		get = r.loadTwice // with a bad one, the second may miss
	}
	got, err := get(context.Background(), r.dst[:0], k, load)
	if r.dst = got; err != nil && !errors.Is(err, ErrAbsent) {
		return err
	}
	if err == nil && calls == 0 {
		return r.hit(o.id, got)
	}
	if err := r.answered(known, false); err != nil {
		return err
	}
	if calls == 0 {
		at, ok := r.negatives[o.id]
		if !ok || r.over(at) {
			return fmt.Errorf("ErrAbsent at %v, and no load has said so, or for as long (%v)", r.age, at)
		}
		r.negativeHits++
		return nil
	}
	if calls > 1 || absent != (err != nil) || !absent && !bytes.Equal(v, got) {
		return fmt.Errorf("%d loads, %v, %d bytes", calls, err, len(got))
	}
	r.forget(o.id)
	notStored := ttl < 0 || isBrief(ttl)
	if ttl == 0 {
		ttl = r.g.ttl
	}
	switch {
	case notStored:
		return r.found(o.id, r.c.Has(r.keyOf(o.id)))
	case absent:
		r.negatives[o.id] = r.deadline(ttl)
		if err := r.found(o.id, r.c.Has(r.keyOf(o.id))); err != nil || o.flags&8 == 0 {
			return err
		}
		o.flags &^= 8 // ask once more, before the negative entry is driven out
		return r.getOrLoad(o)
	}
	return r.stored(o, s, ttl)
}

// loadTwice is GetOrLoad by a batch that names the key twice.
func (r *runner) loadTwice(
	ctx context.Context, dst, k []byte, load loadFunc,
) ([]byte, error) {
	vals := make([][]byte, 2)
	out, _, err := r.c.GetOrLoadBatch(ctx, dst, [][]byte{k, bytes.Clone(k)}, vals, load.ofOne)
	switch {
	case err != nil:
		return dst, err
	case (vals[0] == nil) != (vals[1] == nil) || !bytes.Equal(vals[0], vals[1]):
		return dst, errors.New("a batch has two values for one key")
	case vals[0] == nil:
		return dst, ErrAbsent
	}
	return out[:len(dst)+len(vals[0])], nil
}

// countNegatives returns how many negative entries there are.
func (r *runner) countNegatives() int {
	n := 0
	for id := range r.negatives {
		k := r.makeKey(nil, id)
		if r.c.isNegative(k) {
			n++
		}
	}
	return n
}
