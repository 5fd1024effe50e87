package model

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// The operations of the witness on many keys, and on the whole cache.

// drawMany draws the keys of a batch, some of them twice.
func (w *witness) drawMany() (ids []entryKey, keys [][]byte) {
	first := w.draw()
	for i := range 1 + w.rnd.IntN(20) {
		k := first
		if k.id = uint32((int(first.id) + i*7) % w.p.keys); w.rnd.IntN(5) == 0 && i > 0 {
			k = ids[w.rnd.IntN(i)]
		}
		ids, keys = append(ids, k), append(keys, keyBytes(k.id))
	}
	w.note = fmt.Sprintf("%v, %d keys", first, len(ids))
	return ids, keys
}

func (w *witness) getBatch() error {
	ids, keys := w.drawMany()
	c := w.in(ids[0])
	before := map[entryKey]*entry{}
	for _, k := range ids {
		before[k] = w.was(k)
	}
	vals := make([][]byte, len(keys))
	w.begin(opLookup, ids[0])
	_, hits := c.GetBatch(nil, keys, vals)
	w.end()
	for i, k := range ids {
		w.counted(k.space, counts{gets: 1, misses: oneIf(vals[i] == nil)})
		if vals[i] != nil {
			hits--
			if err := w.hit(k, before[k], vals[i], true); err != nil {
				return err
			}
		} else if !slices.Contains(w.on.told[k], ringcache.RemovedEvicted) { // for an earlier key
			if err := w.found(k, before[k], false); err != nil {
				return err
			}
		}
	}
	if hits != 0 {
		return fmt.Errorf("the count of hits is off by %d", hits)
	}
	return nil
}

func (w *witness) setBatch() error {
	ids, keys := w.drawMany()
	ttl, jitter, given := w.p.o.TTL, w.p.o.TTLJitter, w.rnd.IntN(2) == 0
	if given {
		if ttl, jitter = w.ttl(), 0; !isStored(ttl) {
			ttl = 0
		}
	}
	c := w.in(ids[0])
	pending := map[entryKey][]*entry{}
	var vals [][]byte
	from := w.now()
	for _, k := range ids {
		s, v := w.value(k)
		vals = append(vals, v)
		pending[k] = append(pending[k], w.newEntry(s, from, ttl, jitter))
	}
	w.begin(opBatch, ids[0])
	w.on.pending = pending
	var err error
	if given {
		err = c.SetBatchWithTTL(keys, vals, ttl)
	} else {
		err = c.SetBatch(keys, vals)
	}
	w.end()
	w.counted(ids[0].space, counts{sets: uint64(len(keys))})
	if err != nil {
		return err
	}
	last := ids[len(ids)-1]
	if len(pending[last]) == 0 {
		return fmt.Errorf("the last key, %v, was removed again for %v", last, w.on.told[last])
	}
	for k, left := range pending {
		if w.live[k] != nil || len(left) > 1 {
			return fmt.Errorf("key %v was set, and OnRemove was not told of an older value", k)
		}
		delete(w.absent, k)
		if len(left) == 1 {
			w.live[k] = left[0]
			w.storedSince(left[0], from)
		}
	}
	return w.look(last, lookHasGet)
}

// loader is a load of one or several keys.
type loader struct {
	w      *witness
	space  int
	fails  bool
	none   bool // there is no value
	loaded map[uint32]ringtest.Stamp
	values map[uint32][]byte
	ttl    time.Duration
	from   time.Duration // when it was called last
	calls  int
}

func (w *witness) newLoader(space int) *loader {
	l := &loader{w: w, space: space, loaded: map[uint32]ringtest.Stamp{},
		values: map[uint32][]byte{}, ttl: w.ttl()}
	switch w.rnd.IntN(8) {
	case 0:
		l.fails = true
	case 1:
		l.none = w.p.negative
	}
	return l
}

var errFails = errors.New("the load fails")

// all loads several keys.
func (l *loader) all(_ context.Context, keys [][]byte) ([]ringtest.Loaded, error) {
	w := l.w
	w.mu.Lock()
	defer w.mu.Unlock()
	l.calls++
	l.from = w.now()
	var got []ringtest.Loaded
	for _, key := range keys {
		k, ok := w.keyOf("", key)
		if k.space = l.space; !ok {
			return nil, fmt.Errorf("asked for key %.40x", key)
		}
		if _, twice := l.loaded[k.id]; twice {
			return nil, fmt.Errorf("asked for key %v twice", k)
		}
		s, v := w.value(k)
		l.loaded[k.id], l.values[k.id] = s, v
		if !l.fails && !l.none && isStored(l.ttl) {
			ttl := l.ttl
			if ttl == 0 {
				ttl = w.p.o.TTL
			}
			e := w.newEntry(s, l.from, ttl, w.p.o.TTLJitter)
			w.on.pending[k] = []*entry{e}
		}
		got = append(got, ringtest.Loaded{Value: v, TTL: l.ttl, Err: ringtest.AbsentIf(l.none)})
	}
	if l.fails {
		return nil, errFails
	}
	return got, nil
}

// one loads a key.
func (l *loader) one(ctx context.Context, key []byte) ([]byte, time.Duration, error) {
	all, err := l.all(ctx, [][]byte{key})
	if err != nil {
		return nil, 0, err
	}
	return all[0].Value, all[0].TTL, all[0].Err
}

// done counts the loads and updates the model with their results.
func (l *loader) done() error {
	w := l.w
	for id := range l.loaded {
		k := entryKey{l.space, id}
		w.loads.Started++
		w.loads.Errors += oneIf(l.fails)
		if l.fails {
			continue
		}
		if old := w.live[k]; old != nil {
			return fmt.Errorf("key %v was loaded over %v, and OnRemove was not told", k, old.Stamp)
		}
		if ringtest.IsBrief(l.ttl) {
			w.refused.TTLTooShort++
		}
		delete(w.absent, k)
		if l.none && isStored(l.ttl) {
			w.absent[k] = math.MaxInt64
		}
		if left := w.on.pending[k]; len(left) > 0 {
			w.live[k] = left[0]
			w.storedSince(left[0], l.from)
		} else if !l.none && isStored(l.ttl) && len(l.loaded) == 1 {
			return fmt.Errorf("key %v was loaded, and OnRemove was told of it for %v", k, w.on.told[k])
		}
	}
	return nil
}

func (w *witness) getOrLoad() error {
	k := w.draw()
	c, e, l := w.in(k), w.was(k), w.newLoader(k.space)
	w.begin(opLoad, k)
	w.on.pending = map[entryKey][]*entry{}
	v, err := c.GetOrLoad(context.Background(), nil, keyBytes(k.id), l.one)
	w.end()
	if l.calls == 0 && err == nil {
		w.counted(k.space, counts{gets: 1})
		return w.hit(k, e, v, true)
	}
	w.counted(k.space, counts{gets: 1, misses: 1})
	if w.isThere(e) {
		return fmt.Errorf("loaded, though %v is there: %w", e.Stamp, err)
	}
	return errors.Join(l.judge(k, v, err), l.done())
}

// judge checks what the caller of a load gets for a key that was not there.
func (l *loader) judge(k entryKey, v []byte, err error) error {
	w := l.w
	_, loaded := l.loaded[k.id]
	switch {
	case !loaded:
		if _, known := w.absent[k]; !known || !errors.Is(err, ringcache.ErrAbsent) {
			return fmt.Errorf("key %v was not loaded, and nothing says that it has no value: %w", k, err)
		}
		w.loads.NegativeHits++
		return nil
	case l.fails && errors.Is(err, errFails), l.none && errors.Is(err, ringcache.ErrAbsent):
		return nil
	case err != nil:
		return err
	case string(v) != string(l.values[k.id]):
		return fmt.Errorf("key %v: got %d bytes, not those that were loaded", k, len(v))
	}
	return nil
}

func (w *witness) getOrLoadBatch() error {
	ids, keys := w.drawMany()
	c, l := w.in(ids[0]), w.newLoader(ids[0].space)
	l.none = false
	before := map[entryKey]*entry{}
	for _, k := range ids {
		before[k] = w.was(k)
		if _, ok := w.absent[k]; ok {
			return nil // the error would not say of which key it is
		}
	}
	vals := make([][]byte, len(keys))
	w.begin(opLoad, ids[0])
	w.on.pending = map[entryKey][]*entry{}
	_, _, err := c.GetOrLoadBatch(context.Background(), nil, keys, vals, l.all)
	w.end()
	for i, k := range ids {
		_, loaded := l.loaded[k.id]
		w.counted(k.space, counts{gets: 1, misses: oneIf(loaded)})
		switch {
		case loaded && w.isThere(before[k]) &&
			!slices.Contains(w.on.told[k], ringcache.RemovedEvicted):
			return fmt.Errorf("key %v was loaded, though %v is there", k, before[k].Stamp)
		case loaded && err == nil:
			if err := l.judge(k, vals[i], nil); err != nil {
				return err
			}
		case !loaded:
			if err := w.hit(k, before[k], vals[i], true); err != nil {
				return err
			}
		}
	}
	if (err != nil) != (l.fails && l.calls > 0) || err != nil && !errors.Is(err, errFails) {
		return fmt.Errorf("%d loads, %w", l.calls, err)
	}
	return l.done()
}

// pass lets time go by.
func (w *witness) pass() error {
	d := time.Duration(w.rnd.IntN(300)) * time.Millisecond
	if w.rnd.IntN(50) == 0 {
		d = time.Duration(w.rnd.IntN(20)) * time.Second
	}
	w.machine.Pass(d)
	return nil
}

func (w *witness) deleteExpired() error {
	least, most := 0, len(w.absent)
	for _, e := range w.live {
		least += int(oneIf(e.isOver(w.now())))
		most += int(oneIf(e.mayBeOver(w.now() + time.Second)))
	}
	told := w.reasons[ringcache.RemovedExpired]
	w.begin(opExpire, entryKey{space: -1})
	n := w.c.DeleteExpired()
	w.end()
	told = w.reasons[ringcache.RemovedExpired] - told
	if n < least || n > most || n < int(told) || !w.p.negative && n != int(told) {
		return fmt.Errorf("%d were expired, want %d to %d, and OnRemove was told of %d",
			n, least, most, told)
	}
	for k, e := range w.live {
		if e.isOver(w.on.started) {
			return fmt.Errorf("key %v has expired, and OnRemove was not told: %v", k, e.over())
		}
	}
	return nil
}

// compress does the work of the compression goroutine, if there is none.
func (w *witness) compress() error {
	if w.p.o.Compressor != nil && !w.p.real {
		w.begin(opSilent, entryKey{space: -1})
		ringtest.CompressAll(w.c)
		w.end()
	}
	return nil
}

// all walks through a cache: it sees every entry once.
func (w *witness) all() error {
	space := w.draw().space
	c := w.in(entryKey{space: space})
	seen := map[uint32]bool{}
	w.begin(opSilent, entryKey{space: -1})
	for key, v := range c.All() {
		k, ok := w.keyOf("", key)
		if k.space = space; !ok || seen[k.id] {
			return fmt.Errorf("saw key %.40x of space %d, before: %v", key, space, seen[k.id])
		}
		seen[k.id] = true
		if err := w.hit(k, w.was(k), v, false); err != nil {
			return err
		}
	}
	w.end()
	for k, e := range w.live {
		if k.space == space && w.isThere(e) && !seen[k.id] {
			return fmt.Errorf("key %v was not seen", k)
		}
	}
	return nil
}

// resize draws another bound.
func (w *witness) resize() error {
	to := w.drawBound()
	w.note = fmt.Sprintf("from %d to %d", w.bound, to)
	w.begin(opResize, entryKey{space: -1})
	err := w.c.Resize(to)
	w.bound = to
	w.end()
	return errors.Join(err, w.gauges())
}

// drawBound draws a bound that the cache may have, up to twice what it was made with.
func (w *witness) drawBound() int {
	least := max(ringtest.LeastMaxBytes, 4*w.buckets*w.chunks)
	octaves := math.Log2(2 * float64(w.p.o.MaxBytes) / float64(least))
	return int(float64(least) * math.Exp2(w.rnd.Float64()*octaves))
}

// reset is Reset of the whole cache.
func (w *witness) reset() error {
	w.begin(opReset, entryKey{space: -1})
	w.c.Reset()
	w.end()
	clear(w.absent)
	if len(w.live) > 0 || len(w.dead) > 0 {
		return fmt.Errorf("OnRemove was not told of %d entries, and of %d of namespaces that were reset",
			len(w.live), len(w.dead))
	}
	if s := w.c.Stats(); s.EntriesCount != 0 || s.BytesSize != 0 && !w.p.inFile {
		return fmt.Errorf("%d entries, %d bytes", s.EntriesCount, s.BytesSize)
	}
	return w.gauges()
}

// resetSpace resets a namespace, or drops it.
func (w *witness) resetSpace() error {
	if w.p.spaces == 0 {
		return nil
	}
	k := entryKey{space: 1 + w.rnd.IntN(w.p.spaces)}
	c, drop := w.in(k), w.rnd.IntN(3) == 0
	w.note = fmt.Sprintf("%d, drop: %v", k.space, drop)
	for live, e := range w.live {
		if live.space == k.space {
			w.dead[live] = append(w.dead[live], e)
			delete(w.live, live)
		}
	}
	for none := range w.absent {
		if none.space == k.space {
			w.version++ // it may be counted still
			w.absent[entryKey{-int(w.version), none.id}] = w.absent[none]
			delete(w.absent, none)
		}
	}
	w.begin(opResetSpace, entryKey{space: -1})
	defer w.end()
	if !drop {
		c.Reset()
		if n := c.Len(); n != 0 {
			return fmt.Errorf("Len is %d", n)
		}
		return nil
	}
	err := w.c.DropNamespace(spaceName(k.space))
	w.counts[k.space] = counts{}
	if w.rnd.IntN(4) == 0 {
		if err := c.Set(keyBytes(0), nil); !errors.Is(err, ringcache.ErrDropped) {
			return fmt.Errorf("Set in a namespace that was dropped: %w", err)
		}
		w.counts[0].sets++
		if _, ok := c.HasGet(nil, keyBytes(0)); ok {
			return errors.New("a key is found in a namespace that was dropped")
		}
		w.counts[0].gets++
		w.counts[0].misses++
	}
	return err
}
