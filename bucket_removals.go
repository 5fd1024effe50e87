package ringcache

import (
	"slices"

	"github.com/ringcache/ringcache/internal/cold"

	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
)

// Reason tells why a record was removed.
type Reason uint8

const (
	Unsaid   Reason = iota // it was only written again in another place
	Evicted                // no room was left for it
	Expired                // its time to live was over
	Deleted                // it was deleted, or its namespace invalidated
	Replaced               // by another value
	Dropped                // with all others
)

// Removed is an entry that was removed.
type Removed struct {
	k, v   []byte
	reason Reason
	dict   *cold.Dictionary // the dictionary v is compressed with; nil if v is not compressed
}

// Removals are removed entries that OnRemove has not been told of yet.
type Removals struct {
	list  []Removed
	bytes int // of keys and values
}

// isStep reports whether OnRemove must be called before more entries are removed.
func (r *Removals) isStep() bool {
	return r != nil && (len(r.list) >= stepRecords || r.bytes >= stepBytes)
}

// keepRemovedLocked copies a live record that is about to be removed from its ring. OnRemove is
// not told of the cache's own records.
func (b *Store) keepRemovedLocked(
	r *ring.Ring, pos uint64, hd record.Header, reason Reason,
) {
	if reason == Unsaid || !hd.Kind.IsUsers() {
		return
	}
	n := hd.KeyLen + hd.ValueLen
	kv, _ := r.Read(make([]byte, 0, n), pos+uint64(hd.Size), n)
	b.keepRemovalLocked(kv, hd, reason)
}

// keepRemovalLocked keeps an entry for OnRemove. kv is the key and value of the record with header
// hd.
func (b *Store) keepRemovalLocked(kv []byte, hd record.Header, reason Reason) {
	if b.removals == nil {
		b.removals = new(Removals)
	}
	e := Removed{k: kv[:hd.KeyLen:hd.KeyLen], v: kv[hd.KeyLen:], reason: reason}
	if hd.Kind == record.Packed && b.cold.on {
		e.dict = b.shared.compression.DictOf(e.v)
	}
	b.removals.list = append(b.removals.list, e)
	b.removals.bytes += len(kv)
}

// failLocked ends a write that has failed. If it was to move an entry, the entry is lost.
func (b *Store) failLocked(w *Write, err error) error {
	if w.same && b.shared.notifies {
		hd := record.Header{KeyLen: len(w.k)}
		b.keepRemovalLocked(slices.Concat(w.k, w.v), hd, Evicted)
	}
	return err
}
