package ringcache

import (
	"slices"

	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
)

// How Options.OnRemove is told of the entries that are removed. A bucket copies them under its
// lock. The call that removed them takes the copies when it releases the lock, and calls OnRemove
// once it holds no lock. The copies are on the Go heap, outside the cache's bound, and the copy of
// a short record is several times as large as the record. So a call that removes many entries works
// in steps and calls OnRemove after each of them: removals.isStep.

// RemovalReason tells why an entry was removed from the cache: see [Options].OnRemove.
type RemovalReason uint8

// The reasons why an entry is removed.
const (
	// RemovedEvicted means that the entry was evicted: the cache, or the quota of its
	// namespace, had no room left for it.
	RemovedEvicted RemovalReason = iota + 1

	// RemovedExpired means that the entry's time to live was over. Expired entries are removed
	// when their memory is needed, which may be long after they have expired.
	RemovedExpired

	// RemovedDeleted means that the entry was deleted: by Del or GetAndDel, by an Update that
	// did not keep it, by a negative time to live, by a load that found no value, or by the
	// Invalidate or Drop of its namespace.
	RemovedDeleted

	// RemovedReplaced means that the entry's value was replaced by another one, or removed by
	// a Set that failed.
	RemovedReplaced

	// RemovedReset means that Reset removed the entry.
	RemovedReset
)

// unsaid is the reason of a record that is only written again in another place.
const unsaid RemovalReason = 0

// String returns the reason in one word: evicted, expired, deleted, replaced or reset.
func (r RemovalReason) String() string {
	names := [...]string{unsaid: "unknown", RemovedEvicted: "evicted", RemovedExpired: "expired",
		RemovedDeleted: "deleted", RemovedReplaced: "replaced", RemovedReset: "reset"}
	if int(r) >= len(names) {
		r = unsaid
	}
	return names[r]
}

// removed is an entry that was removed.
type removed struct {
	k, v   []byte
	reason RemovalReason
	dict   *dictionary // the dictionary v is compressed with; nil if v is not compressed
}

// removals are removed entries that OnRemove has not been told of yet.
type removals struct {
	list  []removed
	bytes int // of keys and values
}

// isStep reports whether OnRemove must be called before more entries are removed.
func (r *removals) isStep() bool {
	return r != nil && (len(r.list) >= stepRecords || r.bytes >= stepBytes)
}

// keepRemovedLocked copies a live record that is about to be removed from its ring. OnRemove is
// not told of the cache's own records.
func (b *bucket) keepRemovedLocked(
	r *ring.Ring, pos uint64, hd record.Header, reason RemovalReason,
) {
	if reason == unsaid || !hd.Kind.IsUsers() {
		return
	}
	n := hd.KeyLen + hd.ValueLen
	kv, _ := r.Read(make([]byte, 0, n), pos+uint64(hd.Size), n)
	b.keepRemovalLocked(kv, hd, reason)
}

// keepRemovalLocked keeps an entry for OnRemove. kv is the key and value of the record with header
// hd.
func (b *bucket) keepRemovalLocked(kv []byte, hd record.Header, reason RemovalReason) {
	if b.removals == nil {
		b.removals = new(removals)
	}
	e := removed{k: kv[:hd.KeyLen:hd.KeyLen], v: kv[hd.KeyLen:], reason: reason}
	if hd.Kind == record.Packed && b.cold.on {
		e.dict = b.shared.compression.dictOf(e.v)
	}
	b.removals.list = append(b.removals.list, e)
	b.removals.bytes += len(kv)
}

// failLocked ends a write that has failed. If it was to move an entry, the entry is lost.
func (b *bucket) failLocked(w *write, err error) error {
	if w.same && b.shared.onRemove != nil {
		hd := record.Header{KeyLen: len(w.k)}
		b.keepRemovalLocked(slices.Concat(w.k, w.v), hd, RemovedEvicted)
	}
	return err
}

// unlockFor releases the bucket's lock, and hands the entries removed under it to the write.
func (b *bucket) unlockFor(w *write) {
	if b.removals != nil {
		b.takeRemovalsLocked(w)
	}
	b.unlock()
}

func (b *bucket) takeRemovalsLocked(w *write) {
	if w.removals == nil {
		w.removals = b.removals
	} else {
		w.removals.list = append(w.removals.list, b.removals.list...)
		w.removals.bytes += b.removals.bytes
	}
	b.removals = nil
}

// notify tells OnRemove of the entries that a write has removed. The caller holds no lock, or has
// set w.quiet, and then the holder of the lock calls notifyQuiet after releasing it.
func (s *shared) notify(w *write) {
	if w.removals != nil && !w.quiet {
		s.notifyQuiet(w)
	}
}

// notifyQuiet is notify for a quiet write.
func (s *shared) notifyQuiet(w *write) {
	if w.removals == nil {
		return
	}
	list := w.removals.list
	w.removals = nil
	for _, e := range list {
		if e.dict != nil {
			v, err := s.compression.unpack(nil, e.v, e.dict)
			if err != nil {
				continue // the value is lost
			}
			e.v = v
		}
		s.onRemove(e.k, e.v, e.reason)
	}
}
