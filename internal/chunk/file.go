package chunk

import (
	"fmt"
	"slices"
)

// How the memory of rings that lie in a file stays within the bound, together with that of
// index pages, which do not.
//
// A chunk that no ring has is idle or not resident, as in memory. But in the file the latter is a
// hole. Memory for a hole is asked for before it is touched, and may be refused: it would be a
// signal otherwise. So a hole does not count as ready, and a refusal is that of an area
// (grow.go). Chunks of a new area for which the bound has no room begin as holes.

// heldLocked returns the bytes that the pool has allocated, in use or idle. In a file, they
// include the unused rest of the newest area.
func (p *Pool) heldLocked() int {
	n := int(p.used.Load()) + len(p.idle)*p.chunkSize + len(p.idlePages)*p.pageSize
	if p.mem.Rings != nil {
		n += p.freshBytes()
	}
	return n
}

// fileAreaLocked gets an area of n bytes of the file, or the part of it for which the bound has
// room, and at least a chunk. The rest are holes.
func (p *Pool) fileAreaLocked(n int) (*area, error) {
	ready := n
	if p.mem.Rings.Drop != nil {
		room := int(p.most.Load()) - p.heldLocked()
		ready = min(n, max(room/p.chunkSize, 1)*p.chunkSize)
	}
	m, err := p.mem.Rings.Map(n, ready)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", n, err)
	}
	for at := n - p.chunkSize; at >= ready; at -= p.chunkSize {
		p.notResident = append(p.notResident, RefOf(m[at:][:p.chunkSize]))
	}
	return &area{mem: m[:ready]}, nil // not among the areas, which the pool unmaps
}

// dropLocked makes a hole of an idle chunk, or of the last one of the newest area.
func (p *Pool) dropLocked() bool {
	if p.mem.Rings.Drop == nil {
		return false
	}
	if n := len(p.idle); n > 0 {
		r := p.idle[n-1]
		if !p.mem.Rings.Drop(r.Bytes(0, uint32(p.chunkSize))) {
			return false
		}
		p.idle, p.notResident = p.idle[:n-1], append(p.notResident, r)
		return true
	}
	if p.freshBytes() == 0 {
		return false
	}
	rest := len(p.fresh.mem) - p.chunkSize
	last := p.fresh.mem[rest:]
	if !p.mem.Rings.Drop(last) {
		return false
	}
	p.fresh.mem, p.notResident = p.fresh.mem[:rest], append(p.notResident, RefOf(last))
	return true
}

// fillLocked prepares a chunk without physical memory for use. Only a file asks the system for it
// now.
func (p *Pool) fillLocked(r Ref) error {
	if p.mem.Rings == nil {
		p.markLocked(r, false)
		return nil
	}
	s := &p.forRings
	if s.waits(int(p.used.Load())) {
		return s.refused
	}
	if err := p.mem.Rings.Fill(r.Bytes(0, uint32(p.chunkSize))); err != nil {
		s.refused = fmt.Errorf("fill %d bytes: %w", p.chunkSize, err)
		s.fails, s.waited = s.fails+1, 0
		return s.refused
	}
	s.refused, s.fails, s.waited = nil, 0, 0
	return nil
}

// refillLocked makes holes idle chunks, as many as growLocked would ask for, and stops at the
// bound and at a refusal.
func (p *Pool) refillLocked() {
	held, most := p.heldLocked(), int(p.most.Load())
	upTo := min(most, held+max(int(p.used.Load())/growShare, p.chunkSize))
	for ; held+p.chunkSize <= upTo && len(p.notResident) > 0; held += p.chunkSize {
		r, err := p.takeNotResidentLocked()
		if err != nil {
			return // the bound says what came of it
		}
		p.idle = append(p.idle, r)
	}
}

// Adopt takes over the chunks of a file that another process has left: as many as rings hold,
// those that no ring has any more, and those that none had, which have memory only where Drop
// is nil.
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

// Validate checks that memory which nobody uses is within the bound, as it is unless a Resize
// is under way (I17), and that no chunk or page is among the unused twice.
func (p *Pool) Validate() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := map[Ref]bool{}
	for _, r := range slices.Concat(p.idle, p.notResident, p.idlePages, p.notResidentPages) {
		if seen[r] {
			return fmt.Errorf("I17: what lies at %p is unused twice", r.Pointer())
		}
		seen[r] = true
	}
	canRelease := p.canDiscard() && (p.mem.Rings == nil || p.mem.Rings.Drop != nil)
	most := int(max(p.most.Load(), p.used.Load()))
	if held := p.heldLocked(); canRelease && held > most {
		return fmt.Errorf("I17: %d bytes have memory, %d are in use, the bound is %d",
			held, p.used.Load(), p.most.Load())
	}
	return nil
}
