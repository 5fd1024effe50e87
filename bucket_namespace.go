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
// invalidated, and keeps a namespace within its quota.
//
// The entries of a generation that was forgotten are dead. They are found as what has
// expired is: by a walk of which each Set does a part, and by the tails. A Set that needs room
// before the walk has ended does more of it.

const (
	forgetStep = 1024 // records that a Set without room looks at
	quotaStep  = 1024 // records that a Set of a namespace above its quota looks at

	// From a quota less 1/quotaSlack on, a namespace gives up entries: not each bucket has some
	// to give when a new one comes.
	quotaSlack = 16
)

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
func (s *shared) recoveredKey(k []byte) {
	switch {
	case isReserved(k):
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
	b.killLocked(r, pos, hd, h, EvictDeleted)
}

// searchLocked goes on with the walk, for a Set that has no room.
func (b *bucket) searchLocked() {
	for n := 0; n < forgetStep && b.hasForgotten() && !b.evictions.isStep(); n += expireStep {
		b.expireSomeLocked()
	}
}

// isOverQuotaLocked reports whether the write's value, in place of that of f, would bring the
// namespace above its quota.
func (b *bucket) isOverQuotaLocked(f *found, w *write) bool {
	u, _ := b.shared.usageOf(w.k)
	return u != nil && len(w.v) > f.ValueLen && u.Over(len(w.v)-f.ValueLen)
}

// keepQuotaLocked has the namespace of a new record give up entries of its own if that brings
// it near its quota. It reports false if it is still too much: then the record has no room.
func (b *bucket) keepQuotaLocked(w *write) bool {
	u, _ := b.shared.usageOf(w.k)
	if u == nil || w.same {
		return true
	}
	quota := u.Quota.Load()
	if quota == 0 || int64(w.n) > quota {
		return quota == 0
	}
	// More than it needs itself: other buckets may have nothing to give.
	b.giveOfLocked(u, binary.LittleEndian.Uint64(w.k), w.n, 8*w.n+shrinkStep)
	return !u.Over(w.n)
}

// giveOfLocked evicts entries of generation g until n bytes more are well within its quota, or
// most bytes have gone, and reports whether there may be more to do. It goes round the rings like
// the hand of a clock, from where it stopped last; an entry that was read is passed once for
// each read.
func (b *bucket) giveOfLocked(u *generation.Usage, g uint64, n, most int) (gave bool) {
	quota := u.Quota.Load()
	looked := 0
	for ; looked < quotaStep && most > 0; looked++ {
		if u.Bytes.Load()+int64(n) <= quota-quota/quotaSlack || b.evictions.isStep() && !u.Over(n) {
			break
		}
		pos, ok := b.nextLocked(&b.hand)
		if !ok {
			if b.hand = b.walkLocked(); b.size() == 0 {
				break
			}
			continue
		}
		r := b.ring(b.hand.ring)
		hd, ok := r.Header(pos)
		if !ok {
			b.hand = b.walkLocked()
			break // the tail will see to it
		}
		b.hand.pos = (pos + uint64(hd.Total())) & r.Mask
		if of, ok := b.generationAt(r, pos, hd); hd.Dead || !ok || of != g {
			continue
		}
		if b.giveUpLocked(b.hand.ring, pos, hd) {
			gave = true
			most -= hd.Total()
		}
	}
	return gave || looked == quotaStep
}

// giveUpLocked evicts the live record at pos of a ring, unless it was read since.
func (b *bucket) giveUpLocked(in policy.Ring, pos uint64, hd record.Header) bool {
	r := b.ring(in)
	h := b.keyHash(r, pos, hd)
	p, ok := b.index.Find(h, in, pos)
	switch {
	case !ok:
		b.corruptions.Add(1)
		return false
	case b.shared.Expired(hd.Expiry):
		b.index.Remove(p)
		b.killExpiredLocked(r, pos, hd, h)
		return true
	case !in.IsCold() && index.Freq(p.Slot) > 0:
		b.index.Store(p, index.Lower(p.Slot))
		return false
	}
	b.index.Remove(p)
	b.killLocked(r, pos, hd, h, EvictCapacity)
	b.countEvicted(in, hd)
	return true
}

// countNamespaces counts the entries of namespaces that are not counted yet, and drops those of
// forgotten ones.
func (b *bucket) countNamespaces() {
	b.lock()
	defer b.unlock()
	defer func() { b.evictions = nil }() // of what a file had, nobody is told
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
				b.forgetAtLocked(w.ring, pos, hd)
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
