//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package ringfile

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The operating system's side: the file is opened, locked, made longer and mapped.

// Store is the open file of a cache.
type Store struct {
	Rings     *File
	IsNew     bool // nothing was in it, or nothing that is to be relied on
	Discarded bool // it is new though it was a ring file before
	Last      Mark // of the clock that the file's expiries go by; zero: not known
	boot      string

	mu   sync.Mutex
	file *os.File
	size int64    // of what is mapped
	maps [][]byte // the head first
}

// Open opens the file at path, or makes it, and takes its lock. It returns the header
// that it has, and for a new one the one that fresh returns. boot is the machine's name
// for the time since it was started.
func Open(path, boot string, fresh func() Header) (*Store, Header, error) {
	var h Header
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, h, fmt.Errorf("open ring file: %w", err)
	}
	f := &Store{file: file, boot: boot}
	if h, err = f.open(fresh); err != nil {
		f.Release()
		return nil, h, fmt.Errorf("open ring file %s: %w", path, err)
	}
	return f, h, nil
}

// open is Open for a file that is open already.
func (f *Store) open(fresh func() Header) (h Header, err error) {
	if err := f.lock(); err != nil {
		return h, err
	}
	info, err := f.file.Stat()
	if err != nil {
		return h, err
	}
	wanted := fresh()
	if info.Size() >= HeadSize {
		h, err = f.openOld(info.Size(), wanted.Program)
		if err == nil || !errors.Is(err, ErrNew) {
			return h, err
		}
	} else if err := f.refuseForeign(info.Size()); err != nil {
		return h, err
	}
	f.IsNew = true
	return wanted, f.begin(&wanted)
}

// lock takes the file's lock, unless another has it, or has put another file in its place
// meanwhile.
func (f *Store) lock() error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: no regular file", ErrForeign)
	}
	err = unix.Flock(int(f.file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errors.Join(ErrInUse, err)
	}
	if err != nil {
		return fmt.Errorf("lock it: %w", err)
	}
	if now, err := os.Stat(f.file.Name()); err != nil || !os.SameFile(info, now) {
		return fmt.Errorf("%w: it was replaced just now", ErrInUse)
	}
	return nil
}

// refuseForeign returns an error if a file of less than a head has something in it that
// was not written by a process that died while it made the file.
func (f *Store) refuseForeign(size int64) error {
	head := make([]byte, HeadSize)
	if _, err := f.file.ReadAt(head[:size], 0); err != nil {
		return err
	}
	_, err := ReadHeader(head)
	if errors.Is(err, ErrNew) && !isBlank(head) {
		return ErrForeign
	}
	if errors.Is(err, ErrNew) || errors.Is(err, ErrDamaged) {
		return nil
	}
	return err
}

// openOld maps what is there. It returns an error that is ErrNew if that is of no use,
// as for a program of another version.
func (f *Store) openOld(size int64, program uint64) (h Header, err error) {
	head, err := f.mapAt(0, HeadSize)
	if err != nil {
		return h, err
	}
	h, err = ReadHeader(head)
	if errors.Is(err, ErrNew) && (size > HeadSize || !isBlank(head)) {
		return h, ErrForeign // it has no header, and yet something in it
	}
	if err != nil && !errors.Is(err, ErrDamaged) {
		return h, err
	}
	f.Discarded = true
	if err != nil || h.Program != program {
		return h, ErrNew
	}
	f.Rings = New(head, int(h.ChunkSize), f.grow)
	if !f.Rings.IsSound(f.boot) {
		return h, ErrNew
	}
	f.Discarded = false
	f.Last = f.Rings.lastMark(f.boot)
	for f.size = HeadSize; f.size < size; {
		n, err := f.extentAt(f.size, size)
		if err != nil {
			return h, err
		}
		if n == 0 {
			break // the process died while it made this one
		}
		extent, err := f.mapAt(f.size, n)
		if err != nil {
			return h, err
		}
		f.Rings.Adopt(extent)
		f.size += n
	}
	// The disk must not say that it was closed, when pages are written back one by one.
	f.Rings.SetState(f.boot, false)
	if err := unix.Msync(head, unix.MS_SYNC); err != nil {
		return h, err
	}
	return h, f.file.Truncate(f.size)
}

// extentAt returns the bytes of the extent that begins at off in a file of that size, or
// 0 if there is none that is whole.
func (f *Store) extentAt(off, size int64) (int64, error) {
	if size-off < HeadSize {
		return 0, nil
	}
	b, err := unix.Mmap(int(f.file.Fd()), off, HeadSize, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Munmap(b) }()
	if n := f.Rings.ExtentSize(b); n <= size-off {
		return n, nil
	}
	return 0, nil
}

// begin makes the file an empty one with header h.
func (f *Store) begin(h *Header) error {
	f.unmap()
	if err := f.file.Truncate(0); err != nil {
		return err
	}
	f.size = 0
	head, err := f.grow(HeadSize)
	if err != nil {
		return err
	}
	f.Rings = New(head, int(h.ChunkSize), f.grow)
	f.Rings.SetState(f.boot, false)
	h.Put(head)
	return nil
}

// grow makes the file n bytes longer, and maps these. They are allocated before, so that
// a disk that is full is an error here and no signal later.
func (f *Store) grow(n int) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil, os.ErrClosed
	}
	// Addresses first: where there are none, it would be a waste to allocate.
	b, err := reserve(int64(n))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSpace, err)
	}
	if err = allocate(f.file, f.size, int64(n)); err == nil {
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

// mapOver puts the bytes of the file from off on in place of b.
func (f *Store) mapOver(b []byte, off int64) error {
	// Sound: the pages are those of b, which nobody else knows yet.
	_, err := unix.MmapPtr(int(f.file.Fd()), off, unsafe.Pointer(unsafe.SliceData(b)),
		uintptr(len(b)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED)
	if err == nil {
		f.maps = append(f.maps, b)
	}
	return err
}

// allocate gives the n bytes of the file from off on their place on the disk.
func allocate(file *os.File, off, n int64) error {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_FSIZE, &limit) == nil && uint64(off+n) > uint64(limit.Cur) {
		return unix.EFBIG // which would come with a signal
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

// Close has all that is in the file written, says that it is, and gives the file up. at
// is the clock's mark. Addresses stay mapped: somebody may still be reading there.
func (f *Store) Close(at Mark) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	f.Rings.SetClosed(at)
	var errs []error
	sync := func(b []byte) { errs = append(errs, unix.Msync(b, unix.MS_SYNC)) }
	for _, b := range f.maps {
		sync(b)
	}
	if errors.Join(errs...) == nil {
		f.Rings.SetState(f.boot, true)
		sync(f.maps[0])
	}
	for _, b := range f.maps {
		// Sound: the pages are those of b, which is ours, and stay mapped throughout.
		_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)),
			unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_FIXED)
		errs = append(errs, err)
	}
	errs = append(errs, f.file.Close())
	f.file = nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close ring file: %w", err)
	}
	return nil
}

// Release gives the file and the addresses up: nobody can reach them any more.
func (f *Store) Release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unmap()
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
}

func (f *Store) unmap() {
	for _, b := range f.maps {
		_ = unix.Munmap(b)
	}
	f.maps = nil
}
