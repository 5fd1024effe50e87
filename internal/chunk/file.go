package chunk

import (
	"fmt"
	"slices"
)

// How the memory of rings that lie in a file stays within the bound, together with that of
// index pages, which do not.
//
// As in memory, a chunk that no ring has is idle or not resident. A chunk of a file that is not
// resident is a hole. The system is asked for its memory before it is touched, because a refusal
// would be a signal otherwise. So holes do not count as ready, and a refusal is treated like that
// of an area (grow.go).

// heldLocked returns the bytes that the pool has allocated, in use or idle.
func (p *Pool) heldLocked() int {
	return int(p.used.Load()) + len(p.idle)*p.chunkSize + p.wholeBlocks*p.block
}

// freshInFileLocked gets a new area of the file, no larger than the bound has room for, or as small
// as areas are. Its chunks become idle, and those that are too many holes.
func (p *Pool) freshInFileLocked() error {
	room := max(int(p.most.Load())-p.heldLocked(), leastArea)
	_, err := p.growLocked(&p.forRings, min(p.mapSize, room), func(n int) (*area, error) {
		m, err := p.mem.Rings.Map(n)
		if err != nil {
			return nil, fmt.Errorf("map %d bytes: %w: %w", n, ErrNoMemory, err)
		}
		for at := n; at > 0; at -= p.chunkSize { // so that the first is taken first
			p.idle = append(p.idle, RefOf(m[at-p.chunkSize:at]))
		}
		return nil, nil // not among the areas, which the pool unmaps
	})
	for len(p.idle) > 1 && p.heldLocked() > int(p.most.Load()) && p.dropLocked() {
	}
	return err
}

// dropLocked turns an idle chunk into a hole. It reports whether it did.
func (p *Pool) dropLocked() bool {
	n := len(p.idle)
	if n == 0 || p.mem.Rings.Drop == nil ||
		!p.mem.Rings.Drop(p.idle[n-1].Bytes(0, uint32(p.chunkSize))) {
		return false
	}
	p.notResident = append(p.notResident, p.idle[n-1])
	p.idle = p.idle[:n-1]
	return true
}

// fillLocked prepares a chunk without physical memory for use. For a file, it asks the system for
// that memory.
func (p *Pool) fillLocked(r Ref) error {
	if p.mem.Rings == nil {
		p.markLocked(r, false)
		return nil
	}
	s := &p.forRings
	if p.waitsLocked(s) {
		return s.refused
	}
	if err := p.mem.Rings.Fill(r.Bytes(0, uint32(p.chunkSize))); err != nil {
		s.refused = fmt.Errorf("fill %d bytes: %w: %w", p.chunkSize, ErrNoMemory, err)
		s.fails, s.waited = s.fails+1, 0
		return s.refused
	}
	s.refused, s.fails, s.waited = nil, 0, 0
	return nil
}

// refillLocked turns holes into idle chunks, about as many as growLocked would ask for, and stops
// at the bound and at a refusal.
func (p *Pool) refillLocked() {
	held, most := p.heldLocked(), int(p.most.Load())
	upTo := min(most, held+max(int(p.used.Load())/growShare, p.chunkSize))
	for ; held+p.chunkSize <= upTo && len(p.notResident) > 0; held += p.chunkSize {
		r, err := p.takeNotResidentLocked()
		if err != nil {
			return // limitLocked adapts the bound
		}
		p.idle = append(p.idle, r)
	}
}

// Adopt takes over the chunks of a file that another process has left: held is the number of those
// that rings hold, unused are those that rings no longer use, and free are those that no ring had.
// The latter have memory only if Drop is nil.
func (p *Pool) Adopt(held int, unused, free []Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used.Add(int64(held * p.chunkSize))
	p.idle = append(p.idle, unused...)
	slices.Reverse(free) // so that the first is taken first
	if p.mem.Rings.Drop != nil {
		p.notResident = append(p.notResident, free...)
	} else {
		p.idle = append(p.idle, free...)
	}
	for p.heldLocked() > int(p.most.Load()) && p.dropLocked() {
	}
}

// Validate checks that idle memory and memory in use together stay within the bound, except during
// a Resize (I17), and that no chunk or page is listed as unused twice.
func (p *Pool) Validate() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := map[Ref]bool{}
	for _, r := range slices.Concat(p.idle, p.notResident, p.idlePages, p.notResidentPages) {
		if seen[r] {
			return fmt.Errorf("I17: the chunk or page at %p is listed as unused twice", r.Pointer())
		}
		seen[r] = true
	}
	canRelease := p.canDiscard() && (p.mem.Rings == nil || p.mem.Rings.Drop != nil)
	most := int(max(p.most.Load(), p.used.Load()))
	if held := p.heldLocked(); canRelease && held > most {
		return fmt.Errorf("I17: %d bytes are allocated and %d in use, with a bound of %d",
			held, p.used.Load(), p.most.Load())
	}
	return nil
}
