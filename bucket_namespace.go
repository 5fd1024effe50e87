package ringcache

import (
	"encoding/binary"

	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
)

// What a bucket knows of namespaces: it counts what their entries hold, finds those that were
// invalidated, and evicts those of a namespace that is near its quota (quota.go).
//
// The entries of a generation that was forgotten are dead. They are found as what has
// expired is: by a walk of which each Set does a part, and by the tails. A Set that needs room
// before the walk has ended does more of it.

const forgetStep = 1024 // records that a Set without room looks at

// entriesLocked returns the number of entries: records of the cache's own are none.
func (b *bucket) entriesLocked() int { return b.liveLocked() - b.internal }

// hasForgotten reports whether there may be entries of a forgotten generation.
func (b *bucket) hasForgotten() bool { return b.searched != b.shared.generations.Buried() }

// generationAt returns the first bytes of the key of the record at pos, if there are
// namespaces and the key is long enough for one.
func (b *bucket) generationAt(r *ring.Ring, pos uint64, hd record.Header) (g uint64, ok bool) {
	if hd.KeyLen < generation.Size || !b.shared.generations.InUse() {
		return 0, false
	}
	var buf [generation.Size]byte
	k, _ := r.Read(buf[:0], pos+uint64(hd.Size), len(buf))
	return binary.LittleEndian.Uint64(k), true
}

// usageOf returns the usage of the namespace that a key belongs to, or whether that
// was forgotten.
func (s *shared) usageOf(k []byte) (u *generation.Usage, forgotten bool) {
	if len(k) < generation.Size || !s.generations.InUse() {
		return nil, false
	}
	return s.generations.Of(binary.LittleEndian.Uint64(k))
}

// recoveredKey notes a key that was found in a file if it tells of namespaces.
func (s *shared) recoveredKey(k []byte, kind record.Kind) {
	switch {
	case kind == record.Internal:
		s.recovered.mu.Lock()
		s.recovered.spaces = append(s.recovered.spaces, string(k))
		s.recovered.mu.Unlock()
	case len(k) >= generation.Size && s.generations.IsOurs(binary.LittleEndian.Uint64(k)):
		s.generations.Found()
	}
}

// countKeyLocked counts entries and bytes of the namespace of a key.
func (b *bucket) countKeyLocked(k []byte, entries, bytes int) {
	if u, _ := b.shared.usageOf(k); u != nil {
		u.Add(int(b.number), entries, bytes)
	}
}

// countInLocked is countKeyLocked of a generation; of one that was forgotten, nobody counts.
func (b *bucket) countInLocked(g uint64, entries, bytes int) {
	if u, _ := b.shared.generations.Of(g); u != nil {
		u.Add(int(b.number), entries, bytes)
	}
}

// isForgottenLocked reports whether the live record at pos is of a forgotten generation.
func (b *bucket) isForgottenLocked(r *ring.Ring, pos uint64, hd record.Header) bool {
	if !b.hasForgotten() {
		return false
	}
	g, ok := b.generationAt(r, pos, hd)
	if !ok {
		return false
	}
	_, forgotten := b.shared.generations.Of(g)
	return forgotten
}

// forgetAtLocked drops the live record at pos of a ring: no ghost is left.
func (b *bucket) forgetAtLocked(in policy.Ring, pos uint64, hd record.Header) {
	r := b.ring(in)
	h := b.keyHash(r, pos, hd)
	if p, ok := b.index.Find(h, in, pos); ok {
		b.index.Remove(p)
	} else {
		b.corruptions.Add(1)
	}
	b.killLocked(r, pos, hd, h, RemovedDeleted)
}

// searchLocked goes on with the walk, for a Set that has no room.
func (b *bucket) searchLocked() {
	for n := 0; n < forgetStep && b.hasForgotten() && !b.removals.isStep(); n += expireStep {
		b.expireSomeLocked()
	}
}

// fitsQuotaLocked reports whether the namespace of a new record may have it.
func (b *bucket) fitsQuotaLocked(w *write) bool {
	u, _ := b.shared.usageOf(w.k)
	return u == nil || w.same || !u.Over(w.n)
}

// orderLocked enters a new record into the order of its namespace, if that has a quota.
func (b *bucket) orderLocked(w *write) {
	if u, _ := b.shared.usageOf(w.k); u != nil && u.Quota.Load() > 0 {
		u.Order.Push(w.h)
	}
}

// isOverQuotaLocked reports whether the write's value, in place of that of f, would bring the
// namespace above its quota.
func (b *bucket) isOverQuotaLocked(f *found, w *write) bool {
	u, _ := b.shared.usageOf(w.k)
	return u != nil && len(w.v) > f.ValueLen && u.Over(len(w.v)-f.ValueLen)
}

// lookLocked looks at the entry of generation g whose key has hash h, evicts it if asked to
// unless it was read, and reports whether it was there, and whether it stays.
func (b *bucket) lookLocked(h, g uint64, evict bool) (there, stays bool) {
	var r *ring.Ring
	var hd record.Header
	p, ok := b.index.FindFunc(h, func(slot uint64) bool {
		if r = b.ring(index.Ring(slot)); !r.Live(slot) {
			return false
		}
		var ok bool
		if hd, ok = r.Header(index.Pos(slot)); !ok || hd.Dead {
			return false
		}
		of, ok := b.generationAt(r, index.Pos(slot), hd)
		return ok && of == g && b.keyHash(r, index.Pos(slot), hd) == h
	})
	if !ok || !evict {
		return ok, ok
	}
	in, pos := index.Ring(p.Slot), index.Pos(p.Slot)
	switch {
	case b.shared.Expired(hd.Expiry):
		b.index.Remove(p)
		b.killExpiredLocked(r, pos, hd, h)
		return true, false
	case !in.IsCold() && index.Freq(p.Slot) > 0:
		b.index.Store(p, index.Lower(p.Slot))
		return true, true
	}
	b.index.Remove(p)
	b.killLocked(r, pos, hd, h, RemovedEvicted)
	b.countEvicted(in, hd)
	return true, false
}

// order enters the entries of generation g into the order of evictions.
func (b *bucket) order(u *generation.Usage, g uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := b.walkLocked(); ; {
		pos, ok := b.nextLocked(&w)
		if !ok {
			return
		}
		r := b.ring(w.ring)
		hd, ok := r.Header(pos)
		if !ok {
			return // the tail will see to it
		}
		if of, ok := b.generationAt(r, pos, hd); ok && of == g && !hd.Dead {
			u.Order.Push(b.keyHash(r, pos, hd))
		}
		w.pos = (pos + uint64(hd.Total())) & r.Mask
	}
}

// countNamespaces counts the entries of namespaces that are not counted yet, and drops those of
// forgotten ones.
func (b *bucket) countNamespaces() {
	b.lock()
	defer b.unlock()
	defer func() { b.removals = nil }() // OnRemove is not told of a file's entries
	type sum struct{ entries, bytes int }
	sums := map[*generation.Usage]sum{} // of those that there are now
	b.shared.generations.Each(func(u *generation.Usage) { sums[u] = sum{} })
	for w := b.walkLocked(); ; {
		pos, ok := b.nextLocked(&w)
		if !ok {
			break
		}
		r := b.ring(w.ring)
		hd, ok := r.Header(pos)
		if !ok {
			b.corruptions.Add(1)
			break
		}
		if g, ok := b.generationAt(r, pos, hd); ok && !hd.Dead {
			u, forgotten := b.shared.generations.Of(g)
			if forgotten {
				if b.shared.generations.Buried() == 0 { // else the walk finds them, and tells of them
					b.forgetAtLocked(w.ring, pos, hd)
				}
			} else if s, there := sums[u]; there {
				sums[u] = sum{s.entries + 1, s.bytes + hd.Total()}
			}
		}
		w.pos = (pos + uint64(hd.Total())) & r.Mask
	}
	for u, s := range sums {
		u.Counting(int(b.number), s.entries, s.bytes)
	}
}
