package ringcache

import "slices"

// How entries leave a bucket but by eviction: they are marked dead, and their
// bytes wait for the tail.

// killLocked marks a live record dead and takes it out of the counts.
func (b *bucket) killLocked(r *ring, pos uint64, h header, why Reason) {
	b.partLocked(r, pos, h, why)
	r.kill(pos)
	if h.timed {
		r.spent += h.total()
	}
	b.uncountLocked(r, h, b.strayHash(r, pos, h))
}

// uncountLocked takes a live record out of the counts. hash is its strayHash.
func (b *bucket) uncountLocked(r *ring, h header, hash uint64) {
	r.count(-1, h.total(), h.timed)
	if b.large {
		b.shared.strays(hash).Add(-1)
	}
}

// loseLocked evicts the entry of a slot that the index had no place for.
func (b *bucket) loseLocked(victim uint64) {
	r := &b.rings[slotRing(victim)]
	if !r.alive(victim) {
		return
	}
	pos := victim & slotPosMask
	switch h, ok := r.header(pos); {
	case !ok:
	case b.shared.expired(h):
		b.killExpiredLocked(r, pos, h)
	default:
		b.killLocked(r, pos, h, EvictCapacity)
		b.evictedCrowd++
		b.evictedBytes += uint64(h.total())
	}
}

// delLocked removes the key and reports whether it was there. What is expired
// was not, nor is a mark an entry.
func (b *bucket) delLocked(w *write) bool {
	var f found
	if !b.find(&f, w.k, w.h) {
		return false
	}
	if b.shared.expired(f.header) {
		b.expireLocked(&f, w.h)
		return false
	}
	b.killLocked(f.ring, f.pos, f.header, w.why())
	b.index.remove(w.h, f.place)
	return !f.absent
}

// failLocked is what is left to do for a write that failed: a value that was
// only to be written again is lost now.
func (b *bucket) failLocked(w *write, err error) error {
	if w.same && b.shared.onEvict != nil {
		b.keepLocked(slices.Concat(w.k, w.v), len(w.k), EvictCapacity)
	}
	return err
}
