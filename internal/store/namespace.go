package store

import (
	"encoding/binary"

	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
)

// What a bucket knows of namespaces: it counts what their entries hold, and finds those that were
// invalidated.
//
// The entries of a generation that was forgotten count as dead. They are found like expired ones:
// by a walk of which each Set does a part, and at the tails. A Set that needs room before the walk
// has ended does a larger part.

// Namespaces are the namespaces that have entries in a bucket.
type Namespaces struct{ of *Store }

// Namespaces returns those of the bucket.
func (b *Store) Namespaces() Namespaces { return Namespaces{b} }

const forgetStep = 1024 // records that a Set without room examines

// entries returns the number of entries, without the cache's own records.
func (b *Store) entries() int { return b.live() - int(b.internals) }

// hasForgotten reports whether there may be entries of a forgotten generation.
func (b *Store) hasForgotten() bool { return b.searched != b.Shared.Generations.Buried() }

// generationAt returns the first bytes of the key of the record at pos, which may be a generation,
// if there are namespaces and the key is long enough.
func (b *Store) generationAt(r *ring.Ring, pos uint64, hd record.Header) (g uint64, ok bool) {
	if hd.KeyLen < generation.Size || !b.Shared.Generations.InUse() {
		return 0, false
	}
	var buf [generation.Size]byte
	k, _ := r.Read(buf[:0], pos+uint64(hd.Size), len(buf))
	return binary.LittleEndian.Uint64(k), true
}

// UsageOf returns the usage of the namespace that a key belongs to, or nil, and whether the key's
// generation was forgotten.
func (s *Shared) UsageOf(k []byte) (u *generation.Usage, forgotten bool) {
	if len(k) < generation.Size || !s.Generations.InUse() {
		return nil, false
	}
	return s.Generations.Of(binary.LittleEndian.Uint64(k))
}

// recoveredKey notes a key that was found in a file if it is a namespace's record or belongs to a
// namespace.
func (s *Shared) recoveredKey(k []byte, kind record.Kind) {
	switch {
	case kind == record.Internal:
		s.Recovered.mu.Lock()
		s.Recovered.Spaces = append(s.Recovered.Spaces, string(k))
		s.Recovered.mu.Unlock()
	case len(k) >= generation.Size && s.Generations.IsOurs(binary.LittleEndian.Uint64(k)):
		s.Generations.Found()
	}
}

// countKey counts entries and bytes of the namespace of a key.
func (b *Store) countKey(k []byte, entries, bytes int) {
	if u, _ := b.Shared.UsageOf(k); u != nil {
		u.Add(int(b.Number), entries, bytes)
	}
}

// countIn is countKey for a generation. It does nothing if that was forgotten.
func (b *Store) countIn(g uint64, entries, bytes int) {
	if u, _ := b.Shared.Generations.Of(g); u != nil {
		u.Add(int(b.Number), entries, bytes)
	}
}

// isForgotten reports whether the live record at pos is of a forgotten generation.
func (b *Store) isForgotten(r *ring.Ring, pos uint64, hd record.Header) bool {
	if !b.hasForgotten() {
		return false
	}
	g, ok := b.generationAt(r, pos, hd)
	if !ok {
		return false
	}
	_, forgotten := b.Shared.Generations.Of(g)
	return forgotten
}

// Forgot reports whether the live record at pos belongs to a generation that was forgotten, so that
// no lookup finds it.
func (n Namespaces) Forgot(r *ring.Ring, pos uint64, hd record.Header) bool {
	return n.of.isForgotten(r, pos, hd)
}

// forgetAt drops the live record at pos of a ring: no ghost is left.
func (b *Store) forgetAt(in policy.Ring, pos uint64, hd record.Header) {
	r := b.Ring(in)
	h := b.keyHash(r, pos, hd)
	if p, ok := b.Index.Find(h, in, pos); ok {
		b.Index.Remove(p)
	} else {
		b.Corruptions.Add(1)
	}
	b.kill(r, pos, hd, h, Deleted)
}

// search continues the walk, for a Set that has no room.
func (b *Store) search() {
	for n := 0; n < forgetStep && b.hasForgotten() && !b.Removals.IsStep(); n += expireStep {
		b.expireSome()
	}
}

// Count counts the entries of namespaces that are not counted yet, and drops those of
// forgotten ones.
func (n Namespaces) Count() {
	b := n.of
	type sum struct{ entries, bytes int }
	sums := map[*generation.Usage]sum{} // of the generations in use now
	b.Shared.Generations.Each(func(u *generation.Usage) { sums[u] = sum{} })
	for w := b.newWalk(); ; {
		pos, ok := b.nextRecord(&w)
		if !ok {
			break
		}
		r := b.Ring(w.ring)
		hd, ok := r.Header(pos)
		if !ok {
			b.Corruptions.Add(1)
			break
		}
		if g, ok := b.generationAt(r, pos, hd); ok && !hd.Dead {
			u, forgotten := b.Shared.Generations.Of(g)
			if forgotten {
				if b.Shared.Generations.Buried() == 0 { // else the walk drops them, in steps
					b.forgetAt(w.ring, pos, hd)
				}
			} else if s, there := sums[u]; there {
				sums[u] = sum{s.entries + 1, s.bytes + hd.Total()}
			}
		}
		w.pos = (pos + uint64(hd.Total())) & r.Mask
	}
	for u, s := range sums {
		u.Counting(int(b.Number), s.entries, s.bytes)
	}
}
