//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package ringfile

import (
	"fmt"
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
// once the hole has disk space. Chunks that have been free since the file was opened or grew need
// not be hidden, because no reader knows them.

// holes describes the holes of a Store, whose lock guards it.
type holes struct {
	possible bool
	hidden   map[int64]bool // hidden chunks, by their offset in the file
	runs     int64          // number of runs of adjacent hidden chunks
	free     int64          // bytes of the chunks that were free when the file was opened
}

// allRuns is the number of runs in all files of the process. Each is a separate mapping, and the
// system limits their number: the Go runtime ends the process when it is refused one.
var allRuns atomic.Int64

// init finds out whether the system can turn chunks of the file, which has that size, into holes.
func (h *holes) init(file disk, chunkSize uint32, size int64) {
	h.possible = int(chunkSize)%unix.Getpagesize() == 0 &&
		punch(int(file.Fd()), size, HeadSize) == nil // after the end, it changes nothing
	h.hidden = map[int64]bool{}
}

// forget is called when all mappings are gone.
func (h *holes) forget() {
	allRuns.Add(-h.runs)
	h.hidden, h.runs, h.possible = nil, 0, false
}

// count notes whether the chunk of n bytes at off is hidden. It reports false, and notes nothing,
// if there would be too many runs.
func (h *holes) count(off, n int64, hidden bool) bool {
	more := int64(1)
	for _, beside := range []int64{off - n, off + n} {
		if h.hidden[beside] {
			more--
		}
	}
	if !hidden {
		more = -more
	}
	if all := allRuns.Add(more); hidden && more > 0 && all > mostRuns() {
		allRuns.Add(-more)
		return false
	}
	h.runs += more
	if hidden {
		h.hidden[off] = true
	} else {
		delete(h.hidden, off)
	}
	return true
}

// Memory returns the file as the memory of a pool.
func (f *Store) Memory() *chunk.RingMemory {
	m := &chunk.RingMemory{Map: f.Rings.Map, Fill: f.fillChunk}
	if f.holes.possible {
		m.Drop = f.dropChunk
	}
	return m
}

// dropChunk turns a chunk into a hole, and reports whether it did.
func (f *Store) dropChunk(b []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	off, n := f.offset(b), int64(len(b))
	if f.file == nil || !f.holes.count(off, n, true) {
		return false
	}
	// Sound: the pages are those of b, which is ours, and stay mapped throughout.
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(b)), uintptr(n),
		unix.PROT_READ, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_FIXED)
	if err != nil {
		f.holes.count(off, n, false)
		return false
	}
	// After an error the chunk keeps its disk space until fillChunk needs it.
	_ = punch(int(f.file.Fd()), off, n)
	return true
}

// fillChunk allocates disk space for a hole, and maps it.
func (f *Store) fillChunk(b []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return os.ErrClosed
	}
	off, n := f.offset(b), int64(len(b))
	err := allocate(f.file, off, n)
	if err == nil && f.holes.hidden[off] {
		if err = mapFile(f.file, off, b); err == nil {
			f.holes.count(off, n, false)
		} else {
			_ = punch(int(f.file.Fd()), off, n)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSpace, err)
	}
	return nil
}

// offset returns the offset of b in the file, in which the mappings are contiguous.
func (f *Store) offset(b []byte) (off int64) {
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

// ReadAhead starts to read a chunk from the disk. Without it, the system would read page by page
// (mapFile).
func (f *Store) ReadAhead(r chunk.Ref) {
	_ = unix.Madvise(r.Bytes(0, uint32(f.Rings.chunkSize)), unix.MADV_WILLNEED)
}

// mapFile maps the bytes of the file from off on in place of b, in one step.
func mapFile(file disk, off int64, b []byte) error {
	// Sound: the pages are those of b, which is ours.
	_, err := unix.MmapPtr(int(file.Fd()), off, unsafe.Pointer(unsafe.SliceData(b)),
		uintptr(len(b)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED)
	if err == nil {
		// This prevents read-ahead, which would use large folios: if a folio covers a hole, a write
		// to another of its pages fills the hole.
		_ = unix.Madvise(b, unix.MADV_RANDOM)
	}
	return err
}

// lengthen makes the file size bytes long. The new bytes are a hole.
func lengthen(file disk, size int64) error {
	if err := checkLength(size); err != nil {
		return err
	}
	return file.Truncate(size)
}

// checkLength returns an error if the process may not make a file that long: an attempt would raise
// a signal.
func checkLength(size int64) error {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_FSIZE, &limit) == nil && uint64(size) > uint64(limit.Cur) {
		return unix.EFBIG
	}
	return nil
}

// part is a range of the file.
type part struct{ off, n int64 }

// extentParts is an extent of the file: its length, and the parts of it that are in use.
type extentParts struct {
	n    int64
	used []part
}

// readExtents returns the extents of a file of that size, and turns their free chunks into holes.
// It reads the file without mapping it: on a tmpfs, even a read of mapped bytes fills holes.
func (f *Store) readExtents(chunkSize int, size int64) (all []extentParts, err error) {
	form := New(nil, chunkSize, nil)
	b := make([]byte, HeadSize)
	for off := int64(HeadSize); size-off >= HeadSize; off += all[len(all)-1].n {
		if _, err := f.file.ReadAt(b, off); err != nil {
			return nil, err
		}
		n := form.ExtentSize(b)
		if n == 0 || n > size-off {
			break // the process died while it was made
		}
		x := extentParts{n: n, used: []part{{off, n}}}
		if f.holes.possible {
			if x.used, err = f.readDirectory(form, off, n); err != nil {
				return nil, err
			}
		}
		all = append(all, x)
	}
	return all, nil
}

// readDirectory returns the parts of the extent of n bytes at off that are in use, the directory
// among them, and turns the others into holes.
func (f *Store) readDirectory(form *File, off, n int64) (used []part, err error) {
	b := make([]byte, HeadSize)
	if _, err := f.file.ReadAt(b, off); err != nil {
		return nil, err
	}
	count, _ := checked(words(b, 1)[0].Load(), 0)
	directory, _ := form.extentSizes(int(count))
	b = make([]byte, directory)
	if _, err := f.file.ReadAt(b, off); err != nil {
		return nil, err
	}
	used = []part{{off, int64(directory)}}
	size, begin := int64(form.chunkSize), off+int64(directory)
	var free []part
	for i := range int(count) {
		list := &free
		if _, ok := inUse(&words(b, int(count)+1)[i+1], i); ok {
			list = &used
		} else {
			f.holes.free += size
		}
		*list = join(*list, part{begin + int64(i)*size, size})
	}
	for _, p := range free {
		// After an error the part keeps its disk space.
		_ = punch(int(f.file.Fd()), p.off, p.n)
	}
	return join(used, part{begin + int64(count)*size, off + n - begin - int64(count)*size}), nil
}

// join appends a part to a list, or lengthens the last one if they are adjacent.
func join(list []part, p part) []part {
	if last := len(list) - 1; last >= 0 && list[last].off+list[last].n == p.off {
		list[last].n += p.n
		return list
	}
	return append(list, p)
}

// mendAll mends parts of the file.
func (f *Store) mendAll(all []part) error {
	for _, p := range all {
		if p.n == 0 {
			continue
		}
		if err := f.mend(p.off, p.n); err != nil {
			return err
		}
	}
	return nil
}
