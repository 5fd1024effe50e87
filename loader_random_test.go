package ringcache

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/clock"
)

// Goroutines change a store and then tell the cache, as programs do, while
// others read through it: nobody reads what was out of date before he asked.
func TestLoader_NothingOutOfDate(t *testing.T) {
	const keys, workers = 8, 8
	c := mustCache(t, tiny(2, 1024, 16))
	var store [keys]atomic.Uint64 // versions
	var told [keys]atomic.Uint64  // at least this one has been told
	steps := 4000 * rounds()
	load := func(_ context.Context, k []byte) (Loaded, error) {
		v := store[k[0]].Load()
		runtime.Gosched()
		if v%7 == 3 {
			return Loaded{}, errors.New("down")
		}
		if v%5 == 0 {
			return Loaded{Absent: true}, nil
		}
		s := stamp{id: uint32(k[0]), version: v, size: selfSize + int(v%400)}
		return Loaded{Value: s.value(nil)}, nil
	}
	var wg sync.WaitGroup
	errs := make(chan error, workers)
	for w := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rnd := newRand(uint64(w))
			var dst []byte
			for range steps {
				id := rnd.IntN(keys)
				k := []byte{byte(id)}
				switch rnd.IntN(12) {
				case 0, 1:
					v := store[id].Add(1)
					c.Del(k)
					raise(&told[id], v)
				case 2:
					c.Set([]byte{byte(keys + rnd.IntN(200))}, pattern(rnd.IntN(500))) // pushes others out
				default:
					floor := told[id].Load()
					ctx, cancel := context.Background(), context.CancelFunc(func() {})
					if rnd.IntN(4) == 0 {
						ctx, cancel = context.WithTimeout(ctx, time.Duration(rnd.IntN(50))*time.Microsecond)
					}
					var err error
					dst, err = c.GetOrLoad(ctx, dst[:0], k, load)
					cancel()
					if err != nil {
						continue
					}
					s, err := readStamp(dst)
					if err != nil || s.id != uint32(id) || s.version < floor {
						errs <- fmt.Errorf("key %d: %v %v, the cache was told of version %d", id, s, err, floor)
						return
					}
				}
			}
		}()
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		assert.NoError(t, err)
	}
	for id := range keys {
		for n := 0; c.waiting([]byte{byte(id)}) >= 0; n++ {
			runtime.Gosched()
			require.LessOrEqual(t, n, int(1e7), "key %d: a load is left behind", id)
		}
	}
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
			c := mustCache(t, g)
			rnd := newRand(seed)
			type entry struct {
				v      []byte
				absent bool
				until  time.Duration
			}
			model := map[uint16]entry{}
			for i := range 20_000 {
				now += time.Duration(rnd.IntN(3)) * 10 * time.Millisecond
				id := uint16(rnd.IntN(300))
				k := binary.LittleEndian.AppendUint16(nil, id)
				ttl := clock.Tick * time.Duration(1+rnd.IntN(60))
				v := stamp{id: uint32(id), version: uint64(i), size: rnd.IntN(100)}.value(nil)
				if rnd.IntN(50) == 0 {
					v = pattern(rnd.IntN(c.shared.maxValue()))
				}
				switch rnd.IntN(6) {
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
				default:
					r := Loaded{Value: v, TTL: ttl, Absent: rnd.IntN(3) == 0}
					loaded := false
					load := func(context.Context, []byte) (Loaded, error) {
						loaded = true
						return r, nil
					}
					got, err := c.GetOrLoad(context.Background(), nil, k, load)
					if loaded {
						model[id] = entry{v: v, absent: r.Absent, until: now + ttl}
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
		}
	}
}

// getOrLoad is a GetOrLoad that finds a value, finds a negative entry, or loads one of
// the two.
func (r *runner) getOrLoad(o op) error {
	ttl := r.ttlOf(o)
	s, v := r.newValue(o, r.sizeOf(o))
	// OnEvict is not told of negative entries, so what it says would not add up with them.
	absent := !r.told && o.flags&4 != 0
	known, calls := r.before(o.id), 0
	k := bytes.Clone(r.keyOf(o.id))
	load := func(_ context.Context, key []byte) (Loaded, error) {
		calls++
		if !bytes.Equal(k, key) {
			return Loaded{}, fmt.Errorf("asked to load %.32x", key)
		}
		return Loaded{Value: v, TTL: ttl, Absent: absent}, nil
	}
	got, err := r.c.GetOrLoad(context.Background(), r.dst[:0], k, load)
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
