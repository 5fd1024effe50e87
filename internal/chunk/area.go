package chunk

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"
)

// How memory gets large pages of the processor.
//
// With small pages, a random read also waits for the page table. But a large page is slow to get,
// and takes memory even for parts that are not used. So the pool asks for large pages only for
// settled memory, which was handed out so long ago that rings have filled it. The kernel then
// gathers small pages at its own pace.
//
// The kernel would gather a large page around a chunk that was given back, and so give it memory
// again. So the pool asks for small pages for an area with such holes; pages that are large already
// stay large.

// HugePages says when large pages are asked for.
type HugePages uint8

const (
	WhenFull HugePages = iota // when memory is settled
	Never
	AtOnce
)

const (
	BlockSize = 2 << 20 // bytes of a large page where small ones have 4 KB

	// Memory is settled when so many chunks were handed out after it: one for each bucket of a
	// cache.
	settledAfter = 512
)

// area is what Memory.Map returned, from which chunks are handed out in turn.
type area struct {
	mem   []byte
	taken int // bytes that were ever handed out, from the start on
	from  int // Pool.handed when it was new
	asked int // bytes for which large pages are wanted, from the start on
	holes int // chunks and pages that were handed out, and have no memory now
}

// start returns the area's address.
func (a *area) start() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(a.mem))) }

// take hands out n bytes that were never handed out.
func (a *area) take(n int) Ref {
	r := RefOf(a.mem[a.taken : a.taken+n])
	a.taken += n
	return r
}

// mapLocked gets a new area of n bytes.
func (p *Pool) mapLocked(n int, forPages bool) (*area, error) {
	m, err := p.mem.Map(n)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w: %w", n, ErrNoMemory, err)
	}
	a := &area{mem: m, from: p.handed}
	if p.huge == AtOnce || forPages && p.huge != Never {
		a.asked = n
	}
	p.mem.Large(m, a.asked > 0)
	p.areas = slices.Insert(p.areas, p.areaAt(a.start()), a)
	return a, nil
}

// areaAt returns the index of the first area that ends behind an address.
func (p *Pool) areaAt(at uintptr) int {
	i, _ := slices.BinarySearchFunc(p.areas, at, func(a *area, at uintptr) int {
		return cmp.Compare(a.start()+uintptr(len(a.mem)), at+1)
	})
	return i
}

// askLocked asks for large pages for what is settled of an area.
func (p *Pool) askLocked(a *area) {
	settled := min(a.taken, p.handed-a.from-settledAfter*p.chunkSize)
	if p.huge == WhenFull && settled > a.asked {
		a.asked = settled
		p.adviseLocked(a)
	}
}

// adviseLocked tells the kernel whether an area should lie on large pages.
func (p *Pool) adviseLocked(a *area) { p.mem.Large(a.mem[:a.asked], a.holes == 0) }

// markLocked notes whether a chunk or a page is a hole from now on.
func (p *Pool) markLocked(r Ref, hole bool) {
	a := p.areas[p.areaAt(uintptr(r.Pointer()))]
	was := a.holes
	if a.holes--; hole {
		a.holes += 2
	}
	if a.asked > 0 && (was == 0 || a.holes == 0) {
		p.adviseLocked(a)
	}
}
