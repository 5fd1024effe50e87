//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package ringfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ringcache/ringcache/internal/osfile"
)

// The calls of the operating system: the file is opened, locked, extended and mapped.

// Store is the open file of a cache.
type Store struct {
	Rings     *File
	IsNew     bool // the file had no contents, or none that can be used
	Discarded bool // the file is new because its contents could not be used
	Last      Mark // from which the clock of the file's expiries continues; zero: unknown
	boot      uint64

	mu    sync.Mutex
	file  disk
	size  int64    // length of the mapped part
	maps  [][]byte // the head first
	holes holes
}

// disk is an *os.File, or a test's replacement that records how it is used.
type disk interface {
	io.ReaderAt
	io.WriterAt
	osfile.File
	Name() string
	Truncate(size int64) error
	Sync() error
	Close() error
}

// Open opens the file at path, or creates it, and takes its lock. It returns the header of the
// file, which for a new file is the result of fresh. boot identifies the present boot of the
// machine. Until Use is called, the file is unchanged.
func Open(path string, boot uint64, fresh func() Header) (*Store, Header, error) {
	file, err := osfile.OpenOwn(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, Header{}, fmt.Errorf("open ring file: %w", err)
	}
	return open(file, boot, fresh)
}

// open is Open for a file that is open already.
func open(file disk, boot uint64, fresh func() Header) (*Store, Header, error) {
	f := &Store{file: file, boot: boot}
	h, err := f.read(fresh)
	if err != nil {
		f.Release()
		return nil, h, fmt.Errorf("open ring file %s: %w", file.Name(), err)
	}
	return f, h, nil
}

// read takes the file's lock and reads its header.
func (f *Store) read(fresh func() Header) (h Header, err error) {
	if err := f.lock(); err != nil {
		return h, err
	}
	info, err := f.file.Stat()
	if err != nil {
		return h, err
	}
	wanted := fresh()
	if f.size = info.Size(); f.size >= HeadSize {
		h, err = f.readOld(wanted.Program)
		if err == nil || !errors.Is(err, ErrNew) {
			return h, err
		}
	} else if err := f.refuseForeign(f.size); err != nil {
		return h, err
	}
	f.IsNew = true
	return wanted, nil
}

// Path returns the absolute path of the file, without a link at its end.
func (f *Store) Path() (string, error) {
	path, err := osfile.Target(f.file.Name())
	if err == nil && !osfile.IsAt(f.file, path) {
		err = fmt.Errorf("%w: it was replaced during the call", ErrInUse)
	}
	return path, err
}

// Use makes the file, which has header h, that of a cache. It releases the file if it fails.
func (f *Store) Use(h *Header) error {
	// The name must be on the disk before anything relies on the file. An error is ignored: at
	// worst, the cache starts empty after a crash of the machine.
	_ = osfile.SyncDir(filepath.Dir(f.file.Name()))
	err := osfile.MakePrivate(f.file)
	if err == nil && f.IsNew {
		err = f.begin(h)
	} else if err == nil {
		err = f.resume(h)
	}
	if err != nil {
		f.Release()
	}
	return err
}

// lock takes the file's lock. It returns an error if another process has the lock.
func (f *Store) lock() error {
	err := osfile.Lock(f.file)
	if errors.Is(err, osfile.ErrLocked) {
		return fmt.Errorf("%w: %w", ErrInUse, err)
	}
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	return nil
}

// refuseForeign returns an error if a file that is shorter than a head has contents, unless they
// are what remains of a ring file whose process or machine died while it was created.
func (f *Store) refuseForeign(size int64) error {
	head := make([]byte, HeadSize)
	if _, err := f.file.ReadAt(head[:size], 0); err != nil {
		return err
	}
	if isBlank(head) || size < headerSize && isBegun(head[:size]) {
		return nil
	}
	_, err := ReadHeader(head)
	if errors.Is(err, ErrNew) {
		return ErrForeign
	}
	if errors.Is(err, ErrDamaged) {
		return nil
	}
	return err
}

// readOld reads the header of an existing file. It returns an error that is ErrNew if the contents
// cannot be used, for example because they are of another version of the program.
func (f *Store) readOld(program uint64) (h Header, err error) {
	b := make([]byte, HeadSize)
	if _, err := f.file.ReadAt(b, 0); err != nil {
		return h, err
	}
	h, err = ReadHeader(b)
	switch {
	case errors.Is(err, ErrNew) && isBlank(b):
		return h, f.refuseContents(f.size)
	case errors.Is(err, ErrNew):
		return h, ErrForeign // it has contents, but no header
	case err != nil && !errors.Is(err, ErrDamaged):
		return h, err
	}
	isOurs := err == nil && h.Program == program
	if !isOurs || !New(b, int(h.ChunkSize), nil).IsSound(f.boot) {
		f.Discarded = true
		return h, ErrNew
	}
	return h, nil
}

// resume maps an existing file.
func (f *Store) resume(h *Header) error {
	if err := f.adopt(h, f.size); err != nil {
		return err
	}
	// The state on the disk must no longer say closed when the system begins to write pages back.
	f.Rings.SetState(f.boot, false)
	if err := f.flush(f.maps[:1]); err != nil {
		return err
	}
	return f.file.Truncate(f.size)
}

// adopt maps the head and the extents of a file of that size. It allocates disk space for holes in
// the parts in use, as in a copy made without zeros: a write to a hole is a signal if the disk is
// full by then. If the disk is full now, the file ends before the extent with the hole. Chunks that
// are free become holes, and get disk space when they are used.
func (f *Store) adopt(h *Header, size int64) error {
	f.holes.init(f.file, h.ChunkSize, size)
	extents, err := f.readExtents(int(h.ChunkSize), size)
	if err != nil {
		return err
	}
	if err := f.mend(0, HeadSize); err != nil {
		return fmt.Errorf("%w: %w", ErrSpace, err)
	}
	head, err := f.mapAt(0, HeadSize)
	if err != nil {
		return err
	}
	f.Rings = New(head, int(h.ChunkSize), f.grow)
	f.Last = f.Rings.lastMark(f.boot)
	f.size = HeadSize
	for _, x := range extents {
		if f.mendAll(x.used) != nil {
			break
		}
		extent, err := f.mapAt(f.size, x.n)
		if err != nil {
			return err
		}
		f.Rings.Adopt(extent)
		f.size += x.n
	}
	return nil
}

// refuseContents examines a file with a blank head. It returns ErrNew if the rest is blank too, or
// begins with the count of an extent, and ErrForeign if it may be a file of another program. (The
// head is on the disk before a file grows, so a ring file with a blank head has nothing else in
// it.)
func (f *Store) refuseContents(size int64) error {
	if size > HeadSize+wordSize {
		word := make([]byte, wordSize)
		if _, err := f.file.ReadAt(word, HeadSize); err != nil {
			return err
		}
		if _, ok := checked(binary.NativeEndian.Uint64(word), 0); ok {
			return ErrNew
		}
	}
	b := make([]byte, 1<<20)
	for off := int64(HeadSize); off < size; off += int64(len(b)) {
		n, err := f.file.ReadAt(b[:min(int64(len(b)), size-off)], off)
		if err != nil {
			return err
		}
		if !isZero(b[:n]) {
			return ErrForeign
		}
	}
	return ErrNew
}

// begin makes the file an empty ring file with header h. It writes the head to the disk before the
// file grows, because a greater length may reach the disk before any other bytes do.
func (f *Store) begin(h *Header) error {
	f.unmap()
	if err := f.file.Truncate(0); err != nil {
		return err
	}
	f.size = 0
	keepInPlace(f.file)
	b := make([]byte, HeadSize)
	New(b, int(h.ChunkSize), nil).SetState(f.boot, false)
	h.Put(b)
	err := allocate(f.file, 0, HeadSize)
	if err == nil {
		_, err = f.file.WriteAt(b, 0)
	}
	if err == nil {
		err = f.file.Sync()
	}
	if err != nil {
		_ = f.file.Truncate(0)
		return fmt.Errorf("%w: %w", ErrSpace, err)
	}
	head, err := f.mapAt(0, HeadSize)
	if err != nil {
		return err
	}
	f.size = HeadSize
	f.Rings = New(head, int(h.ChunkSize), f.grow)
	f.holes.init(f.file, h.ChunkSize, f.size)
	return nil
}

// grow makes the file n bytes longer, and maps these bytes. It allocates disk space for the first
// ready of them, so that a full disk is an error here and not a signal later.
func (f *Store) grow(n, ready int) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil, os.ErrClosed
	}
	// Addresses come first: without them, allocating disk space would be a waste.
	b, err := reserve(int64(n))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSpace, err)
	}
	if err = allocate(f.file, f.size, int64(ready)); err == nil && ready < n {
		err = lengthen(f.file, f.size+int64(n))
	}
	if err == nil {
		err = f.mapOver(b, f.size)
	}
	if err != nil {
		_ = unix.Munmap(b)
		_ = f.file.Truncate(f.size)
		return nil, fmt.Errorf("%w: %w", ErrSpace, err)
	}
	f.size += int64(n)
	return b, nil
}

// mapAt maps n bytes of the file.
func (f *Store) mapAt(off, n int64) ([]byte, error) {
	b, err := reserve(n)
	if err != nil {
		return nil, err
	}
	if err := f.mapOver(b, off); err != nil {
		_ = unix.Munmap(b)
		return nil, err
	}
	return b, nil
}

// reserve returns n bytes of address space for mapOver.
func reserve(n int64) ([]byte, error) {
	if int64(int(n)) != n {
		return nil, unix.ENOMEM
	}
	return unix.Mmap(-1, 0, int(n), unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

// mapOver maps the bytes of the file from off on in place of b.
func (f *Store) mapOver(b []byte, off int64) error {
	// Sound: the pages are those of b, which nobody else knows yet.
	err := mapFile(f.file, off, b)
	if err == nil {
		f.maps = append(f.maps, b)
	}
	return err
}

// allocate allocates disk space for the n bytes of the file from off on, which are after its end,
// or whose contents are not needed.
func allocate(file disk, off, n int64) error {
	if err := checkLength(off + n); err != nil {
		return err
	}
	// Without this check, a range that does not fit would fill the disk before it fails.
	if !mayFit(int(file.Fd()), n) {
		return unix.ENOSPC
	}
	err := preallocate(int(file.Fd()), off, n)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	zeros := make([]byte, 1<<20)
	for end := off + n; off < end; {
		n, err := file.WriteAt(zeros[:min(int64(len(zeros)), end-off)], off)
		if err != nil {
			return err
		}
		off += int64(n)
	}
	return nil
}

// mend allocates disk space for those of the n bytes of the file from off on that are in holes, or
// share their space with another file. If the disk is full, that is an error only if there are such
// bytes.
func (f *Store) mend(off, n int64) error {
	fd := int(f.file.Fd())
	err := preallocate(fd, off, n)
	if err == nil || f.ownsBlocks(off, n) {
		return nil
	}
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	b := make([]byte, 4096)
	for end := off + n; off < end; off += int64(len(b)) {
		if _, err := f.file.ReadAt(b, off); err != nil {
			return err
		}
		if !mayHaveHole(b) {
			continue
		}
		if _, err := f.file.WriteAt(b, off); err != nil {
			return err
		}
	}
	return nil
}

// mayHaveHole reports whether one of the blocks of a file system that b covers may be a hole.
func mayHaveHole(b []byte) bool {
	const smallest = 512 // bytes of a block: ext2 has blocks of 1,024
	for block := range slices.Chunk(b, smallest) {
		if isZero(block) {
			return true
		}
	}
	return false
}

// ownsBlocks reports whether the n bytes of the file from off on have disk space of their own. If
// the file system cannot tell, it returns whether the file takes at least as many bytes on the disk
// as it is long, not counting the chunks that were free when it was opened.
func (f *Store) ownsBlocks(off, n int64) bool {
	if owns, known := ownsBlocks(int(f.file.Fd()), off, n); known {
		return owns
	}
	var stat unix.Stat_t
	return unix.Fstat(int(f.file.Fd()), &stat) == nil &&
		int64(stat.Blocks)*512 >= int64(stat.Size)-f.holes.free
}

// flush writes the bytes of maps to the disk. Sync is needed on systems on which Msync leaves them
// in the disk's cache.
func (f *Store) flush(maps [][]byte) error {
	var errs []error
	for _, b := range maps {
		errs = append(errs, unix.Msync(b, unix.MS_SYNC))
	}
	return errors.Join(append(errs, f.file.Sync())...)
}

// Close writes the file to the disk, then marks it as closed, and closes it. at is the clock's
// mark. The addresses stay mapped, to other memory, because readers may still use them.
func (f *Store) Close(at Mark) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	f.Rings.SetClosed(at)
	err := f.flush(f.maps)
	if err == nil {
		f.Rings.SetState(f.boot, true)
		err = f.flush(f.maps[:1])
	}
	errs := []error{err}
	for _, b := range f.maps {
		// Sound: the pages are those of b, which is ours, and stay mapped throughout.
		_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)),
			unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_FIXED)
		errs = append(errs, err)
	}
	f.holes.forget()
	osfile.Unlock(f.file)
	errs = append(errs, f.file.Close())
	f.file = nil
	if err = errors.Join(errs...); err != nil {
		return fmt.Errorf("close ring file: %w", err)
	}
	return nil
}

// Release closes the file and unmaps the addresses. It must not be called as long as they can be
// reached.
func (f *Store) Release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unmap()
	if f.file != nil {
		osfile.Unlock(f.file)
		_ = f.file.Close()
		f.file = nil
	}
}

func (f *Store) unmap() {
	for _, b := range f.maps {
		_ = unix.Munmap(b)
	}
	f.maps = nil
	f.holes.forget()
}
