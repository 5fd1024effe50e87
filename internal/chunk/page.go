package chunk

import "math/bits"

// Pages are cut from chunks. A chunk that is cut stays so.
//
// Every lookup reads one line of an index, anywhere in it. Indexes are an eighth of
// a cache or so, and worth having on large pages from the start: in a cache that is
// not small, chunks to be cut come from separate areas.
const pageAreasFrom = 256 << 20 // bound from which a large page that is partly used does not matter

// cut is a chunk that is cut into pages; owner leads from a page to it.
type cut struct {
	chunk Ref
	free  uint64 // a bit for each page that is not in use
	inUse int32  // pages
	cold  bool   // has no physical memory
}

// Pages hands out n pages of any content, or none.
func (p *Pool) Pages(n int) ([]Ref, error) {
	pages := make([]Ref, 0, n)
	p.mu.Lock()
	defer p.mu.Unlock()
	for range n {
		r, err := p.pageLocked()
		if err != nil {
			p.putPagesLocked(pages)
			p.forPages.waited += n * p.pageSize
			if p.mem.Rings == nil {
				p.limitLocked() // else rings may be had all the same
			}
			return nil, err
		}
		pages = append(pages, r)
	}
	return pages, nil
}

// pageLocked hands out one page.
func (p *Pool) pageLocked() (Ref, error) {
	k, err := p.roomyCutLocked()
	if err != nil {
		return Ref{}, err
	}
	c := &p.cuts[k]
	p.free.Add(-int64(p.pageSize))
	if c.inUse == 0 {
		p.used.Add(int64(p.chunkSize))
		p.free.Add(int64(p.chunkSize))
		if c.cold {
			p.markLocked(c.chunk, false)
		} else {
			p.warm--
		}
		c.cold = false
		if p.heldLocked() > int(p.most.Load()) { // in exchange for an idle chunk: see chunkLocked
			p.coolChunkLocked()
		}
	}
	i := bits.TrailingZeros64(c.free)
	c.free &^= 1 << i
	c.inUse++
	at := uint32(i * p.pageSize)
	r := RefOf(c.chunk.Bytes(at, at+uint32(p.pageSize)))
	p.owner[r] = k
	return r, nil
}

// roomyCutLocked returns a cut with a free page: the last one, or the one with the
// fewest, so that others become idle; else an idle one; else a new one.
func (p *Pool) roomyCutLocked() (int32, error) {
	if n := int(p.last); n < len(p.cuts) && p.cuts[n].isRoomy() {
		return p.last, nil
	}
	if p.free.Load() > 0 { // only after a cache was made smaller
		most := int32(0)
		for k := range p.cuts {
			if c := &p.cuts[k]; c.isRoomy() && c.inUse > most {
				p.last, most = int32(k), c.inUse
			}
		}
	} else if n := len(p.idleCuts); n > 0 {
		p.last, p.idleCuts = p.idleCuts[n-1], p.idleCuts[:n-1]
	} else {
		c, err := p.cuttableLocked()
		if err != nil {
			return 0, err
		}
		p.last = int32(len(p.cuts))
		p.cuts = append(p.cuts, cut{chunk: c, free: 1<<(p.chunkSize/p.pageSize) - 1})
		p.warm++
	}
	return p.last, nil
}

// isRoomy reports whether some pages of a cut are in use, but not all.
func (c *cut) isRoomy() bool { return c.inUse > 0 && c.free != 0 }

// PutPages takes pages back.
func (p *Pool) PutPages(rs []Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.putPagesLocked(rs)
}

func (p *Pool) putPagesLocked(rs []Ref) {
	for _, r := range rs {
		k := p.owner[r]
		delete(p.owner, r)
		c := &p.cuts[k]
		c.free |= 1 << (int(uintptr(r.Pointer())-uintptr(c.chunk.Pointer())) / p.pageSize)
		p.free.Add(int64(p.pageSize))
		if c.inUse--; c.inUse == 0 {
			p.idleCuts = append(p.idleCuts, k)
			p.used.Add(-int64(p.chunkSize))
			p.free.Add(-int64(p.chunkSize))
			p.warm++
		}
	}
}

// cuttableLocked takes a chunk that is to be cut.
func (p *Pool) cuttableLocked() (Ref, error) {
	apart := p.mem.Rings != nil // a chunk of a ring is none of an index
	if !apart {
		if r, ok := pop(&p.idle); ok {
			return r, nil
		}
		if p.most.Load() < pageAreasFrom {
			return p.coldChunkLocked()
		}
	}
	if p.forCuts.taken == len(p.forCuts.mem) {
		a, err := p.growLocked(&p.forPages, p.pageAreaSize(), func(n int) (*area, error) {
			return p.mapLocked(n, true)
		})
		if err != nil && !apart {
			return p.coldChunkLocked() // there may be some
		}
		if err != nil {
			return Ref{}, err
		}
		p.forCuts = a
	}
	return p.forCuts.take(p.chunkSize), nil
}

// pageAreaSize returns the most bytes of an area for pages.
func (p *Pool) pageAreaSize() int { return max(p.mapSize/8/p.chunkSize, 1) * p.chunkSize }

// coolCutLocked gives the memory of a cut back of which no page is in use, and
// reports whether there was one.
func (p *Pool) coolCutLocked() bool {
	if p.warm == 0 || !p.canDiscard() {
		return false
	}
	for _, k := range p.idleCuts {
		if c := &p.cuts[k]; !c.cold {
			p.coolLocked(c.chunk)
			c.cold = true
			p.warm--
			return true
		}
	}
	return false
}
