package store

import (
	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
)

// What a bucket knows of namespaces. The key of an entry of a namespace begins with a generation,
// and its record says so: it is spaced.
//
// The entries of a generation that was forgotten count as dead. They are found like expired ones:
// by a walk of which each Set does a part, and at the tails. A Set that needs room before the walk
// has ended does a larger part.

const forgetStep = 1024 // records that a Set without room examines

// IsForgotten reports whether the key of a write is of a generation that was forgotten. A Set must
// call it first, under the same lock: it notes whose entry count counts.
func (b *Store) IsForgotten(w *Write) bool {
	if w.Kind&record.Spaced == 0 {
		return false
	}
	b.usage = b.Shared.Generations.Of(generation.Of(w.Key))
	return b.usage.IsForgotten()
}

// generationAt returns the generation of the record at pos, if it has one.
func (b *Store) generationAt(r *ring.Ring, pos uint64, hd record.Header) (g uint64, ok bool) {
	if hd.Kind&record.Spaced == 0 {
		return 0, false
	}
	var buf [generation.Size]byte
	if k, ok := r.Read(buf[:0], pos+uint64(hd.Size), len(buf)); ok {
		return generation.Of(k), true
	}
	return 0, true // the record is damaged
}

// isForgotten reports whether the live record at pos is of a forgotten generation.
func (b *Store) isForgotten(r *ring.Ring, pos uint64, hd record.Header) bool {
	if !b.hasForgotten() {
		return false
	}
	g, ok := b.generationAt(r, pos, hd)
	return ok && b.Shared.Generations.Of(g).IsForgotten()
}

// search continues the walk for a Set that has no room, and reports whether it has found a record.
// For expired ones alone, it does so only in other buckets than the Set's: each Set has walked on
// there, and more would take ttl-set of bench 10 % longer.
func (b *Store) search(elsewhere bool) (found bool) {
	for n := 0; n < forgetStep && (b.hasForgotten() || elsewhere && b.mayBeGone()) &&
		!b.Removals.IsStep(); n += expireStep {
		live := b.live()
		b.expireSome()
		found = found || b.live() < live
	}
	return found
}
