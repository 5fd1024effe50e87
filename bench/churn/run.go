package churn

import (
	"fmt"
	"time"

	"github.com/ringcache/ringcache/bench/load"
	"github.com/ringcache/ringcache/bench/store"
)

const (
	// batch is how many operations are prepared at a time, and then timed together: a look at
	// the clock would take a good part of an operation.
	batch = 64

	// batchBytes bounds the values of a batch, so that they stay in the CPU cache.
	batchBytes = 256 << 10
)

// target is a store or one of its namespaces.
type target interface {
	Set(k, v []byte) error
	Get(dst, k []byte) ([]byte, bool)
}

// run is a run in progress. It knows which entries are live and what their values are.
type run struct {
	Size
	values *values
	sizes  []int // by id, of the value; 0: not live
	latest []uint32
	rnd    load.Rand

	store   store.Store
	updater store.Updater // nil: an append is a Get and a Set
	target  target        // of reads and writes

	ops   []op
	keys  [batch][KeyBytes]byte
	vals  []byte // of ops
	dst   []byte
	added []byte // to a value, by an append

	writes, reads clock
	written       int // bytes of the keys and values set since startTiming
	refused       int
	before        store.Moves // at startTiming
	metrics       Metrics
}

// op is a write that waits for its batch.
type op struct {
	kind    opKind
	val     []byte
	refused bool
}

type opKind uint8

const (
	opSet opKind = iota
	opDel
	opAppend
)

// clock is how long a number of operations have taken.
type clock struct {
	n    int
	took time.Duration
}

func (c *clock) add(n int, took time.Duration) {
	c.n += n
	c.took += took
}

func (c *clock) nanoseconds() float64 { return float64(c.took.Nanoseconds()) / float64(c.n) }

func newRun(size Size, payload string, keys int) (*run, error) {
	largest := size.largest()
	v, err := newValues(largest, payload)
	if err != nil {
		return nil, err
	}
	return &run{
		Size: size, values: v, rnd: load.NewRand(1),
		sizes: make([]int, keys), latest: make([]uint32, keys),
		ops: make([]op, 0, batch), vals: make([]byte, 0, max(batchBytes, largest)),
		dst: make([]byte, 0, largest), metrics: Metrics{},
	}, nil
}

func (r *run) open(info store.Info, c store.Config) error {
	s, err := info.New(c)
	if err != nil {
		return err
	}
	r.store, r.target = s, s
	r.updater, _ = s.(store.Updater)
	return nil
}

// startTiming forgets what has been counted so far.
func (r *run) startTiming() {
	r.flush()
	store.Settle(r.store)
	r.writes, r.reads, r.written = clock{}, clock{}, 0
	if m, ok := r.store.(store.Mover); ok {
		r.before = m.Moves()
	}
}

// turns reports whether so many times the bound has been written since startTiming.
func (r *run) turns(n float64) bool { return float64(r.written) >= n*float64(r.bound()) }

// set gives id a new value of that size.
func (r *run) set(id, size int) {
	v := r.room(size)
	r.latest[id]++
	r.sizes[id] = size
	r.values.fill(v, id, r.latest[id])
	r.add(opSet, id, v)
}

// append makes the value of id longer.
func (r *run) append(id, more int) {
	old := r.sizes[id]
	v := r.room(old + more)
	r.sizes[id] = len(v)
	r.values.fill(v, id, r.latest[id])
	r.add(opAppend, id, v[old:])
}

// del removes id, which may not be there.
func (r *run) del(id int) {
	r.room(0)
	r.sizes[id] = 0
	r.add(opDel, id, nil)
}

// room returns a part of vals for the next op, after which add comes.
func (r *run) room(size int) []byte {
	if len(r.ops) == batch || len(r.vals)+size > cap(r.vals) {
		r.flush()
	}
	at := len(r.vals)
	r.vals = r.vals[:at+size]
	return r.vals[at:]
}

func (r *run) add(kind opKind, id int, val []byte) {
	key(&r.keys[len(r.ops)], id)
	r.ops = append(r.ops, op{kind: kind, val: val})
	if kind != opDel {
		r.written += KeyBytes + r.sizes[id]
	}
}

// flush performs the writes that wait. A key whose write is refused is deleted, as a program
// must do that does not want to read the old value. It is live, and lost.
func (r *run) flush() {
	start := time.Now()
	for i := range r.ops {
		o, k := &r.ops[i], r.keys[i][:]
		var err error
		switch o.kind {
		case opSet:
			err = r.target.Set(k, o.val)
		case opDel:
			r.store.Del(k)
		case opAppend:
			err = r.extend(k, o.val)
		}
		o.refused = err != nil
	}
	r.writes.add(len(r.ops), time.Since(start))
	for i := range r.ops {
		if r.ops[i].refused {
			r.refused++
			r.store.Del(r.keys[i][:])
		}
	}
	r.ops, r.vals = r.ops[:0], r.vals[:0]
}

func (r *run) extend(k, suffix []byte) error {
	if r.updater != nil {
		r.added = suffix
		return r.updater.Update(k, r.longer)
	}
	v, ok := r.target.Get(r.dst[:0], k)
	if !ok {
		v = r.dst[:0]
	}
	return r.target.Set(k, append(v, suffix...))
}

// longer returns the value with what is added to it.
func (r *run) longer(old []byte, _ bool) ([]byte, bool) {
	r.dst = append(append(r.dst[:0], old...), r.added...)
	return r.dst, true
}

// get reads up to batch ids, and returns how many are there.
func (r *run) get(ids []int) (found int, err error) {
	r.flush()
	for i, id := range ids {
		key(&r.keys[i], id)
	}
	wrong := -1
	start := time.Now()
	for i, id := range ids {
		v, ok := r.target.Get(r.dst[:0], r.keys[i][:])
		if !ok {
			continue
		}
		found++
		if !isPlausible(v, id, r.latest[id], r.sizes[id]) {
			wrong = id
		}
	}
	r.reads.add(len(ids), time.Since(start))
	if wrong >= 0 {
		return found, fmt.Errorf("key %d has a value that is not its last one", wrong)
	}
	return found, nil
}

// tally counts keys.
type tally struct {
	live  int
	found int
	parts int // of the others, those found with a part missing
}

func (t tally) share() float64 { return float64(t.found) / float64(max(1, t.live)) }

// look reads all keys of [from, to), and compares every byte of their values. Unless parts may
// be missing, any other value is an error, and so is that of a deleted key.
func (r *run) look(from, to int, partsMayMiss bool) (t tally, err error) {
	for id := from; id < to; id++ {
		key(&r.keys[0], id)
		v, ok := r.target.Get(r.dst[:0], r.keys[0][:])
		size := r.sizes[id]
		if size > 0 {
			t.live++
		}
		if !ok {
			continue
		}
		if size == 0 {
			return t, fmt.Errorf("key %d was deleted, and has a value of %d bytes", id, len(v))
		}
		switch whole, part := r.values.compare(v, id, r.latest[id], size); {
		case whole:
			t.found++
		case part && partsMayMiss:
			t.parts++
		default:
			return t, fmt.Errorf("key %d has a value of %d bytes that is not its last one", id, len(v))
		}
	}
	return t, nil
}

// report notes what all loads have in common.
func (r *run) report() {
	live := 0
	for _, size := range r.sizes {
		if size > 0 {
			live += KeyBytes + size
		}
	}
	r.metrics[Live] = float64(live) / float64(r.bound())
	r.metrics[Refused] = float64(r.refused)
	if r.writes.n > 0 {
		r.metrics[NsWrite] = r.writes.nanoseconds()
	}
	if r.reads.n > 0 {
		r.metrics[NsRead] = r.reads.nanoseconds()
	}
	if m, ok := r.store.(store.Mover); ok {
		now := m.Moves()
		r.metrics[Evicted] = float64(now.Evicted)
		r.metrics[Moved] = float64(now.Moved-r.before.Moved) / float64(max(1, r.written))
		r.metrics[Dead] = float64(now.Dead) / float64(r.bound())
	}
}
