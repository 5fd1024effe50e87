package hitratio

import (
	"encoding/binary"
	"fmt"

	"github.com/ringcache/ringcache/bench/store"
	"github.com/ringcache/ringcache/bench/trace"
)

// Counts is what a replay counts.
type Counts struct {
	Requests, Hits  int64
	Bytes, HitBytes int64 // of the requests' values
	Refused         int64 // Sets that returned an error
}

// replayer makes the requests of a plan on a store. Keys and values are written
// into the same buffers again and again.
type replayer struct {
	plan  *Plan
	store store.Store
	key   []byte
	val   []byte // a value is a part of it, with the head of its own
	dst   []byte

	// What the last value that was found is, and what notes that.
	head uint64
	size int
	see  func(v []byte)

	Counts
}

func newReplayer(p *Plan, s store.Store, t *trace.Trace) *replayer {
	largest := leastValue
	for _, r := range t.Requests {
		largest = max(largest, p.valueSize(0, r.Size))
	}
	largest = max(largest, 2*p.ValueBytes)
	r := &replayer{plan: p, store: s, key: make([]byte, keyBytes), val: make([]byte, largest), dst: make([]byte, 0, largest)}
	for i := 0; i+8 <= largest; i += 8 {
		binary.LittleEndian.PutUint64(r.val[i:], mix(uint64(i))) // nothing that could be compressed
	}
	r.see = func(v []byte) {
		r.head, r.size = 0, len(v)
		if len(v) >= leastValue {
			r.head = binary.LittleEndian.Uint64(v)
		}
	}
	return r
}

// replay makes all requests, each in all key spaces. An error is a wrong value.
func (r *replayer) replay(t *trace.Trace) error {
	for _, req := range t.Requests {
		for c := range r.plan.Copies {
			if err := r.request(r.plan.ID(req.Key, c), req); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *replayer) request(id uint64, req trace.Request) error {
	size := r.plan.valueSize(id, req.Size)
	r.Requests++
	r.Bytes += int64(size)
	if !r.get(id) {
		if err := r.store.Set(r.key, r.value(id, size)); err != nil {
			r.Refused++
		}
		return nil
	}
	r.Hits++
	r.HitBytes += int64(size)
	if r.head != head(id) {
		return fmt.Errorf("hitratio: replay: key %d has a value of %d bytes that was never set", id, r.size)
	}
	return nil
}

// get reports whether a value is found, and leaves the key in its buffer.
func (r *replayer) get(id uint64) bool {
	binary.LittleEndian.PutUint64(r.key, mix(id))
	binary.LittleEndian.PutUint64(r.key[8:], id)
	if l, ok := r.store.(store.Looker); ok {
		return l.Look(r.key, r.see)
	}
	v, ok := r.store.Get(r.dst, r.key)
	if ok {
		r.see(v)
	}
	return ok
}

// value returns a value that differs from every other key's.
func (r *replayer) value(id uint64, size int) []byte {
	binary.LittleEndian.PutUint64(r.val, head(id))
	return r.val[:size]
}

func head(id uint64) uint64 { return mix(^id) }

// held returns the bytes of all keys and values that can be found.
func (r *replayer) held() (sum int64) {
	for id := range uint64(r.plan.Keys) {
		if r.get(id) {
			sum += int64(keyBytes + r.size)
		}
	}
	return sum
}
