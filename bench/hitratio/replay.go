package hitratio

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/ringcache/ringcache/bench/load"
	"github.com/ringcache/ringcache/bench/payload"
	"github.com/ringcache/ringcache/bench/store"
	"github.com/ringcache/ringcache/bench/trace"
)

// Counts is what a replay counts.
type Counts struct {
	Requests, Hits  int64
	Bytes, HitBytes int64 // of the requests' values
	Refused         int64 // Sets that returned an error

	// In a load with trace.Read, those are what is counted above, and here what is
	// read through beside them.
	Beside, BesideHits int64
}

// replayer makes the requests of a plan on a store. Keys and values are written
// into the same buffers again and again.
type replayer struct {
	plan  *Plan
	store store.Store
	key   []byte
	val   []byte // a value is a part of it, with its own head
	dst   []byte
	// how often each id was updated; nil: there are no updates
	updates []uint32
	fill    *payload.Payload // what values are filled with; nil: with what val has

	// What the last value that was found is, and what notes that.
	stamp  uint64
	length int
	see    func(v []byte)

	failed error // of newReplayer

	Counts
}

func newReplayer(p *Plan, s store.Store, t *trace.Trace) *replayer {
	largest := leastValue
	for _, r := range t.Requests {
		largest = max(largest, p.valueSize(0, r.Size))
	}
	largest = max(largest, 2*p.ValueBytes)
	if p.Writes > 0 {
		largest += largest / 2
	}
	r := &replayer{plan: p, store: s, key: make([]byte, keyBytes), val: make([]byte, largest),
		dst: make([]byte, 0, largest)}
	for i := 0; i+8 <= largest; i += 8 {
		binary.LittleEndian.PutUint64(r.val[i:], load.Mix(uint64(i))) // nothing that could be compressed
	}
	if p.Writes > 0 {
		r.updates = make([]uint32, p.Keys)
	}
	if p.Payload != "" {
		r.fill, r.failed = payload.New(p.Payload)
	}
	r.see = func(v []byte) {
		r.stamp, r.length = 0, len(v)
		if len(v) >= leastValue {
			r.stamp = binary.LittleEndian.Uint64(v) ^ r.sum(v[leastValue:])
		}
	}
	return r
}

// replay makes all requests, each in all key spaces. An error is a wrong value.
func (r *replayer) replay(t *trace.Trace) error {
	if r.failed != nil {
		return r.failed
	}
	for i, req := range t.Requests {
		step := t.Step(i)
		for c := range r.plan.Copies {
			id := r.plan.ID(req.Key, c)
			if step == trace.ReadThrough && r.plan.isUpdate(i*r.plan.Copies+c) {
				r.update(id, req)
				continue
			}
			hit, err := r.request(id, req, step)
			if err != nil {
				return err
			}
			if i >= t.Warm && step != trace.Write {
				r.count(hit, r.size(id, req), step == trace.ReadThrough && len(t.Cycle) > 0)
			}
		}
	}
	return nil
}

// request makes one request, and reports whether a value was found.
func (r *replayer) request(id uint64, req trace.Request, step trace.Step) (hit bool, err error) {
	r.name(id)
	if step != trace.Write {
		if hit, err = r.find(id); hit {
			return true, err
		}
	}
	if step != trace.Read {
		if err := r.store.Set(r.key, r.value(id, r.size(id, req))); err != nil {
			r.Refused++
		}
	}
	return false, nil
}

// update sets a value of another length. If that is refused, the key is deleted, as a program
// must do that does not want to read the old value.
func (r *replayer) update(id uint64, req trace.Request) {
	r.name(id)
	r.updates[id]++
	if err := r.store.Set(r.key, r.value(id, r.size(id, req))); err != nil {
		r.Refused++
		r.store.Del(r.key)
	}
}

// updated returns how often id was updated.
func (r *replayer) updated(id uint64) uint32 {
	if r.updates == nil {
		return 0
	}
	return r.updates[id]
}

// size returns the bytes of the value that id has now.
func (r *replayer) size(id uint64, req trace.Request) int {
	return r.plan.updatedSize(id, req.Size, r.updated(id))
}

// count counts a read of a value of that size.
func (c *Counts) count(hit bool, size int, beside bool) {
	hits, bytes := int64(0), int64(0)
	if hit {
		hits, bytes = 1, int64(size)
	}
	if beside {
		c.Beside++
		c.BesideHits += hits
		return
	}
	c.Requests++
	c.Hits += hits
	c.Bytes += int64(size)
	c.HitBytes += bytes
}

// name writes the key of id into its buffer.
func (r *replayer) name(id uint64) {
	binary.LittleEndian.PutUint64(r.key, load.Mix(id))
	binary.LittleEndian.PutUint64(r.key[8:], id)
}

// find reports whether a value of id, whose key is in the buffer, is found. An error is one
// that was never set.
func (r *replayer) find(id uint64) (hit bool, err error) {
	hit = r.get()
	if hit && r.stamp != r.stampOf(id) {
		err = fmt.Errorf("hitratio: replay: key %d has a value of %d bytes that was never set",
			id, r.length)
	}
	return hit, err
}

// get reports whether a value of the key in the buffer is found.
func (r *replayer) get() bool {
	if l, ok := r.store.(store.Looker); ok {
		return l.Look(r.key, r.see)
	}
	v, ok := r.store.Get(r.dst, r.key)
	if ok {
		r.see(v)
	}
	return ok
}

// value returns a value that differs from every other key's. It begins with the stamp of its
// key and the sum of what follows.
func (r *replayer) value(id uint64, size int) []byte {
	v := r.val[:size]
	if r.fill != nil {
		r.fill.Fill(v, id+uint64(r.updated(id))<<32)
	}
	binary.LittleEndian.PutUint64(v, r.stampOf(id)^r.sum(v[leastValue:]))
	return v
}

// stampOf tells the key, and how often it was updated.
func (r *replayer) stampOf(id uint64) uint64 {
	return load.Mix(^id) + uint64(r.updated(id))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli) // for which processors have an instruction

// sum returns a checksum of the bytes of a value behind its head, which tells its length too.
// Without a payload they are the same for all keys, and are not looked at.
func (r *replayer) sum(body []byte) uint64 {
	if r.fill == nil {
		return 0
	}
	return uint64(crc32.Checksum(body, castagnoli))
}

// held returns the bytes of all keys and values that can be found.
func (r *replayer) held() (sum int64, err error) {
	for id := range uint64(r.plan.Keys) {
		r.name(id)
		hit, err := r.find(id)
		if err != nil {
			return 0, err
		}
		if hit {
			sum += int64(keyBytes + r.length)
		}
	}
	return sum, nil
}
