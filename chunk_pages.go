package ringcache

import "slices"

// Pages are cut from chunks; a chunk is whole again when all its pages are idle.
//
// Every lookup reads one line of an index, anywhere in it, and so needs one
// more address translated. Indexes are a small part of a cache, an eighth or so,
// and worth having in large pages of the processor: in a cache that is not small
// the chunks to be cut come from blocks, of which each is one such page.
const (
	blockSize  = 2 << 20
	blocksFrom = 256 << 20 // bytes of a cache from which the last block, which is not all used, does not matter
)

// pageSizeFor returns the size of an index page beside chunks of that size:
// an eighth of it, but not so small that page tables grow large.
func pageSizeFor(chunkSize int) int {
	return min(chunkSize, max(chunkSize/8, 1<<10))
}

// cut is a chunk that is cut into pages; owner leads from a page to it.
type cut struct {
	chunk chunkRef
	inUse int32 // pages
}

// cuttableLocked takes a chunk that is to be cut: from a block, but for those that
// others have given back.
func (p *chunkPool) cuttableLocked() (chunkRef, error) {
	if len(p.block) < p.chunkSize && len(p.chunks) == 0 && p.bound.Load() >= blocksFrom {
		if err := p.openBlockLocked(); err != nil {
			return chunkRef{}, err
		}
	}
	if len(p.block) < p.chunkSize {
		return p.chunkLocked()
	}
	return cutOff(&p.block, p.chunkSize), nil
}

// openBlockLocked gets a new block from the newest map, or from a new one if
// that has none left.
func (p *chunkPool) openBlockLocked() error {
	if len(p.fresh) < p.beforeBlockLocked()+blockSize {
		p.shelveLocked(len(p.fresh))
		if err := p.mapLocked(); err != nil {
			return err
		}
	}
	p.shelveLocked(p.beforeBlockLocked())
	p.block, p.fresh = p.fresh[:blockSize:blockSize], p.fresh[blockSize:]
	useHugePages(p.block)
	return nil
}

// beforeBlockLocked returns how many fresh bytes there are before the next
// address at which a large page can begin.
func (p *chunkPool) beforeBlockLocked() int {
	first := refOf(p.fresh)
	return int(-uintptr(first.pointer()) & (blockSize - 1))
}

// shelveLocked takes n fresh bytes away, for chunks; what is less than a chunk
// is lost, and has no memory.
func (p *chunkPool) shelveLocked(n int) {
	skipped := p.fresh[:n]
	p.fresh = p.fresh[n:]
	for len(skipped) >= p.chunkSize {
		p.cold = append(p.cold, cutOff(&skipped, p.chunkSize))
	}
}

// cutLocked cuts a chunk into idle pages.
func (p *chunkPool) cutLocked(c chunkRef) {
	k := int32(len(p.cuts))
	if n := len(p.spent); n > 0 {
		k, p.spent = p.spent[n-1], p.spent[:n-1]
		p.cuts[k] = cut{chunk: c}
	} else {
		p.cuts = append(p.cuts, cut{chunk: c})
	}
	for b := chunkBytes(&c, 0, uint32(p.chunkSize)); len(b) > 0; {
		r := cutOff(&b, p.pageSize)
		p.owner[r] = k
		p.pages = append(p.pages, r)
	}
	p.idle++
}

// joinLocked makes chunks again of those cuts whose pages are all idle.
func (p *chunkPool) joinLocked() {
	p.pages = slices.DeleteFunc(p.pages, func(r chunkRef) bool {
		k := p.owner[r]
		if p.cuts[k].inUse > 0 {
			return false
		}
		delete(p.owner, r)
		if c := &p.cuts[k]; c.chunk != (chunkRef{}) { // its first page to go
			p.chunks = append(p.chunks, c.chunk)
			p.spent = append(p.spent, k)
			c.chunk = chunkRef{}
		}
		return true
	})
	p.idle = 0
}

// page hands out one page of zero bytes.
func (p *chunkPool) page() (chunkRef, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pages) == 0 {
		c, err := p.cuttableLocked()
		if err != nil {
			return chunkRef{}, err
		}
		p.cutLocked(c)
	}
	n := len(p.pages) - 1
	r := p.pages[n]
	p.pages = p.pages[:n]
	c := &p.cuts[p.owner[r]]
	if c.inUse == 0 {
		p.idle--
		p.used.Add(int64(p.chunkSize))
	}
	c.inUse++
	clear(chunkBytes(&r, 0, uint32(p.pageSize)))
	return r, nil
}

// takePages hands out n pages, or none.
func (p *chunkPool) takePages(n int) ([]chunkRef, error) {
	pages := make([]chunkRef, 0, n)
	for range n {
		r, err := p.page()
		if err != nil {
			p.putPages(pages)
			return nil, err
		}
		pages = append(pages, r)
	}
	return pages, nil
}

// putPages takes pages back.
func (p *chunkPool) putPages(rs []chunkRef) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range rs {
		p.pages = append(p.pages, r)
		c := &p.cuts[p.owner[r]]
		if c.inUse--; c.inUse == 0 {
			p.idle++
			p.used.Add(-int64(p.chunkSize))
		}
	}
}

// join makes chunks again of all that are cut and have only idle pages.
func (p *chunkPool) join() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle > 0 {
		p.joinLocked()
	}
}
