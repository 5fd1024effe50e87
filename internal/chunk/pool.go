// Package chunk hands out the memory of one cache: chunks for rings, and pages
// for indexes.
//
// Readers use memory without a lock, so it stays mapped as long as one could read it: physical
// memory may be given back to the operating system, but addresses are kept until Unmap. A page
// never becomes a chunk again, so that the only write of a reader, to a slot of an index, cannot
// hit a record.
package chunk

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	perMap = 1024 // chunks of an area: 64 MB at the full chunk size

	// The bound from which pages have areas of their own, in which a partly used large page does
	// not matter; in a cache whose chunks are in a file, they always have. In other caches, and if
	// such an area is refused, a chunk is split into pages, for good.
	//
	// Every lookup reads a cache line at a random place of an index. Indexes take about an eighth of
	// a cache, so large pages are worth having for them from the start, and areas of their own make
	// that possible.
	pageAreasFrom = 128 << 20

	leastPage = 1 << 10 // bytes of a page
)

// ErrNoMemory says that the system has refused memory.
var ErrNoMemory = errors.New("no memory from the operating system")

// Memory is the source of mapped memory. Tests replace it by one that fails.
type Memory struct {
	Map     func(n int) ([]byte, error) // n fresh zero bytes
	Unmap   func(b []byte) error        // gives back what Map returned
	Discard func(b []byte)              // gives the physical memory of b back; b stays mapped
	Granule int                         // unit of Discard in bytes; 0: it does nothing
	Large   func(b []byte, want bool)   // asks for large pages for b, or for none; may be nil

	// Headroom is the most bytes that a pool leaves to the rest of the process: the Go runtime ends
	// it if it gets no memory. Probe returns an error if the system would not map n bytes.
	Headroom int
	Probe    func(n int) error

	Rings *RingMemory // if not nil, where the chunks of rings come from in place of Map
}

// RingMemory is memory in a file. Its chunks never become pages, and the file unmaps them.
type RingMemory struct {
	Room int // bytes that there is memory for, as far as is known: those of the first area

	Map func(n int) ([]byte, error) // n zero bytes, which have memory

	// Drop gives the memory of a chunk back, and reports whether it did. The chunk can
	// still be read. It is nil if the system cannot give parts of a file back.
	Drop func(b []byte) bool

	// Fill gives a chunk without memory some; its content is undefined. The system may
	// refuse it.
	Fill func(b []byte) error
}

// Pool hands out the chunks and pages of one cache. A bucket's lock may be held when the pool's is
// taken, but not the reverse: of other locks, only the file's is taken under the pool's.
type Pool struct {
	mem       Memory
	chunkSize int
	pageSize  int
	block     int // bytes of a block of pages, the unit in which they are discarded
	mapSize   int // bytes of the next area for rings
	huge      HugePages

	used      atomic.Int64 // bytes of chunks and pages handed out
	pages     atomic.Int64 // pages handed out
	pageBytes atomic.Int64 // the part of used that is in blocks of pages
	bound     atomic.Int64 // bytes that may be used: most, or what the system gave
	most      atomic.Int64 // the bound that was set

	onBound func() // may be nil

	mu       sync.Mutex
	forRings source
	forPages source
	areas    []*area // by address
	fresh    *area   // the newest one for rings
	filled   *area   // the area before that
	pageArea *area   // the newest one for index pages
	handed   int     // bytes of areas for rings that were handed out

	// Returned by their users, with and without physical memory.
	idle, notResident []Ref // chunks
	idlePages         []Ref // if a block has several, by address, the lowest last
	wholeBlocks       int   // blocks of which all pages are idle
	notResidentPages  []Ref // blocks
}

// NewPool returns a pool. It takes no memory from mem before the first chunk or page is asked for.
func NewPool(mem Memory, bound, chunkSize int, huge HugePages) *Pool {
	if mem.Large == nil {
		mem.Large = func([]byte, bool) {}
	}
	none := new(area)
	p := &Pool{
		mem:       mem,
		chunkSize: chunkSize,
		mapSize:   mapSizeFor(bound, chunkSize),
		huge:      huge,
		fresh:     none,
		filled:    none,
		pageArea:  none,
	}
	// In a block are the pages that can only be discarded together.
	p.pageSize = min(chunkSize, max(chunkSize/8, leastPage))
	if p.block = p.pageSize; p.canDiscard() {
		p.block = max(p.block, mem.Granule)
	}
	p.forRings.next = p.mapSize
	if r := mem.Rings; r != nil && r.Room > 0 {
		p.forRings.next = min(p.mapSize, r.Room)
	}
	p.forPages.next = p.pageAreaSize()
	p.bound.Store(int64(bound))
	p.most.Store(int64(bound))
	return p
}

// mapSizeFor returns the size of the maps of a cache of that bound. In a small cache they have one
// chunk more, because a chunk that is split into pages may be partly unused.
func mapSizeFor(bound, chunkSize int) int {
	return min(bound/chunkSize+1, perMap*MaxSize/chunkSize) * chunkSize
}

// ChunkSize returns the bytes of a chunk.
func (p *Pool) ChunkSize() int { return p.chunkSize }

// PageSize returns the bytes of a page.
func (p *Pool) PageSize() int { return p.pageSize }

// PagesSize returns the most bytes that n pages take of the bound: it counts whole blocks.
func (p *Pool) PagesSize(n int) int { return (n*p.pageSize + p.block - 1) / p.block * p.block }

// Used returns the bytes of chunks and pages that are handed out.
func (p *Pool) Used() int { return int(p.used.Load()) }

// PagesUsed returns the number of pages that are handed out, and PageBytes their part of Used.
func (p *Pool) PagesUsed() int { return int(p.pages.Load()) }
func (p *Pool) PageBytes() int { return int(p.pageBytes.Load()) }

// Spare returns the bytes that may still be handed out. It is below 0 while more than the bound is
// handed out.
func (p *Pool) Spare() int { return int(p.bound.Load() - p.used.Load()) }

// Chunk hands out one chunk, whose content is undefined: an idle one, else one without memory. Idle
// pages give theirs back for it if the two together would exceed the bound (I17). If Chunk returns
// an error, it has lowered the bound in force to the chunks that the pool has.
func (p *Pool) Chunk() (r Ref, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := pop(&p.idle)
	if !ok {
		for p.heldLocked()+p.chunkSize > int(p.most.Load()) && p.releasePageLocked() {
		}
		r, err = p.takeNotResidentLocked()
	}
	if err != nil {
		p.forRings.waited += p.chunkSize
		p.limitLocked()
		return r, err
	}
	p.used.Add(int64(p.chunkSize))
	return r, nil
}

// takeNotResidentLocked takes a chunk that has no physical memory.
func (p *Pool) takeNotResidentLocked() (Ref, error) {
	if r, ok := pop(&p.notResident); ok {
		if err := p.fillLocked(r); err != nil {
			p.notResident = append(p.notResident, r)
			return Ref{}, err
		}
		return r, nil
	}
	if p.freshBytes() == 0 {
		if err := p.freshLocked(); err != nil {
			return Ref{}, err
		}
	}
	if r, ok := pop(&p.idle); ok { // of a file
		return r, nil
	}
	return p.takeFreshLocked(), nil
}

// takeFreshLocked takes a chunk of the newest area for rings, which has one.
func (p *Pool) takeFreshLocked() Ref {
	if p.handed += p.chunkSize; p.handed%BlockSize == 0 {
		p.askLocked(p.filled)
		p.askLocked(p.fresh)
	}
	return p.fresh.take(p.chunkSize)
}

// freshLocked gets a new area for rings. If that is refused, it takes the rest of the area for
// index pages.
func (p *Pool) freshLocked() error {
	if p.mem.Rings != nil {
		return p.freshInFileLocked()
	}
	a, err := p.growLocked(&p.forRings, p.mapSize, func(n int) (*area, error) {
		return p.mapLocked(n, false)
	})
	switch {
	case err == nil:
		p.filled, p.fresh = p.fresh, a
	case p.wholeChunks(p.pageArea.taken) < len(p.pageArea.mem):
		p.pageArea.taken = p.wholeChunks(p.pageArea.taken)
		p.fresh, p.pageArea = p.pageArea, p.fresh
	default:
		return err
	}
	return nil
}

// pop takes the last of a list.
func pop(list *[]Ref) (Ref, bool) {
	n := len(*list)
	if n == 0 {
		return Ref{}, false
	}
	r := (*list)[n-1]
	*list = (*list)[:n-1]
	return r, true
}

// Put takes a chunk back. Users look at Spare before they take what they need, so several at the
// same time, or one during Resize, may take too much: then Put gives it back to the system (I17).
func (p *Pool) Put(r Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, r)
	p.used.Add(-int64(p.chunkSize))
	p.shedLocked()
}

// Pages hands out n pages of any content, or none.
func (p *Pool) Pages(n int) ([]Ref, error) {
	pages := make([]Ref, 0, n)
	p.mu.Lock()
	defer p.mu.Unlock()
	for range n {
		if len(p.idlePages) == 0 {
			if err := p.morePagesLocked(); err != nil {
				p.putPagesLocked(pages)
				p.forPages.waited += n * p.pageSize
				if p.mem.Rings == nil {
					p.limitLocked() // a file may still grant chunks
				}
				return nil, err
			}
		}
		if _, whole := p.blockOf(len(p.idlePages) - 1); whole {
			p.wholeBlocks--
			p.usePagesLocked(p.block)
		}
		r, _ := pop(&p.idlePages)
		pages = append(pages, r)
	}
	p.pages.Add(int64(n))
	for p.shedLocked() {
	}
	return pages, nil
}

// morePagesLocked makes pages idle: those of a block without memory, else of a new one, or of a
// chunk.
func (p *Pool) morePagesLocked() error {
	if r, ok := pop(&p.notResidentPages); ok {
		p.markLocked(r, false)
		p.splitLocked(r, p.block)
		return nil
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
			return err
		}
		p.pageArea = a
	}
	p.splitLocked(p.pageArea.take(p.block), p.block)
	return nil
}

// splitChunkLocked splits a chunk into idle pages.
func (p *Pool) splitChunkLocked() error {
	c, ok := pop(&p.idle)
	if !ok {
		var err error
		if c, err = p.takeNotResidentLocked(); err != nil {
			return err
		}
	}
	p.splitLocked(c, p.chunkSize)
	return nil
}

// splitLocked splits n bytes of whole blocks into idle pages.
func (p *Pool) splitLocked(r Ref, n int) {
	for at := n - p.pageSize; at >= 0; at -= p.pageSize {
		p.idleLocked(RefOf(r.Bytes(uint32(at), uint32(at+p.pageSize))))
	}
}

// PutPages takes pages back. They do not become chunks again.
func (p *Pool) PutPages(rs []Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.putPagesLocked(rs)
	p.pages.Add(-int64(len(rs)))
	for i := 0; i < len(rs) && p.shedLocked(); i++ {
	}
}

func (p *Pool) putPagesLocked(rs []Ref) {
	had := p.wholeBlocks
	for _, r := range rs {
		p.idleLocked(r)
	}
	p.usePagesLocked(-(p.wholeBlocks - had) * p.block)
}

func (p *Pool) usePagesLocked(bytes int) {
	p.used.Add(int64(bytes))
	p.pageBytes.Add(int64(bytes))
}

// idleLocked makes a page idle. If a block has several pages, the lowest idle one of all is the
// next to be handed out, so that whole blocks become idle.
func (p *Pool) idleLocked(r Ref) {
	i := len(p.idlePages)
	if p.block > p.pageSize {
		i, _ = slices.BinarySearchFunc(p.idlePages, r, func(a, b Ref) int {
			return cmp.Compare(uintptr(b.Pointer()), uintptr(a.Pointer()))
		})
	}
	p.idlePages = slices.Insert(p.idlePages, i, r)
	if _, whole := p.blockOf(i); whole {
		p.wholeBlocks++
	}
}

// blockOf returns the place in idlePages where the block of idle page i begins, or would, and
// whether all of its pages are idle.
func (p *Pool) blockOf(i int) (from int, whole bool) {
	n, size := p.block/p.pageSize, uintptr(p.block)
	if n == 1 {
		return i, true
	}
	at := uintptr(p.idlePages[i].Pointer())
	first := at &^ (size - 1)
	from = i - (n - 1) + int(at-first)/p.pageSize // the addresses descend
	whole = from >= 0 && from+n <= len(p.idlePages) &&
		uintptr(p.idlePages[from].Pointer()) == first+size-uintptr(p.pageSize) &&
		uintptr(p.idlePages[from+n-1].Pointer()) == first
	return from, whole
}

// pageAreaSize returns the most bytes of an area for pages.
func (p *Pool) pageAreaSize() int { return max(p.mapSize/8/p.chunkSize, 1) * p.chunkSize }

// SetBound sets the bound. While the system refuses memory, the bound in force does not rise, but
// the pool asks again at the next opportunity.
func (p *Pool) SetBound(bound int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mapSize = mapSizeFor(bound, p.chunkSize)
	p.most.Store(int64(bound))
	if p.forRings.refused != nil {
		p.forRings.fails, p.forRings.waited = 1, bound
		bound = min(bound, p.Bound())
	}
	p.bound.Store(int64(bound))
}

// Lower lowers the bound to target, but not below the memory in use: with a lower bound, every Set
// would search for memory that no bucket has to give.
func (p *Pool) Lower(target int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	least := max(int64(target), p.used.Load())
	p.most.Store(min(p.most.Load(), least))
	p.bound.Store(min(p.bound.Load(), least))
}

// Close gives all physical memory back. Addresses are kept, because readers may still use them.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mem.Granule > 0 {
		for _, a := range p.areas {
			p.mem.Discard(a.mem)
			a.taken = 0
		}
	} else {
		p.areas = nil // the collector frees them once no reader refers to them
	}
	none := new(area)
	p.fresh, p.filled, p.pageArea = none, none, none
	p.idle, p.notResident, p.idlePages, p.notResidentPages = nil, nil, nil, nil
	p.wholeBlocks = 0
	p.used.Store(0)
	p.pages.Store(0)
	p.pageBytes.Store(0)
}

// Unmap gives the addresses back. It must not be called as long as a chunk can be reached.
func (p *Pool) Unmap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.areas {
		_ = p.mem.Unmap(a.mem)
	}
	p.areas = nil
}
