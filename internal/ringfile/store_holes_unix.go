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

// Chunks of the file that have no place on the disk: holes.
//
// A reader may still look at a chunk that was given back. On a tmpfs even a read fills a hole,
// and is a signal if the disk is full by then. So before a hole is made, empty pages that are
// not the file's are put over it, in one step, and the file's come back once the hole has its
// place on the disk again. Chunks that were free since the file was opened, or grew, nobody
// looks at.

// holes is what a Store knows of them. Its lock guards it.
type holes struct {
	possible bool
	hidden   map[int64]bool // chunks that empty pages lie over, by their place in the file
	runs     int64          // of such chunks that follow upon each other
	free     int64          // bytes of the chunks that were free when the file was opened
}

// allRuns is the number of runs in all files of the process. Each is a separate mapping, and the
// system limits their number: the Go runtime ends the process when it is refused one.
var allRuns atomic.Int64

// init finds out whether the system can make holes of chunks in a file of that size.
func (h *holes) init(file disk, chunkSize uint32, size int64) {
	h.possible = int(chunkSize)%unix.Getpagesize() == 0 &&
		punch(int(file.Fd()), size, HeadSize) == nil // behind the end it does nothing
	h.hidden = map[int64]bool{}
}

// forget is called when all mappings are gone.
func (h *holes) forget() {
	allRuns.Add(-h.runs)
	h.hidden, h.runs, h.possible = nil, 0, false
}

// count notes that the chunk at off, of n bytes, is hidden from now on, or not any more. It
// reports false, and notes nothing, if there are too many runs.
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

// dropChunk makes a chunk a hole, and reports whether it could.
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
	// An error leaves the chunk its place on the disk, which fillChunk finds again.
	_ = punch(int(f.file.Fd()), off, n)
	return true
}

// fillChunk gives a hole its place on the disk, and maps it.
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

// ReadAhead starts to read a chunk from the disk, which the system does not do by itself.
func (f *Store) ReadAhead(r chunk.Ref) {
	_ = unix.Madvise(r.Bytes(0, uint32(f.Rings.chunkSize)), unix.MADV_WILLNEED)
}

// mapFile puts the bytes of the file from off on in place of b, in one step.
func mapFile(file disk, off int64, b []byte) error {
	// Sound: the pages are those of b, which is ours.
	_, err := unix.MmapPtr(int(file.Fd()), off, unsafe.Pointer(unsafe.SliceData(b)),
		uintptr(len(b)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED)
	if err == nil {
		// The page cache would read ahead into large folios. Where one covers a hole, a write to
		// another page of it fills the hole.
		_ = unix.Madvise(b, unix.MADV_RANDOM)
	}
	return err
}

// lengthen makes the file size bytes long. What is new is a hole.
func lengthen(file disk, size int64) error {
	if err := checkLength(size); err != nil {
		return err
	}
	return file.Truncate(size)
}

// checkLength returns an error if the process may not make a file so long: trying it would
// come with a signal.
func checkLength(size int64) error {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_FSIZE, &limit) == nil && uint64(size) > uint64(limit.Cur) {
		return unix.EFBIG
	}
	return nil
}

// part is bytes of the file.
type part struct{ off, n int64 }

// extentParts is an extent of the file: its length, and the parts of it that are in use.
type extentParts struct {
	n    int64
	used []part
}

// readExtents returns the extents of a file of that size. What is free in them becomes a hole.
// Nothing is mapped yet: on a tmpfs even a read of mapped bytes fills holes.
func (f *Store) readExtents(chunkSize int, size int64) (all []extentParts, err error) {
	form := New(nil, chunkSize, nil)
	b := make([]byte, HeadSize)
	for off := int64(HeadSize); size-off >= HeadSize; off += all[len(all)-1].n {
		if _, err := f.file.ReadAt(b, off); err != nil {
			return nil, err
		}
		n := form.ExtentSize(b)
		if n == 0 || n > size-off {
			break // the process died while it made this one
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

// readDirectory returns the parts of the extent of n bytes at off that are in use, the
// directory among them, and makes the others holes.
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
		// After an error it keeps its place on the disk until it is used.
		_ = punch(int(f.file.Fd()), p.off, p.n)
	}
	return join(used, part{begin + int64(count)*size, off + n - begin - int64(count)*size}), nil
}

// join adds a part to a list that is in order.
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
