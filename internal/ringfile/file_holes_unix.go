//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package ringfile

import (
	"math"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ringcache/ringcache/internal/chunk"
)

// Holes are chunks of the file without disk space.
//
// A reader may still read a chunk that was given back. On a tmpfs, even a read fills a hole, and is
// a signal if the disk is full by then. So before a chunk becomes a hole, it is hidden: empty pages
// that do not belong to the file are mapped over it, in one step. The file is mapped there again
// once the hole has disk space. Chunks that have been free since the file was opened need not
// be hidden, because no reader knows them.

// holes describes the holes of a File, whose lock guards it.
type holes struct {
	possible bool
	hidden   []bool // by the number of a chunk, up to the last one that was ever hidden
	runs     int64  // number of runs of adjacent hidden chunks
}

// allRuns is the number of runs in all files of the process. Each is a separate mapping, and the
// system limits their number: the Go runtime ends the process when it is refused one.
var allRuns atomic.Int64

// mostRuns is their largest number. Each splits a mapping and so adds two, so that at most half of
// the mappings that Linux lets a process have, 65,530, are used.
const mostRuns = 65530 / 4

// init finds out whether the system can turn chunks of the file, which has that size, into holes.
func (h *holes) init(file disk, chunkSize uint32, size int64) {
	h.possible = int(chunkSize)%unix.Getpagesize() == 0 &&
		punch(int(file.Fd()), size, HeadSize) == nil // after the end, it changes nothing
}

// forget is called when all mappings are gone.
func (h *holes) forget() {
	allRuns.Add(-h.runs)
	h.hidden, h.runs, h.possible = nil, 0, false
}

// isHidden reports whether a chunk is hidden.
func (h *holes) isHidden(chunk int) bool {
	return chunk >= 0 && chunk < len(h.hidden) && h.hidden[chunk]
}

// more returns how many more runs there are if a chunk is hidden, or how many fewer if it no longer
// is.
func (h *holes) more(chunk int) int64 {
	more := int64(1)
	for _, beside := range []int{chunk - 1, chunk + 1} {
		if h.isHidden(beside) {
			more--
		}
	}
	return more
}

// count notes that there are more runs.
func (h *holes) count(more int64) {
	h.runs += more
	allRuns.Add(more)
}

// Memory returns the file as the memory of a pool.
func (f *File) Memory() *chunk.RingMemory {
	room := (room(int(f.file.Fd()))/HeadSize - 1) * HeadSize // without a directory
	m := &chunk.RingMemory{
		Map: f.Rings.Map, Fill: f.fillChunk, Room: int(min(room, math.MaxInt)),
	}
	if f.holes.possible {
		m.Drop = f.dropChunk
	}
	return m
}

// dropChunk turns a chunk into a hole, and reports whether it did.
func (f *File) dropChunk(b []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	off, n := f.offset(b), int64(len(b))
	chunk := int(off / n)
	more := f.holes.more(chunk)
	if f.file == nil || more > 0 && allRuns.Load() >= mostRuns || hide(b, unix.PROT_READ) != nil {
		return false
	}
	f.holes.count(more)
	f.holes.hidden = append(f.holes.hidden, make([]bool, max(0, chunk+1-len(f.holes.hidden)))...)
	f.holes.hidden[chunk] = true
	// After an error the chunk keeps its disk space until fillChunk needs it.
	_ = punch(int(f.file.Fd()), off, n)
	return true
}

// fillChunk allocates disk space for a hole, and maps it. Where no hole could be made, the chunk
// still has its space, however full the disk is.
func (f *File) fillChunk(b []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return os.ErrClosed
	}
	off, n := f.offset(b), int64(len(b))
	chunk, err := int(off/n), allocate(f.file, off, n)
	if err == nil && f.holes.isHidden(chunk) {
		// Sound: the pages are those of b, which is ours.
		_, err = unix.MmapPtr(int(f.file.Fd()), off, unsafe.Pointer(unsafe.SliceData(b)),
			uintptr(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED)
		if err == nil {
			preventReadAhead(b)
			f.holes.count(-f.holes.more(chunk))
			f.holes.hidden[chunk] = false
		}
	}
	if err != nil {
		_ = punch(int(f.file.Fd()), off, n) // what has disk space now
	}
	return err
}

// offset returns the offset of b in the file, in which the mappings are contiguous.
func (f *File) offset(b []byte) (off int64) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	for _, m := range f.maps {
		d := at - uintptr(unsafe.Pointer(unsafe.SliceData(m)))
		if d < uintptr(len(m)) {
			return off + int64(d)
		}
		off += int64(len(m))
	}
	return -1 // the file is closed
}

// hide maps empty pages in place of those of b, in one step.
func hide(b []byte, access int) error {
	// Sound: the pages are those of b, which is ours, and stay mapped throughout.
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)), access,
		unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_FIXED)
	return err
}
