package lincheck

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ringcache/ringcache"
)

func call(begin, end int64, in input, out output) porcupine.Operation {
	return porcupine.Operation{Input: in, Output: out, Call: begin, Return: end}
}

func setOf(v uint64, begin, end int64) porcupine.Operation {
	return call(begin, end, input{kind: set, version: v}, output{})
}

func readOf(v uint64, begin, end int64) porcupine.Operation {
	return call(begin, end, input{kind: read}, output{found: v != absent, version: v})
}

func delOf(found bool, begin, end int64) porcupine.Operation {
	return call(begin, end, input{kind: del}, output{found: found})
}

func hasOf(found bool, begin, end int64) porcupine.Operation {
	return call(begin, end, input{kind: has}, output{found: found})
}

func loadOf(v uint64, byItself bool, begin, end int64) porcupine.Operation {
	own := v
	if !byItself {
		own = v + 100
	}
	return call(begin, end, input{kind: load, version: own},
		output{found: true, version: v, loaded: byItself})
}

func TestModel_Accepts(t *testing.T) {
	for name, history := range map[string][]porcupine.Operation{
		"last value":        {setOf(1, 1, 2), setOf(2, 3, 4), readOf(2, 5, 6)},
		"evicted":           {setOf(1, 1, 2), readOf(absent, 3, 4), setOf(2, 5, 6), readOf(2, 7, 8)},
		"evicted, then del": {setOf(1, 1, 2), delOf(false, 3, 4)},
		"side by side":      {setOf(1, 1, 4), setOf(2, 2, 3), readOf(1, 5, 6)},
		"put and refused": {call(1, 2, input{kind: put, version: 1}, output{found: true}),
			call(3, 4, input{kind: put, version: 2}, output{}), readOf(1, 5, 6)},
		"swapped": {setOf(1, 1, 2),
			call(3, 4, input{kind: swap, old: 1, version: 2}, output{found: true}), readOf(2, 5, 6)},
		"evicted, not swap": {setOf(1, 1, 2), call(3, 4, input{kind: swap, old: 1, version: 2}, output{}),
			readOf(absent, 5, 6)},
		"loaded for two": {loadOf(1, true, 1, 5), loadOf(1, false, 2, 4), setOf(2, 6, 7),
			readOf(2, 8, 9)},
		"overtaken": {loadOf(1, true, 1, 5), setOf(2, 2, 3), readOf(2, 6, 7)},
		"known absent": {setOf(1, 1, 2), call(3, 4, input{kind: load, version: 2}, output{}),
			readOf(absent, 5, 6)},
		"has": {setOf(1, 1, 2), hasOf(true, 3, 4), delOf(true, 5, 6), hasOf(false, 7, 8)},
	} {
		if !porcupine.CheckOperations(cacheModel, history) {
			t.Errorf("%s: refused", name)
		}
	}
}

func TestModel_Refuses(t *testing.T) {
	for name, history := range map[string][]porcupine.Operation{
		"stale":                {setOf(1, 1, 2), setOf(2, 3, 4), readOf(1, 5, 6)},
		"never written":        {setOf(1, 1, 2), readOf(9, 3, 4)},
		"after del":            {setOf(1, 1, 2), delOf(true, 3, 4), readOf(1, 5, 6)},
		"back from nowhere":    {setOf(1, 1, 2), readOf(absent, 3, 4), readOf(1, 5, 6)},
		"new, then old":        {setOf(1, 1, 2), setOf(2, 3, 10), readOf(2, 4, 5), readOf(1, 6, 7)},
		"deleted twice":        {setOf(1, 1, 2), delOf(true, 3, 4), delOf(true, 5, 6)},
		"has what was deleted": {setOf(1, 1, 2), delOf(true, 3, 4), hasOf(true, 5, 6)},
		"of another key": {call(1, 2, input{kind: set, key: 1, version: 1}, output{}),
			readOf(1, 3, 4)},
		"put over": {setOf(1, 1, 2), call(3, 4, input{kind: put, version: 2}, output{}),
			readOf(2, 5, 6)},
		"swapped for another": {setOf(1, 1, 2),
			call(3, 4, input{kind: swap, old: 9, version: 2}, output{found: true})},
		"not swapped, and back": {setOf(1, 1, 2),
			call(3, 4, input{kind: swap, old: 1, version: 2}, output{}), readOf(1, 5, 6)},
		"update of the old": {setOf(1, 1, 2), setOf(2, 3, 4),
			call(5, 6, input{kind: update, version: 3}, output{found: true, version: 1})},
		"taken twice": {setOf(1, 1, 2),
			call(3, 4, input{kind: take}, output{found: true, version: 1}),
			call(5, 6, input{kind: take}, output{found: true, version: 1})},
		"changed from nothing":  {call(1, 2, input{kind: change, version: 1}, output{})},
		"joined too late":       {loadOf(1, true, 1, 2), setOf(2, 3, 4), loadOf(1, false, 5, 6)},
		"deleted before it was": {delOf(true, 1, 2), setOf(1, 3, 4)},
	} {
		if porcupine.CheckOperations(cacheModel, history) {
			t.Errorf("%s: accepted", name)
		}
	}
}

// forgetful is a correct store with one fault that can be switched on.
type forgetful struct {
	mu    sync.Mutex
	now   map[string][]byte
	old   map[string][]byte
	loads map[string][]byte
	fault string
	n     int
}

func (f *forgetful) HasGet(dst, k []byte) ([]byte, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.get(dst, k)
}

func (f *forgetful) get(dst, k []byte) ([]byte, bool) {
	f.n++
	v, ok := f.now[string(k)]
	if old, had := f.old[string(k)]; f.fault == "stale" && had && f.n%10 == 0 {
		v, ok = old, true
	}
	return append(dst, v...), ok
}

func (f *forgetful) Set(k, v []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.set(k, v)
	return nil
}

func (f *forgetful) set(k, v []byte) {
	if was, ok := f.now[string(k)]; ok {
		f.old[string(k)] = was
	}
	f.now[string(k)] = append([]byte(nil), v...)
}

func (f *forgetful) Del(k []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.del(k)
}

func (f *forgetful) del(k []byte) bool {
	was, ok := f.now[string(k)]
	f.n++
	if f.fault == "undeleted" && f.n%10 == 0 {
		return ok
	}
	if ok {
		f.old[string(k)] = was
	}
	delete(f.now, string(k))
	return ok
}

// look begins a compound call. If that is the fault, others come in between.
func (f *forgetful) look(k []byte) (v []byte, ok bool) {
	f.mu.Lock()
	v, ok = f.get(nil, k)
	if f.fault == "torn" {
		f.mu.Unlock()
		runtime.Gosched()
		f.mu.Lock()
	}
	return v, ok
}

func (f *forgetful) SetIfAbsent(
	dst, k, v []byte, _ time.Duration,
) ([]byte, bool, error) {
	old, ok := f.look(k)
	defer f.mu.Unlock()
	if !ok {
		f.set(k, v)
	}
	return append(dst, old...), !ok, nil
}

func (f *forgetful) SetIfChanged(k, v []byte) (bool, error) {
	old, ok := f.look(k)
	defer f.mu.Unlock()
	if ok && string(old) == string(v) {
		return false, nil
	}
	f.set(k, v)
	return true, nil
}

func (f *forgetful) CompareAndSwap(k, old, new []byte) (bool, error) {
	v, ok := f.look(k)
	defer f.mu.Unlock()
	if !ok || string(v) != string(old) {
		return false, nil
	}
	f.set(k, new)
	return true, nil
}

func (f *forgetful) update(k []byte, fn func(old []byte, ok bool) []byte) error {
	v, ok := f.look(k)
	defer f.mu.Unlock()
	f.set(k, fn(v, ok))
	return nil
}

// GetWithTTL is HasGet: the time is not looked at.
func (f *forgetful) GetWithTTL(dst, k []byte) ([]byte, time.Duration, bool) {
	v, ok := f.HasGet(dst, k)
	return v, 0, ok
}

func (f *forgetful) GetAndDel(dst, k []byte) ([]byte, bool) {
	v, ok := f.look(k)
	defer f.mu.Unlock()
	f.del(k)
	return append(dst, v...), ok
}

// GetOrLoad may give what was loaded before for the key, if that is the fault,
// as one would that joins a load which is over.
func (f *forgetful) GetOrLoad(
	ctx context.Context, dst, k []byte, load ringcache.LoadFunc[[]byte, []byte],
) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if v, ok := f.get(nil, k); ok {
		return append(dst, v...), nil
	}
	if v, ok := f.loads[string(k)]; ok && f.fault == "joined late" {
		return append(dst, v...), nil
	}
	v, _, err := load(ctx, k)
	if err != nil {
		return dst, err
	}
	f.set(k, v)
	f.loads[string(k)] = v
	return append(dst, v...), nil
}

// GetOrLoadBatch is GetOrLoad of each key.
func (f *forgetful) GetOrLoadBatch(
	ctx context.Context, dst []byte, keys, vals [][]byte,
	load ringcache.BatchLoadFunc[[]byte, []byte],
) ([]byte, int, error) {
	one := func(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
		all, err := load(ctx, [][]byte{k})
		if err != nil {
			return nil, 0, err
		}
		return all[0].Value, all[0].TTL, all[0].Err
	}
	for i, k := range keys {
		v, err := f.GetOrLoad(ctx, nil, k, one)
		if vals[i] = v; err != nil && !errors.Is(err, ringcache.ErrAbsent) {
			return dst, 0, err
		}
	}
	return dst, 0, nil
}

func (f *forgetful) Get(dst, k []byte) []byte {
	dst, _ = f.HasGet(dst, k)
	return dst
}

func (f *forgetful) Has(k []byte) bool {
	_, ok := f.HasGet(nil, k)
	return ok
}

func (f *forgetful) GetBatch(dst []byte, keys, vals [][]byte) ([]byte, int) {
	for i, k := range keys {
		vals[i], _ = f.HasGet(nil, k)
	}
	return dst, 0
}

// The whole harness must find a store with a fault, and find none in one
// without.
func TestHarness_Bites(t *testing.T) {
	for fault, want := range map[string]bool{"": true, "stale": false, "undeleted": false,
		"torn": false, "joined late": false} {
		ok := true
		for round := range uint32(20) {
			f := &forgetful{now: map[string][]byte{}, old: map[string][]byte{}, loads: map[string][]byte{},
				fault: fault}
			r := newRecorder(f, uint64(round), round, round%2 == 0)
			if err := r.run(opsPerClient); err != nil {
				t.Fatal(err)
			}
			ok = ok && porcupine.CheckOperations(cacheModel, r.history())
		}
		if ok != want {
			t.Errorf("fault %q: histories linearizable: %v, want %v", fault, ok, want)
		}
	}
}
