package measure

import (
	"fmt"

	"github.com/ringcache/ringcache/bench/load"
	"github.com/ringcache/ringcache/bench/store"
)

const (
	// batch is how many ids are drawn at a time.
	batch = 256
	// maxKey is the size of the longest key.
	maxKey = 16
	// batchSize is how many keys a batch read has.
	batchSize = 64

	zipfDraws  = 1 << 21 // at most, per goroutine, drawn in advance and then repeated
	freshShift = 40      // every worker's new keys have their own range

	// settleEvery is how many Sets a store that finishes them on another goroutine
	// may be behind while it is filled. ristretto drops Sets when it is behind by
	// 32,768, and there are several workers.
	settleEvery = 2048
)

// worker is what one goroutine needs. Nothing in a step allocates, except for
// what the store does.
type worker struct {
	index   int
	load    *Load
	store   store.Store
	entries uint64

	rnd       load.Rand
	next      uint64   // where the order goes on
	draws     []uint32 // for zipf
	zipfDraws int      // how many
	version   uint64   // of the values that this worker sets
	ids       [batch]uint64
	mixed     int // operations of mix

	key, val, dst []byte
	keys, vals    [][]byte // for batches

	chain [batch][maxKey]byte // the keys of ids, for dependent Gets
	last  uint64              // the version that the last of these found

	ops, gets, hits uint64
}

func newWorker(b *bench, index int) *worker {
	f := b.load.Format
	w := &worker{
		index:     index,
		load:      b.load,
		entries:   uint64(b.entries),
		rnd:       load.NewRand(uint64(index)),
		zipfDraws: min(zipfDraws, (2*b.scale.Entries/batch+1)*batch),
		key:       make([]byte, f.KeySize),
		val:       make([]byte, f.ValueSize),
		dst:       make([]byte, 0, batchSize*f.ValueSize),
		keys:      make([][]byte, batchSize),
		vals:      make([][]byte, batchSize),
	}
	for i := range w.keys {
		w.keys[i] = make([]byte, f.KeySize)
	}
	return w
}

// step performs one batch of operations.
func (w *worker) step() error {
	w.load.order.draw(w)
	w.version = (w.version + 1) % load.MaxVersions
	w.ops += batch
	return w.load.op(w)
}

// steps performs at least ops operations.
func (w *worker) steps(ops int) error {
	for ; ops > 0; ops -= batch {
		if err := w.step(); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) set(id, version uint64) error {
	w.load.Format.Key(w.key, id)
	w.load.Format.Value(w.val, id, version)
	return w.store.Set(w.key, w.val)
}

func (w *worker) get(id uint64) error {
	w.load.Format.Key(w.key, id)
	v, ok := w.store.Get(w.dst, w.key)
	w.gets++
	if !ok {
		return nil
	}
	w.hits++
	return w.plausible(v, id)
}

func (w *worker) plausible(v []byte, id uint64) error {
	if !w.load.Format.Plausible(v, id) {
		return wrong(v, id)
	}
	return nil
}

func wrong(v []byte, id uint64) error {
	return fmt.Errorf("wrong value for id %d: %d bytes %.16x", id, len(v), v)
}

// verify compares every byte of the values of [from, to) that are there.
func (w *worker) verify(from, to uint64) error {
	w.gets, w.hits = 0, 0
	for id := from; id < to; id++ {
		w.load.Format.Key(w.key, id)
		v, ok := w.store.Get(w.dst, w.key)
		w.gets++
		if !ok {
			continue
		}
		w.hits++
		if _, err := w.load.Format.Verify(v, id); err != nil {
			return err
		}
	}
	return nil
}

// The operations of the throughput loads, on the ids that were drawn.

func set(w *worker) error {
	for _, id := range w.ids {
		if err := w.set(id, w.version); err != nil {
			return err
		}
	}
	return nil
}

func get(w *worker) error {
	for _, id := range w.ids {
		if err := w.get(id); err != nil {
			return err
		}
	}
	return nil
}

// getDependent asks for keys one by one, and only a value tells where the next key
// lies: as many places further as its version says. That is 0 in these loads, where
// nothing is overwritten, but neither the compiler nor the processor knows that. So
// no Get can begin before the one before it has its value. A check that it is 0
// would spoil this: the compiler would put in the 0.
//
// The keys are written in advance. To change one in the chain would be slow for those
// stores that read more bytes at once than were just written.
func getDependent(w *worker) error {
	f := w.load.Format
	for i := range w.ids {
		f.Key(w.chain[i][:f.KeySize], w.ids[i])
	}
	last := w.last
	for i := range uint64(batch) {
		at := (i + last) % batch
		v, ok := w.store.Get(w.dst, w.chain[at][:f.KeySize])
		w.gets++
		if !ok {
			continue
		}
		w.hits++
		if last, ok = f.Version(v, w.ids[at]); !ok {
			return wrong(v, w.ids[at])
		}
	}
	w.last = last
	return nil
}

// getNil leaves it to the store to allocate what it returns.
func getNil(w *worker) error {
	dst := w.dst
	w.dst = nil
	err := get(w)
	w.dst = dst
	return err
}

// getAbsent asks for keys that were never set.
func getAbsent(w *worker) error {
	before := w.hits
	if err := get(w); err != nil {
		return err
	}
	if w.hits != before {
		return fmt.Errorf("a key that was never set is found")
	}
	return nil
}

// setThenGet goes with the order twice: first round Set, second round Get.
func setThenGet(w *worker) error {
	for _, id := range w.ids {
		var err error
		if id < w.entries {
			err = w.set(id, w.version)
		} else {
			err = w.get(id - w.entries)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// delThenSet deletes each key, and sets it again.
func delThenSet(w *worker) error {
	for _, id := range w.ids {
		w.load.Format.Key(w.key, id)
		w.store.Del(w.key)
		if err := w.set(id, w.version); err != nil {
			return err
		}
	}
	return nil
}

// readThrough sets what it does not find.
func readThrough(w *worker) error {
	for _, id := range w.ids {
		hits := w.hits
		if err := w.get(id); err != nil {
			return err
		}
		if w.hits > hits {
			continue
		}
		if err := w.set(id, w.version); err != nil {
			return err
		}
	}
	return nil
}

// mix is nine Gets and a Set.
func mix(w *worker) error {
	for _, id := range w.ids {
		var err error
		if w.mixed++; w.mixed%10 == 0 {
			err = w.set(id, w.version)
		} else {
			err = w.get(id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func getBatch(w *worker) error {
	for from := 0; from < batch; from += batchSize {
		ids := w.ids[from:][:batchSize]
		for i, id := range ids {
			w.load.Format.Key(w.keys[i], id)
		}
		_, hits := store.GetBatch(w.store, w.dst, w.keys, w.vals)
		w.gets += batchSize
		w.hits += uint64(hits)
		for i, v := range w.vals {
			if v == nil {
				continue
			}
			if err := w.plausible(v, ids[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
