//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package ringfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"

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

// disk is an *os.File, or a test's replacement that records how it is used. It lacks Stat: every
// cache refers to this type, and with that method the linker would keep those of fs.FileInfo's
// time.Time, which format it: 68 KB of every program.
type disk interface {
	io.ReaderAt
	io.WriterAt
	Fd() uintptr
	Name() string
	Truncate(size int64) error
	Sync() error
	Close() error
}

func (f *Store) osFile() osfile.File { return f.file.(osfile.File) }

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

// read takes the file's lock and reads its header. It returns an error if another process has the
// lock, or if the contents are not those of a ring file. What a process or a machine that died may
// have left is nothing, or a head that is blank: the file grows only once its head is on the disk.
func (f *Store) read(fresh func() Header) (h Header, err error) {
	if err := osfile.Lock(f.osFile()); errors.Is(err, osfile.ErrLocked) {
		return h, fmt.Errorf("%w: %w", ErrInUse, err)
	} else if err != nil {
		return h, fmt.Errorf("lock: %w", err)
	}
	info, err := f.osFile().Stat()
	if err != nil {
		return h, err
	}
	f.size = info.Size()
	head := make([]byte, HeadSize)
	n := min(f.size, HeadSize)
	if _, err := f.file.ReadAt(head[:n], 0); err != nil {
		return h, err
	}
	wanted := fresh()
	h, err = ReadHeader(head[:n])
	switch {
	case errors.Is(err, errBlank) && f.size > HeadSize:
		return h, ErrForeign
	case errors.Is(err, errBlank):
	case err != nil && !errors.Is(err, errDamaged):
		return h, err
	case err == nil && n == HeadSize && h.Program == wanted.Program &&
		New(head, int(h.ChunkSize), nil).IsSound(f.boot):
		return h, nil
	default:
		f.Discarded = true
	}
	f.IsNew = true
	return wanted, nil
}

// Path returns the absolute path of the file, without a link at its end.
func (f *Store) Path() (string, error) {
	path, err := osfile.Target(f.file.Name())
	if err == nil {
		err = osfile.At(f.osFile(), path)
	}
	if errors.Is(err, osfile.ErrMoved) {
		err = fmt.Errorf("%w: %w", ErrInUse, err)
	}
	return path, err
}

// Room returns how many bytes a new file may get, as far as is known.
func (f *Store) Room() int64 {
	n := room(int(f.file.Fd()))
	return n + min(f.size, math.MaxInt64-n) // what was there will be gone
}

// Use makes the file, which has header h, that of a cache. It releases the file if it fails.
func (f *Store) Use(h *Header) error {
	// The name must be on the disk before anything relies on the file. An error is ignored: at
	// worst, the cache starts empty after a crash of the machine.
	_ = osfile.SyncDir(f.file.Name())
	err := osfile.MakePrivate(f.osFile())
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

// begin makes the file an empty ring file with header h. It writes the head to the disk before the
// file grows, because a greater length may reach the disk before any other bytes do.
func (f *Store) begin(h *Header) error {
	if err := f.file.Truncate(0); err != nil {
		return err
	}
	f.size = 0
	keepInPlace(f.file)
	b := make([]byte, HeadSize)
	New(b, int(h.ChunkSize), nil).SetState(f.boot, false)
	h.Put(b)
	err := f.extend(HeadSize)
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
	return f.mapHead(h, HeadSize)
}

// mapHead maps the head of the file, which has that size.
func (f *Store) mapHead(h *Header, size int64) error {
	f.size = 0
	f.holes.init(f.file, h.ChunkSize, size)
	head, err := f.mapNext(HeadSize)
	if err == nil {
		f.Rings = New(head, int(h.ChunkSize), f.grow)
	}
	return err
}

// resume maps an existing file. It allocates disk space for holes in the parts in use, as in a copy
// made without zeros: a write to a hole is a signal if the disk is full by then. If the disk is
// full now, the file ends before the extent with the hole.
func (f *Store) resume(h *Header) error {
	size := f.size
	if err := f.mend(0, HeadSize); err != nil {
		return fmt.Errorf("%w: %w", ErrSpace, err)
	}
	if err := f.mapHead(h, size); err != nil {
		return err
	}
	f.Last = f.Rings.lastMark(f.boot)
	for {
		n, err := f.mendExtent(size)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		b, err := f.mapNext(n)
		if err != nil {
			return err
		}
		f.Rings.add(b)
		f.setAside(f.Rings.extents[len(f.Rings.extents)-1])
	}
	// The state on the disk must no longer say closed when the system begins to write pages back.
	f.Rings.SetState(f.boot, false)
	if err := f.flush(f.maps[:1]); err != nil {
		return err
	}
	return f.file.Truncate(f.size)
}

// mendExtent returns the length of the next extent of a file of the given size, or 0 if there is
// none: the process died while it was made, or the disk is full and there are holes in it. Chunks
// that are free become holes, and get disk space when they are used. The file is read without
// mapping it: on a tmpfs, even a read of mapped bytes fills holes.
func (f *Store) mendExtent(size int64) (n int64, err error) {
	if size-f.size < HeadSize {
		return 0, nil
	}
	b := make([]byte, HeadSize)
	if _, err := f.file.ReadAt(b, f.size); err != nil {
		return 0, err
	}
	count := chunksOf(b)
	directory, n := f.Rings.extentSizes(count)
	if count == 0 || n > size-f.size {
		return 0, nil
	}
	b = make([]byte, directory)
	if _, err := f.file.ReadAt(b, f.size); err != nil {
		return 0, err
	}
	if f.mend(f.size, directory) != nil {
		return 0, nil
	}
	used := func(i uint64) bool {
		_, ok := inUse(&words(b, int(count)+1)[i+1], int(i))
		return ok || !f.holes.possible
	}
	off, end := f.size+directory, f.size+n
	for i := uint64(0); i < count; {
		from, isUsed := i, used(i)
		for i < count && used(i) == isUsed {
			i++
		}
		n := int64(i-from) * int64(f.Rings.chunkSize)
		if i == count {
			n = end - off
		}
		if !isUsed {
			_ = punch(int(f.file.Fd()), off, n) // after an error, the part keeps its disk space
		} else if f.mend(off, n) != nil {
			return 0, nil
		}
		off += n
	}
	return n, nil
}

// setAside takes chunks that the disk cannot read away from their rings, for good: a read of their
// mapped bytes would be a signal. Free chunks are read as well, unless they are holes now.
func (f *Store) setAside(r extent) {
	isRead := func(i int) bool {
		_, ok := inUse(&r.directory[i], i)
		return ok || !f.holes.possible
	}
	size := f.Rings.chunkSize
	for i := range r.directory {
		if isRead(i) {
			_ = unix.Madvise(wholeOS(r.chunks, i*size, size), unix.MADV_WILLNEED)
		}
	}
	buf := make([]byte, size)
	for i := range r.directory {
		if !isRead(i) || prefault(wholeOS(r.chunks, i*size, size)) == nil {
			continue
		}
		if _, err := f.file.ReadAt(buf, f.offset(r.chunks[i*size:])); err != nil {
			r.directory[i].Store(withCheck(noRing<<slotBits, uint64(i)))
		}
	}
}

// wholeOS returns the n bytes of b from at on, and the rest of their pages; b begins with a page.
func wholeOS(b []byte, at, n int) []byte {
	page := unix.Getpagesize()
	end := at + n + (page - 1)
	return b[at/page*page : min(end/page*page, cap(b))]
}

// grow makes the file n bytes longer, and maps these bytes.
func (f *Store) grow(n int64) (b []byte, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil, os.ErrClosed
	}
	if err = f.extend(n); err == nil {
		b, err = f.mapNext(n)
	}
	if err != nil {
		_ = f.file.Truncate(f.size)
		return nil, fmt.Errorf("%w: %w", ErrSpace, err)
	}
	return b, nil
}

// extend makes the file n bytes longer, at once, and allocates disk space for them, so that a full
// disk is an error here and not a signal later.
func (f *Store) extend(n int64) error {
	// An attempt to make a file longer than the process may would raise a signal.
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_FSIZE, &limit) == nil && uint64(f.size+n) > uint64(limit.Cur) {
		return unix.EFBIG
	}
	if room(int(f.file.Fd())) < n {
		return unix.ENOSPC // otherwise, the disk would be filled first
	}
	if err := f.file.Truncate(f.size + n); err != nil {
		return err
	}
	return allocate(f.file, f.size, n)
}

// mapNext maps the n bytes of the file after those that are mapped.
func (f *Store) mapNext(n int64) ([]byte, error) {
	if int64(int(n)) != n {
		return nil, unix.ENOMEM
	}
	b, err := unix.Mmap(int(f.file.Fd()), f.size, int(n), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	f.size += n
	f.maps = append(f.maps, b)
	preventReadAhead(b)
	return b, nil
}

// preventReadAhead prevents read-ahead of mapped bytes, which would use large folios: if a folio
// covers a hole, a write to another of its pages fills the hole.
func preventReadAhead(b []byte) { _ = unix.Madvise(b, unix.MADV_RANDOM) }

// allocate allocates disk space for the n bytes of the file from off on, whose contents are not
// needed.
func allocate(file disk, off, n int64) error {
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
// share their space with another file. If the system cannot do that, blocks that may be holes are
// written. If the disk is full, all are: that succeeds where they have space of their own.
func (f *Store) mend(off, n int64) error {
	err := preallocate(int(f.file.Fd()), off, n)
	if err == nil {
		return nil
	}
	const smallest = 512 // bytes of a block: ext2 has blocks of 1,024
	isFull := !errors.Is(err, errors.ErrUnsupported)
	b, zeros := make([]byte, 4096), make([]byte, smallest)
	for end := off + n; off < end; off += int64(len(b)) {
		b = b[:min(int64(len(b)), end-off)]
		if _, err := f.file.ReadAt(b, off); err != nil {
			continue // it is no hole: see setAside
		}
		if isFull || bytes.Contains(b, zeros) {
			if _, err := f.file.WriteAt(b, off); err != nil {
				return err
			}
		}
	}
	return nil
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
// mark. If what belongs to the file is not sound, it is not marked. The addresses stay mapped, to
// other memory, because readers may still use them.
func (f *Store) Close(at Mark, isSound bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	name := f.file.Name()
	f.Rings.SetMark(at)
	err := f.flush(f.maps)
	if err == nil && isSound {
		f.Rings.SetState(f.boot, true)
		err = f.flush(f.maps[:1])
	}
	errs := []error{err}
	for _, b := range f.maps {
		errs = append(errs, hide(b, unix.PROT_READ|unix.PROT_WRITE))
	}
	if err = errors.Join(append(errs, f.end())...); err != nil {
		return fmt.Errorf("close ring file %s: %w", name, err)
	}
	return nil
}

// Release closes the file and unmaps the addresses. It must not be called as long as they can be
// reached.
func (f *Store) Release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.maps {
		_ = unix.Munmap(b)
	}
	f.maps = nil
	if f.file != nil {
		_ = f.end()
	}
}

// end closes the file, of which nothing is mapped any more.
func (f *Store) end() error {
	f.holes.forget()
	osfile.Unlock(f.osFile())
	err := f.file.Close()
	f.file = nil
	return err
}
