package ringcache

import "github.com/ringcache/ringcache/internal/policy"

// How a bucket finds the records that are expired, and gets their space back.

// takes reports whether the record can have that expiry where it lies.
func (h header) takes(expiry uint32) bool { return h.timed || expiry == 0 }

// lookup is find for what is not expired.
func (b *bucket) lookup(f *found, k []byte, h uint64) bool {
	return b.find(f, k, h) && !b.shared.expired(f.header)
}

// renewLocked gives a record that takes it another expiry.
func (b *bucket) renewLocked(f *found, expiry uint32) {
	if f.timed {
		f.ring.setExpiry(f.pos, f.header, expiry)
	}
}

// expireLocked drops the expired record f of hash h, and its slot: what has
// outlived its time leaves no ghost.
func (b *bucket) expireLocked(f *found, h uint64) {
	b.killLocked(f.ring, f.pos, f.header)
	b.index.remove(h, f.place)
	b.countExpired(f.header)
}

// expireTailLocked is expireLocked for the record at the tail of a ring.
func (b *bucket) expireTailLocked(ring policy.Ring, h header) {
	r := &b.rings[ring]
	hash := b.keyHash(r, r.tail, h)
	if p, ok := b.index.at(hash, ring, r.tail); ok {
		b.index.remove(hash, p)
	}
	b.uncountLocked(r, h, hash)
	r.release(uint64(h.total()))
	b.countExpired(h)
}

func (b *bucket) countExpired(h header) {
	b.expired++
	b.expiredBytes += uint64(h.total())
}
