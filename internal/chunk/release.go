package chunk

import "slices"

// How the pool gives memory back to the operating system.

// What Trim gives back under one lock.
const (
	trimBytes = 1 << 20
	trimHoles = 16 // in a file: ext4 takes a third of a millisecond for each
)

// Trim gives idle chunks and pages back to the operating system, some at a time,
// until memory is within the bound, and reports whether there is more to do. Chunks
// smaller than the system's pages stay.
func (p *Pool) Trim() (more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	step := max(1, trimBytes/p.chunkSize) // bounds the time for which the lock is held
	if p.mem.Rings != nil {
		step = min(step, trimHoles)
	}
	for ; p.heldLocked() > p.Bound(); step-- {
		if step == 0 {
			return true
		}
		if !p.releasePageLocked() && !p.releaseChunkLocked() {
			return false
		}
	}
	return false
}

// shedLocked gives an idle chunk or a block of pages back if the pool holds more than its bound. It
// reports whether it did.
func (p *Pool) shedLocked() bool {
	return p.heldLocked() > int(p.most.Load()) && (p.releaseChunkLocked() || p.releasePageLocked())
}

// canDiscard reports whether chunks can be given back one by one.
func (p *Pool) canDiscard() bool { return p.mem.Granule > 0 && p.chunkSize%p.mem.Granule == 0 }

// releaseChunkLocked gives the memory of an idle chunk back, and reports whether there was one.
func (p *Pool) releaseChunkLocked() bool {
	if p.mem.Rings != nil {
		return p.dropLocked()
	}
	return p.releaseLocked(&p.idle, &p.notResident, p.chunkSize)
}

// releasePageLocked is releaseChunkLocked for a block of idle pages.
func (p *Pool) releasePageLocked() bool {
	if p.wholeBlocks == 0 || !p.canDiscard() {
		return false
	}
	n := p.block / p.pageSize
	from, whole := len(p.idlePages)-1, n == 1
	for i := 0; !whole; i++ { // the highest first
		from, whole = p.blockOf(i)
	}
	first := []Ref{p.idlePages[from+n-1]}
	p.idlePages = slices.Delete(p.idlePages, from, from+n)
	p.wholeBlocks--
	return p.releaseLocked(&first, &p.notResidentPages, p.block)
}

// releaseLocked gives the memory of one of the idle chunks or pages, of n bytes, back.
func (p *Pool) releaseLocked(idle, notResident *[]Ref, n int) bool {
	if !p.canDiscard() {
		return false
	}
	r, ok := pop(idle)
	if ok {
		p.mem.Discard(r.Bytes(0, uint32(n)))
		p.markLocked(r, true)
		*notResident = append(*notResident, r)
	}
	return ok
}
