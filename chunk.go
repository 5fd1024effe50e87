package ringcache

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Terms. A map is one anonymous mmap; a chunk is the piece of it that a ring
// takes and gives back; a page is the smaller piece that an index takes
// (chunk_pages.go).

const (
	maxChunkSize = 64 << 10
	minChunkSize = 2 << 10
	chunksPerMap = 1024 // 64 MB at the full chunk size

	// A bucket holds this many chunks at the least, so that what is lost at
	// the rounding of its share is small. Caches below 1 GB have smaller
	// chunks for it.
	chunksPerBucket = 32
)

// memory is where maps come from; tests put a failing one in its place.
type memory struct {
	mapBytes   func(n int) ([]byte, error)
	unmapBytes func(b []byte) error
}

// osMemory is the memory of the platform.
var osMemory = memory{mapBytes: mapBytes, unmapBytes: unmapBytes}

// chunkPool hands out the chunks of one cache. Its lock is the innermost: a
// bucket's lock may be held when it is taken, never the other way round.
type chunkPool struct {
	mem       memory
	chunkSize int
	pageSize  int
	mapSize   int  // bytes of the next map
	hugePages bool // ask for large pages

	mu     sync.Mutex
	maps   [][]byte
	fresh  []byte     // never used rest of the newest map
	block  []byte     // never used rest of the newest block
	chunks []chunkRef // given back
	cold   []chunkRef // without memory: not yet used, or given back and on to the operating system
	pages  []chunkRef // given back, or cut from a chunk and not yet used
	cuts   []cut      // chunks that are cut into pages
	owner  map[chunkRef]int32
	spent  []int32 // entries of cuts that are free for others
	idle   int     // cuts of which no page is in use

	used  atomic.Int64 // bytes of chunks handed out, or cut with a page in use
	bound atomic.Int64 // bytes that may be
}

// newChunkPool returns a pool that takes nothing from mem before the first
// chunk is asked for.
func newChunkPool(mem memory, maxBytes, chunkSize int) *chunkPool {
	p := &chunkPool{
		mem:       mem,
		chunkSize: chunkSize,
		pageSize:  pageSizeFor(chunkSize),
		mapSize:   mapSizeFor(maxBytes, chunkSize),
		owner:     map[chunkRef]int32{},
	}
	p.bound.Store(int64(maxBytes))
	return p
}

// mapSizeFor returns the size of the maps of a cache of maxBytes. A small one
// does not reserve 64 MB. One chunk more than the bound has room for the pages
// of a chunk that is cut but partly free.
func mapSizeFor(maxBytes, chunkSize int) int {
	const most = chunksPerMap * maxChunkSize
	if maxBytes < most {
		return (maxBytes/chunkSize + 1) * chunkSize
	}
	return most
}

// chunk hands out one chunk; its bytes are of any content.
func (p *chunkPool) chunk() (chunkRef, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, err := p.chunkLocked()
	if err == nil {
		p.used.Add(int64(p.chunkSize))
	}
	return r, err
}

// chunkLocked takes a chunk from the free list, else one whose pages are all
// idle, else one without memory, from the newest map else, else from a new one.
func (p *chunkPool) chunkLocked() (chunkRef, error) {
	if len(p.chunks) == 0 && p.idle > 0 {
		p.joinLocked()
	}
	if n := len(p.chunks); n > 0 {
		r := p.chunks[n-1]
		p.chunks = p.chunks[:n-1]
		return r, nil
	}
	if n := len(p.cold); n > 0 {
		r := p.cold[n-1]
		p.cold = p.cold[:n-1]
		return r, nil
	}
	if len(p.fresh) < p.chunkSize {
		if err := p.mapLocked(); err != nil {
			return chunkRef{}, err
		}
	}
	return cutOff(&p.fresh, p.chunkSize), nil
}

// mapLocked gets a new map. What is left of the one before is no chunk.
func (p *chunkPool) mapLocked() error {
	m, err := p.mem.mapBytes(p.mapSize)
	if err != nil {
		return fmt.Errorf("map %d bytes: %w: %w", p.mapSize, ErrNoMemory, err)
	}
	if p.hugePages {
		useHugePages(m)
	}
	p.maps = append(p.maps, m)
	p.fresh = m
	return nil
}

// cutOff takes the first n bytes of b away.
func cutOff(b *[]byte, n int) chunkRef {
	r := refOf((*b)[:n])
	*b = (*b)[n:]
	return r
}

// put takes a chunk back.
func (p *chunkPool) put(r chunkRef) {
	p.mu.Lock()
	p.chunks = append(p.chunks, r)
	p.mu.Unlock()
	p.used.Add(-int64(p.chunkSize))
}

// spare returns the bytes that may still be handed out; less than 0 when more
// than the bound is out for a moment.
func (p *chunkPool) spare() int { return int(p.bound.Load() - p.used.Load()) }

// isShort reports whether little more than a record of n bytes may still be handed out.
func (p *chunkPool) isShort(n int) bool { return p.spare() <= n+3*p.chunkSize }

// raise puts the bound up.
func (p *chunkPool) raise(bound int) {
	p.mu.Lock()
	p.mapSize = mapSizeFor(bound, p.chunkSize)
	p.mu.Unlock()
	p.bound.Store(int64(bound))
}

// lower brings the bound down to target, as far as what is in use lets it: a
// bound far below that would have every Set look for memory that none has.
func (p *chunkPool) lower(target int) {
	p.bound.Store(max(int64(target), min(p.bound.Load(), p.used.Load())))
}

// cool gives idle chunks back to the operating system, some at a time, and
// reports whether there are more: together with what is in use, those that keep
// their memory are to be within the bound. Chunks smaller than the system's
// pages keep it.
func (p *chunkPool) cool() (more bool) {
	const some = 1 << 20 // bytes: others wait for the lock
	p.mu.Lock()
	defer p.mu.Unlock()
	if !canCool(p.chunkSize) {
		return false
	}
	over := (len(p.chunks)*p.chunkSize - p.spare()) / p.chunkSize
	for range min(over, len(p.chunks), max(1, some/p.chunkSize)) {
		n := len(p.chunks) - 1
		coolBytes(chunkBytes(&p.chunks[n], 0, uint32(p.chunkSize)))
		p.cold = append(p.cold, p.chunks[n])
		p.chunks = p.chunks[:n]
		over--
	}
	return over > 0 && len(p.chunks) > 0
}

// close gives all maps back to the operating system. Nothing may refer to a
// chunk any more.
func (p *chunkPool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, m := range p.maps {
		if err := p.mem.unmapBytes(m); err != nil {
			errs = append(errs, fmt.Errorf("unmap %d bytes: %w", len(m), err))
		}
	}
	p.maps, p.fresh, p.block, p.chunks, p.cold, p.pages = nil, nil, nil, nil, nil, nil
	p.cuts, p.owner, p.spent, p.idle = nil, nil, nil, 0
	p.used.Store(0)
	return errors.Join(errs...)
}

// chunkBytes returns the bytes behind r from one offset to another, which is not less.
func chunkBytes(r *chunkRef, from, to uint32) []byte {
	// Sound: r was made from a slice of at least so many bytes (refOf), and its
	// memory stays mapped as long as a bucket may reach it.
	return unsafe.Slice((*byte)(unsafe.Add(r.pointer(), from)), to-from)
}

// lines are cache lines of a chunk that are worth asking for, even if by then it
// is another's.
type lines struct {
	chunk chunkRef
	off   uint32
	n     uint32
}

// prefetch asks for them.
func (l *lines) prefetch() { prefetchAt(&l.chunk, uintptr(l.off), int(l.n)) }

// prefetchWrite asks for them, of which there must be some, to be written to.
func (l *lines) prefetchWrite() { prefetchWriteAt(&l.chunk, uintptr(l.off), int(l.n)) }

// prefetchSoon does the same for lines that are not needed at once, on behalf of a lane.
func (l *lines) prefetchSoon(lane uint) {
	// Sound: nothing is read, and a prefetch cannot fault.
	prefetchSoon(unsafe.Add(l.chunk.pointer(), l.off), int(l.n), lane)
}

// prefetchAt asks for n lines from offset off of chunk r on.
func prefetchAt(r *chunkRef, off uintptr, n int) {
	// Sound: nothing is read, and a prefetch cannot fault.
	prefetchLines(unsafe.Add(r.pointer(), off), n)
}

// prefetchWriteAt asks for n lines from offset off of chunk r on, for writing.
func prefetchWriteAt(r *chunkRef, off uintptr, n int) {
	// Sound: as above.
	prefetchWrite(unsafe.Add(r.pointer(), off), n)
}
