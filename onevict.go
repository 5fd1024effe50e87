package ringcache

import (
	"slices"

	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
)

// How Options.OnEvict hears of the entries that leave. A bucket copies them under its lock,
// the call that caused it takes the copies when it gives up the lock, and notifies when it
// holds none. The copies are on the Go heap, outside of the cache's bound, and one of a short
// record takes several times the record. So a call that makes many entries leave works in steps,
// and notifies after each: evictions.isStep.

// Reason is why an entry has left the cache.
type Reason uint8

const (
	// unsaid is the reason of what is only written again in another place.
	unsaid Reason = iota

	// EvictCapacity is the reason of an entry that was dropped to make room.
	EvictCapacity

	// EvictExpired is the reason of one that was reclaimed after its time to live, perhaps
	// long after.
	EvictExpired

	// EvictDeleted is the reason of one that was removed by Del, GetAndDel, an Update that
	// did not keep it, or a time to live below 0.
	EvictDeleted

	// EvictReplaced is the reason of a value that another one replaced, or a failed Set removed.
	EvictReplaced

	// EvictReset is the reason of one that was there when Reset was called.
	EvictReset
)

// String returns the name of the reason.
func (r Reason) String() string {
	names := [...]string{unsaid: "unknown", EvictCapacity: "capacity", EvictExpired: "expired",
		EvictDeleted: "deleted", EvictReplaced: "replaced", EvictReset: "reset"}
	if int(r) >= len(names) {
		r = unsaid
	}
	return names[r]
}

// evicted is an entry that has left, for OnEvict to hear of.
type evicted struct {
	k, v   []byte
	reason Reason
	dict   *dictionary // with which v is packed; nil: it is not
}

// evictions are entries that have left, and that OnEvict has not heard of.
type evictions struct {
	list  []evicted
	bytes int // of keys and values
}

// isStep reports whether OnEvict should hear of the entries before more leave.
func (e *evictions) isStep() bool {
	return e != nil && (len(e.list) >= stepRecords || e.bytes >= stepBytes)
}

// keepEvictedLocked is called for each live record that leaves a ring, while it is still
// there. Of one that no user has set there is nothing to tell.
func (b *bucket) keepEvictedLocked(r *ring.Ring, pos uint64, hd record.Header, reason Reason) {
	if reason == unsaid || !hd.Kind.IsUsers() {
		return
	}
	n := hd.KeyLen + hd.ValueLen
	kv, _ := r.Read(make([]byte, 0, n), pos+uint64(hd.Size), n)
	b.keepEvictionLocked(kv, hd, reason)
}

// keepEvictionLocked keeps an entry for OnEvict. kv is its key and value, as the record with
// that header has them.
func (b *bucket) keepEvictionLocked(kv []byte, hd record.Header, reason Reason) {
	if b.evictions == nil {
		b.evictions = new(evictions)
	}
	e := evicted{k: kv[:hd.KeyLen:hd.KeyLen], v: kv[hd.KeyLen:], reason: reason}
	if hd.Kind == record.Packed && b.cold.on {
		e.dict = b.shared.compression.dictOf(e.v)
	}
	b.evictions.list = append(b.evictions.list, e)
	b.evictions.bytes += len(kv)
}

// failLocked ends a write that failed: a value that was only to be written again is lost.
func (b *bucket) failLocked(w *write, err error) error {
	if w.same && b.shared.onEvict != nil {
		b.keepEvictionLocked(slices.Concat(w.k, w.v), record.Header{KeyLen: len(w.k)}, EvictCapacity)
	}
	return err
}

// unlockFor gives up the bucket's lock. What has left under it goes with the write.
func (b *bucket) unlockFor(w *write) {
	if b.evictions != nil {
		b.takeEvictionsLocked(w)
	}
	b.unlock()
}

func (b *bucket) takeEvictionsLocked(w *write) {
	if w.evictions == nil {
		w.evictions = b.evictions
	} else {
		w.evictions.list = append(w.evictions.list, b.evictions.list...)
		w.evictions.bytes += b.evictions.bytes
	}
	b.evictions = nil
}

// notify tells OnEvict what has left because of a write. No lock is held, or else w.quiet
// is set, and who holds the lock calls notifyQuiet when it has given that up.
func (s *shared) notify(w *write) {
	if w.evictions != nil && !w.quiet {
		s.notifyQuiet(w)
	}
}

// notifyQuiet is notify of a write that was quiet.
func (s *shared) notifyQuiet(w *write) {
	if w.evictions == nil {
		return
	}
	left := w.evictions.list
	w.evictions = nil
	for _, e := range left {
		if e.dict != nil {
			v, err := s.compression.unpack(nil, e.v, e.dict)
			if err != nil {
				continue // nobody can tell what it was
			}
			e.v = v
		}
		s.onEvict(e.k, e.v, e.reason)
	}
}
