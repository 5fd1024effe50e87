package chunk

// Pages have areas of their own in a cache that is not small, and in one whose chunks are in a
// file. In other caches, and if such an area is refused, a chunk is split into pages, for good.
//
// Every lookup reads a cache line at a random place of an index. Indexes take about an eighth of a
// cache, so large pages are worth having for them from the start, and areas of their own make that
// possible.
const pageAreasFrom = 128 << 20 // bound from which a partly used large page does not matter

// pageSizeFor returns the bytes of a page: an eighth of a chunk, but not less than Granule, so that
// each page can be discarded alone.
func (p *Pool) pageSizeFor() int {
	n := min(p.chunkSize, max(p.chunkSize/8, 1<<10))
	if p.canDiscard() {
		n = max(n, p.mem.Granule)
	}
	return n
}

// Pages hands out n pages of any content, or none.
func (p *Pool) Pages(n int) ([]Ref, error) {
	pages := make([]Ref, 0, n)
	p.mu.Lock()
	defer p.mu.Unlock()
	for range n {
		r, err := p.pageLocked()
		if err != nil {
			p.idlePages = append(p.idlePages, pages...)
			p.forPages.waited += n * p.pageSize
			if p.mem.Rings == nil {
				p.limitLocked() // a file may still grant chunks
			}
			return nil, err
		}
		pages = append(pages, r)
	}
	p.used.Add(int64(n * p.pageSize))
	for p.heldLocked() > int(p.most.Load()) && (p.releaseChunkLocked() || p.releasePageLocked()) {
	}
	return pages, nil
}

// pageLocked takes an idle page, else one without memory, else a new one.
func (p *Pool) pageLocked() (Ref, error) {
	if r, ok := pop(&p.idlePages); ok {
		return r, nil
	}
	if r, ok := pop(&p.notResidentPages); ok {
		p.markLocked(r, false)
		return r, nil
	}
	apart := p.mem.Rings != nil // a chunk in the file must not hold pages
	if !apart && p.most.Load() < pageAreasFrom {
		return p.splitChunkLocked()
	}
	if p.pageArea.taken == len(p.pageArea.mem) {
		a, err := p.growLocked(&p.forPages, p.pageAreaSize(), func(n int) (*area, error) {
			return p.mapLocked(n, true)
		})
		if err != nil && !apart {
			return p.splitChunkLocked() // some may be left
		}
		if err != nil {
			return Ref{}, err
		}
		p.pageArea = a
	}
	return p.pageArea.take(p.pageSize), nil
}

// splitChunkLocked splits a chunk into pages, and returns the first of them.
func (p *Pool) splitChunkLocked() (Ref, error) {
	c, ok := pop(&p.idle)
	if !ok {
		var err error
		if c, err = p.takeNotResidentLocked(); err != nil {
			return Ref{}, err
		}
	}
	for at := p.chunkSize - p.pageSize; at > 0; at -= p.pageSize {
		p.idlePages = append(p.idlePages, RefOf(c.Bytes(uint32(at), uint32(at+p.pageSize))))
	}
	return c, nil
}

// PutPages takes pages back. They do not become chunks again.
func (p *Pool) PutPages(rs []Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idlePages = append(p.idlePages, rs...)
	p.used.Add(-int64(len(rs) * p.pageSize))
}

// pageAreaSize returns the most bytes of an area for pages.
func (p *Pool) pageAreaSize() int { return max(p.mapSize/8/p.chunkSize, 1) * p.chunkSize }

// releasePageLocked gives the memory of an idle page back, and reports whether there was one.
func (p *Pool) releasePageLocked() bool {
	if !p.canDiscard() {
		return false
	}
	r, ok := pop(&p.idlePages)
	if ok {
		p.releaseLocked(r, p.pageSize)
		p.notResidentPages = append(p.notResidentPages, r)
	}
	return ok
}
