package store

import (
	"slices"

	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
)

// Reason tells why a record was removed.
type Reason uint8

const (
	Unreported Reason = iota // OnRemove is not called: it was only written again, or is damaged
	Evicted                  // no room was left for it
	Expired                  // its time to live was over
	Deleted                  // it was deleted, or its namespace invalidated
	Replaced                 // by another value
	Dropped                  // with all others
)

// Removed is an entry that was removed, with the key as its user knows it.
type Removed struct {
	Namespace  string // empty: none
	Key, Value []byte
	Reason     Reason
	Packed     bool // Value is compressed
}

// Removals are removed entries for which OnRemove has not been called yet.
type Removals struct {
	List  []Removed
	Bytes int // of keys and values
}

// IsStep reports whether OnRemove must be called before more entries are removed.
func (r *Removals) IsStep() bool {
	return r != nil && (len(r.List) >= StepRecords || r.Bytes >= StepBytes)
}

// keepRemoved copies a live record that is about to be removed from its ring. OnRemove is not
// called for the cache's own records.
func (b *Store) keepRemoved(
	r *ring.Ring, pos uint64, hd record.Header, reason Reason,
) {
	if reason == Unreported || !hd.Kind.IsUsers() {
		return
	}
	n := hd.KeyLen + hd.ValueLen
	kv, _ := r.Read(make([]byte, 0, n), pos+uint64(hd.Size), n)
	b.keepRemoval(kv, hd, reason)
}

// keepRemoval keeps an entry for OnRemove. kv is the key and value of the record with header
// hd.
func (b *Store) keepRemoval(kv []byte, hd record.Header, reason Reason) {
	if b.Removals == nil {
		b.Removals = new(Removals)
	}
	e := Removed{Key: kv[:hd.KeyLen:hd.KeyLen], Value: kv[hd.KeyLen:], Reason: reason,
		Packed: hd.Kind.Base() == record.Packed && b.cold.on}
	if hd.Kind&record.Spaced != 0 && hd.KeyLen >= generation.Size {
		if u := b.Shared.Generations.Of(generation.Of(e.Key)); u != nil {
			e.Namespace = u.Name
		}
		e.Key = e.Key[generation.Size:]
	}
	b.Removals.List = append(b.Removals.List, e)
	b.Removals.Bytes += len(kv)
}

// Fail returns the error of a write. If the write was only to rewrite an entry, that entry counts
// as evicted, and OnRemove will be called.
func (b *Store) Fail(w *Write, err error) error {
	if !w.RewriteOnly {
		return err
	}
	b.Evicted++
	b.EvictedBytes += uint64(w.Bytes)
	if b.Shared.Notifies {
		hd := record.Header{KeyLen: len(w.Key)}
		hd.Kind = w.Kind
		b.keepRemoval(slices.Concat(w.Key, w.Value), hd, Evicted)
	}
	return err
}
