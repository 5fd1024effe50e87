package store

import (
	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
)

// What a bucket knows of namespaces. The key of an entry of a namespace begins with a generation,
// and its record says so: it is spaced. The key of the record of a namespace itself, which holds
// the generation, begins with generation 0, which no namespace has.
//
// The entries of a generation that was forgotten count as dead. They are found like expired ones:
// by a walk of which each Set does a part, and at the tails. A Set that needs room before the walk
// has ended does a larger part.

const (
	forgetStep = 1024 // records that a Set without room examines

	// The records of namespaces may take 1/internalShare of a bucket. Beyond that, the policy treats
	// them as others, lest many namespaces fill a small cache with their records.
	internalShare = 4
)

// IsForgotten reports whether the key of a write is of a generation that was forgotten.
func (s *Shared) IsForgotten(w *Write) bool {
	return w.Kind&record.Spaced != 0 && w.Kind != record.Internal &&
		s.Generations.IsForgotten(generation.Of(w.Key))
}

// entries returns the number of entries, without the cache's own records.
func (b *Store) entries() int { return b.live() - int(b.internals) }

// generationAt returns the generation of the record at pos, if it has one.
func (b *Store) generationAt(r *ring.Ring, pos uint64, hd record.Header) (g uint64, ok bool) {
	if hd.Kind&record.Spaced == 0 || hd.Kind == record.Internal {
		return 0, false
	}
	return b.wordAt(r, pos+uint64(hd.Size)), true
}

// wordAt returns the word of 8 bytes at pos.
func (b *Store) wordAt(r *ring.Ring, pos uint64) uint64 {
	var buf [generation.Size]byte
	if k, ok := r.Read(buf[:0], pos, len(buf)); ok {
		return generation.Of(k)
	}
	return 0 // the record is damaged
}

// countKind counts spaced records of a kind, without their generations.
func (b *Store) countKind(k record.Kind, n int32) {
	b.spaced += n
	if k == record.Internal {
		b.internals += n
	}
}

// isForgotten reports whether the live record at pos is of a forgotten generation.
func (b *Store) isForgotten(r *ring.Ring, pos uint64, hd record.Header) bool {
	if !b.hasForgotten() {
		return false
	}
	g, ok := b.generationAt(r, pos, hd)
	return ok && b.Shared.Generations.IsForgotten(g)
}

// search continues the walk, for a Set that has no room.
func (b *Store) search() {
	for n := 0; n < forgetStep && b.hasForgotten() && !b.Removals.IsStep(); n += expireStep {
		b.expireSome()
	}
}

// DropForgotten drops the entries of forgotten generations at once. OnRemove is not called.
func (b *Store) DropForgotten() {
	for ; b.hasForgotten(); b.Removals = nil {
		b.expireSome()
	}
}

// HasRoomFor reports whether the bucket may hold one more record of a namespace, of n bytes.
func (b *Store) HasRoomFor(size int) bool {
	return internalShare*int(b.internals+1)*size <= max(b.size(), b.quota())
}

// mustStay reports whether the record at pos is that of a namespace in use, which stays although
// nobody reads it: without it, the namespace is empty after a restart.
func (b *Store) mustStay(r *ring.Ring, pos uint64, hd record.Header) bool {
	return hd.Kind == record.Internal && hd.ValueLen == generation.Size &&
		b.HasRoomFor(hd.Total()) &&
		!b.Shared.Generations.IsForgotten(b.wordAt(r, pos+uint64(hd.Size+hd.KeyLen)))
}
