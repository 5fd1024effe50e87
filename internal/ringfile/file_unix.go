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

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/osfile"
)

// The calls of the operating system: the file is opened, locked, extended and mapped.

// File is the open file of a cache.
type File struct {
	Rings     *Rings
	IsNew     bool       // the file had no contents, or none that can be used
	Discarded bool       // the file is new because its contents could not be used
	Last      clock.Mark // from which the clock of the file's expiries continues; zero: unknown
	boot      uint64
	made      bool   // by Open: unless a cache gets it, Release removes it
	path      string // without a link at its end, by Path

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

func (f *File) osFile() osfile.File { return f.file.(osfile.File) }

// Open opens the file at path, or creates it, and takes its lock. It returns the header of the
// file, which for a new file is fresh. boot identifies the present boot of the
// machine. Until Use is called, the file is unchanged; if it was created, Release removes it.
func Open(path string, boot uint64, fresh Header) (*File, Header, error) {
	_, missing := os.Stat(path)
	file, err := osfile.OpenOwn(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, Header{}, fmt.Errorf("open ring file: %w", err)
	}
	return open(file, boot, fresh, errors.Is(missing, os.ErrNotExist))
}

// open is Open for a file that is open already, and may have been made just now.
func open(file disk, boot uint64, fresh Header, made bool) (*File, Header, error) {
	f := &File{file: file, boot: boot, size: -1} // unknown without the lock
	h, err := f.read(fresh)
	f.made = made && f.size == 0
	if err != nil {
		f.Release()
		return nil, h, fmt.Errorf("open ring file %s: %w", file.Name(), err)
	}
	return f, h, nil
}

// read takes the file's lock and reads its header. It returns an error if another process has the
// lock, or if the contents are not those of a ring file. What a process or a machine that died may
// have left is nothing, or a head that is blank: the file grows only once its head is on the disk.
func (f *File) read(fresh Header) (h Header, err error) {
	if err := osfile.Lock(f.osFile()); err != nil {
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
	h, err = ReadHeader(head[:n])
	switch {
	case errors.Is(err, errBlank) && f.size > HeadSize:
		return h, osfile.ErrForeign
	case errors.Is(err, errBlank):
	case err != nil && !errors.Is(err, errDamaged):
		return h, err
	case err == nil && n == HeadSize && h.Program == fresh.Program &&
		New(head, int(h.ChunkSize), nil).IsSound(f.boot):
		return h, nil
	default:
		f.Discarded = true
	}
	f.IsNew = true
	return fresh, nil
}

// Path returns the absolute path of the file, without a link at its end.
func (f *File) Path() (path string, err error) {
	if f.path, err = osfile.Target(f.file.Name()); err == nil {
		err = f.InPlace()
	}
	return f.path, err
}

// InPlace returns an error if the file was removed from the path that Path has returned, whatever
// became of a link that led there.
func (f *File) InPlace() error { return osfile.At(f.osFile(), f.path) }

// Room returns how many bytes a new file may get, as far as is known.
func (f *File) Room() int64 {
	n := room(int(f.file.Fd()))
	return n + min(f.size, math.MaxInt64-n) // what was there will be gone
}

// Use makes the file, which has header h, that of a cache.
func (f *File) Use(h *Header) error {
	// The name must be on the disk before anything relies on the file. An error is ignored: at
	// worst, the cache starts empty after a crash of the machine.
	_ = osfile.SyncDir(f.file.Name())
	err := osfile.MakePrivate(f.osFile())
	switch {
	case err != nil:
		return err
	case f.IsNew:
		return f.begin(h)
	}
	return f.resume(h)
}

// begin makes the file an empty ring file with header h. It writes the head to the disk before the
// file grows, because a greater length may reach the disk before any other bytes do.
func (f *File) begin(h *Header) error {
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
		return err
	}
	return f.mapHead(h, HeadSize)
}

// mapHead maps the head of the file, which has that size.
func (f *File) mapHead(h *Header, size int64) error {
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
func (f *File) resume(h *Header) error {
	size := f.size
	if err := f.mend(0, HeadSize); err != nil {
		return err
	}
	if err := f.mapHead(h, size); err != nil {
		return err
	}
	f.Last = f.Rings.lastMark(f.boot)
	for {
		n, err := f.mendExtent(size)
		if err != nil && !IsNoSpace(err) {
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
		f.setAside(&f.Rings.extents[len(f.Rings.extents)-1])
	}
	// The state on the disk must no longer say closed when the system begins to write pages back.
	f.Rings.SetState(f.boot, false)
	if err := f.flush(f.maps[:1]); err != nil {
		return err
	}
	return f.file.Truncate(f.size)
}

// mendExtent returns the length of the next extent of a file of the given size, or 0 if there is
// none, since the process died while it was made. An error may say that there are holes in it, and
// no space for them. Chunks that are free become holes, and get disk space when they are used. The
// file is read without mapping it: on a tmpfs, even a read of mapped bytes fills holes.
func (f *File) mendExtent(size int64) (n int64, err error) {
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
	if err := f.mend(f.size, directory); err != nil {
		return 0, err
	}
	r := extent{directory: words(b, int(count)+1)[1:]}
	off, end := f.size+directory, f.size+n
	for i := 0; i < len(r.directory); {
		from, hasSpace := i, f.hasSpace(&r, i)
		for i < len(r.directory) && f.hasSpace(&r, i) == hasSpace {
			i++
		}
		n := int64(i-from) * int64(f.Rings.chunkSize)
		if i == len(r.directory) {
			n = end - off
		}
		if !hasSpace {
			_ = punch(int(f.file.Fd()), off, n) // after an error, the part keeps its disk space
		} else if err := f.mend(off, n); err != nil {
			return 0, err
		}
		off += n
	}
	return n, nil
}

// hasSpace reports whether chunk i of an extent keeps its disk space: a ring holds it, or the
// system makes no holes.
func (f *File) hasSpace(r *extent, i int) bool {
	_, ok := inUse(&r.directory[i], i)
	return ok || !f.holes.possible
}

// setAside takes chunks that the disk cannot read away from their rings, for good: a read of their
// mapped bytes would be a signal. Free chunks are read as well, unless they are holes now.
func (f *File) setAside(r *extent) {
	size := f.Rings.chunkSize
	for i := range r.directory {
		if f.hasSpace(r, i) {
			_ = unix.Madvise(wholeOS(r.chunks, i*size, size), unix.MADV_WILLNEED)
		}
	}
	buf := make([]byte, size)
	for i := range r.directory {
		if !f.hasSpace(r, i) || prefault(wholeOS(r.chunks, i*size, size)) == nil {
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
func (f *File) grow(n int64) (b []byte, err error) {
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
	}
	return b, err
}

// extend makes the file n bytes longer, at once, and allocates disk space for them, so that a full
// disk is an error here and not a signal later.
func (f *File) extend(n int64) error {
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
func (f *File) mapNext(n int64) ([]byte, error) {
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

// IsNoSpace reports whether an error says that there is no space for the file. After any other one,
// nothing that the file has may be given up.
func IsNoSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}

// allocate allocates disk space for the n bytes of the file from off on, whose contents are not
// needed.
func allocate(file disk, off, n int64) error {
	err := preallocate(int(file.Fd()), off, n)
	if err == nil || IsNoSpace(err) {
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
func (f *File) mend(off, n int64) error {
	err := preallocate(int(f.file.Fd()), off, n)
	if err == nil {
		return nil
	}
	const smallest = 512 // bytes of a block: ext2 has blocks of 1,024
	isFull := IsNoSpace(err)
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
func (f *File) flush(maps [][]byte) error {
	var errs []error
	for _, b := range maps {
		errs = append(errs, unix.Msync(b, unix.MS_SYNC))
	}
	return errors.Join(append(errs, f.file.Sync())...)
}

// Close writes the file to the disk, then marks it as closed if clean is true, and closes it: clean
// is false if a companion file is out of date. at is the clock's mark. The addresses stay mapped,
// to other memory, because readers may still use them.
func (f *File) Close(at clock.Mark, clean bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	name := f.file.Name()
	f.Rings.SetMark(at)
	err := f.flush(f.maps)
	if err == nil && clean {
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
func (f *File) Release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.maps {
		_ = unix.Munmap(b)
	}
	f.maps = nil
	if f.file != nil {
		if path, err := f.Path(); err == nil && f.made && f.Rings == nil {
			_ = os.Remove(path)
		}
		_ = f.end()
	}
}

// end closes the file, of which nothing is mapped any more.
func (f *File) end() error {
	f.holes.forget()
	osfile.Unlock(f.osFile())
	err := f.file.Close()
	f.file = nil
	return err
}
