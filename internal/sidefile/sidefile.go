// Package sidefile stores a small map next to a ring file. Keys are byte strings, and values are
// words other than 0.
//
//	magic, 8 bytes | version, 1 byte | 55 bytes, zero | records
//	record: word, 8 bytes | length of the key, 4 bytes | checksum, 4 bytes | key | zeros
//
// Numbers are little-endian. The checksum is the low half of the key's XXH64. A record whose word
// is 0 is free for another key that needs the same space. Records are aligned to 64 bytes, so that
// no page boundary divides a word or the head of a record, and a process that is killed has written
// it or not. The key is written before the head, and behind the last record there are zeros.
//
// A crash of the machine may leave anything. The ring file is discarded then, and so are the
// records of this one.
package sidefile

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/ringcache/ringcache/internal/osfile"
)

const (
	version    = 1
	align      = 64
	headSize   = align
	recordHead = 16
)

// Errors of changes after Close, and of changes that leave an old word in the file.
var (
	ErrClosed = errors.New("the file is closed")
	ErrStale  = errors.New("the file may have an old word")
)

// File is the file of one cache. All methods are safe for concurrent use. A nil File keeps nothing.
type File struct {
	path, magic string
	rings       func() error // an error if the ring file is no longer in its place

	mu      sync.Mutex
	file    *os.File // nil before there are records
	records map[string]record
	free    map[int64][]int64 // where records of each size are free
	end     int64             // of the last record
	closed  bool
}

// record is what the file has of a key, or is to have.
type record struct {
	at     int64 // where it is; 0: not in the file
	word   uint64
	unsent bool // its last change could not be written
}

// Open opens the file at path, which begins with the 8 bytes of magic. The file need not be there:
// it is made with the first record, unless rings returns an error: the ring file is no longer in
// its place. One that is blank, as a crash may leave it, has no records. If another cache has the
// file open, as after the ring file was replaced, the error is osfile.ErrLocked. After an error the
// file is as it was.
func Open(path, magic string, rings func() error) (*File, error) {
	f := &File{path: path, magic: magic, rings: rings}
	f.forget()
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = f.open(0, f.parse)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return f, nil
}

// open opens the file, locks and reads it, and makes it that of f. (The lock also tells
// systemd-tmpfiles not to remove an old file in /tmp.)
func (f *File) open(flag int, read func(io.Reader) error) error {
	file, err := osfile.OpenOwn(f.path, os.O_RDWR|flag)
	if err != nil {
		return err
	}
	if err = osfile.Lock(file); err == nil {
		err = read(file)
	}
	if err == nil {
		err = osfile.MakePrivate(file)
	}
	if err != nil {
		osfile.Unlock(file)
		return errors.Join(err, file.Close())
	}
	f.file = file
	return nil
}

// forget makes f a file without records.
func (f *File) forget() {
	f.records, f.free, f.end = map[string]record{}, map[int64][]int64{}, headSize
}

// parse reads a file up to its last record, and not what may lie behind that: a file of zeros takes
// no memory.
func (f *File) parse(from io.Reader) (err error) {
	r := bufio.NewReader(from)
	next := func(n int64) []byte {
		var b bytes.Buffer // grows with what there is
		if err == nil {
			_, err = io.CopyN(&b, r, n)
		}
		return b.Bytes()
	}
	head := next(headSize)
	switch isBlank := len(bytes.Trim(head, "\x00")) == 0; {
	case err != nil && err != io.EOF:
		return err
	case isBlank, err == io.EOF && bytes.HasPrefix(f.head(), head):
		return nil
	case err == io.EOF, !bytes.HasPrefix(head, []byte(f.magic)):
		return osfile.ErrForeign
	case head[len(f.magic)] != version:
		return fmt.Errorf("%w: %d, at most %d", osfile.ErrVersion, head[len(f.magic)], version)
	}
	for {
		head := next(recordHead)
		if err != nil || len(bytes.Trim(head, "\x00")) == 0 {
			break
		}
		n := int64(binary.LittleEndian.Uint32(head[8:]))
		key := next(sizeOf(n) - recordHead)
		if err != nil {
			break
		}
		key = key[:n]
		word := binary.LittleEndian.Uint64(head)
		if word != 0 && sum(key) == binary.LittleEndian.Uint32(head[12:]) {
			f.records[string(key)] = record{at: f.end, word: word}
		} else {
			f.free[sizeOf(n)] = append(f.free[sizeOf(n)], f.end)
		}
		f.end += sizeOf(n)
	}
	if err == io.EOF { // also within a record: a process was killed while it wrote
		return nil
	}
	return err
}

// isFree returns an error if a file is not empty: another one that has come to the path, such as
// with a directory that was moved, stays. An empty one is left by a call of add that failed. If the
// ring file is gone by now, this is the place of a new cache's file.
func (f *File) isFree(file io.Reader) error {
	if _, err := file.Read(make([]byte, 1)); err != io.EOF {
		return cmp.Or(err, fs.ErrExist)
	}
	return f.rings()
}

// head returns the head of the file.
func (f *File) head() []byte {
	return append(append(make([]byte, 0, headSize), f.magic...), version)[:headSize]
}

// sizeOf returns the size of the record of a key of n bytes.
func sizeOf(n int64) int64 { return (recordHead + n + align - 1) &^ (align - 1) }

func sum(key []byte) uint32 { return uint32(xxhash.Sum64(key)) }

// IsMissing reports whether there is no file.
func (f *File) IsMissing() bool { return f.file == nil }

// Words returns the words by key.
func (f *File) Words() map[string]uint64 {
	words := map[string]uint64{}
	for key, r := range f.records {
		words[key] = r.word
	}
	return words
}

// Set gives a key a word; 0 removes the key. A process that opens the file finds that, even if this
// process is killed; only a crash of the machine needs Close. After ErrStale it may find the old
// word, after another error no word, until Close, which tries again, unless the key was removed. To
// change or remove a word takes no space on the disk.
func (f *File) Set(key string, word uint64) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	return f.write(key, record{at: f.records[key].at, word: word})
}

// write writes a record, or at least notes it.
func (f *File) write(key string, r record) (err error) {
	if r.at != 0 {
		_, err = f.file.WriteAt(binary.LittleEndian.AppendUint64(nil, r.word), r.at)
		err = stale(err)
	} else if r.word != 0 {
		r.at, err = f.add(key, r.word)
	}
	r.unsent = err != nil
	f.records[key] = r
	if r.word == 0 && err == nil {
		delete(f.records, key)
		if size := sizeOf(int64(len(key))); r.at != 0 {
			f.free[size] = append(f.free[size], r.at)
		}
	}
	return err
}

// stale returns err, if there is one, as ErrStale.
func stale(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrStale, err)
	}
	return err
}

// add adds a record to the file, and returns where.
func (f *File) add(key string, word uint64) (at int64, err error) {
	if f.file == nil {
		// Nobody chose this name: a link there is another's, and must not make a file elsewhere.
		if err = f.rings(); err == nil { // else an empty file would be left
			err = f.open(os.O_CREATE|osfile.NoFollow, f.isFree)
			_ = osfile.SyncDir(f.path) // without its name, a crash leaves no file, and so no keys
		}
		if err != nil {
			return 0, err
		}
	}
	size := sizeOf(int64(len(key)))
	b := make([]byte, size+recordHead) // with the next head, which is none
	binary.LittleEndian.PutUint64(b, word)
	binary.LittleEndian.PutUint32(b[8:], uint32(len(key)))
	binary.LittleEndian.PutUint32(b[12:], sum([]byte(key)))
	copy(b[recordHead:], key)
	free := f.free[size]
	if at = f.end; len(free) > 0 {
		at, b = free[len(free)-1], b[:size]
	} else if at == headSize {
		_, err = f.file.WriteAt(f.head(), 0)
	}
	if err == nil {
		_, err = f.file.WriteAt(b[recordHead:], at+recordHead)
	}
	if err == nil {
		_, err = f.file.WriteAt(b[:recordHead], at)
	}
	switch {
	case err != nil:
		return 0, err
	case len(free) > 0:
		f.free[size] = free[:len(free)-1]
	default:
		f.end += size
	}
	return at, nil
}

// Clear removes all records.
func (f *File) Clear() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	f.forget()
	return f.file.Truncate(0)
}

// Close writes the file to the disk, with the changes that could not be written before. After an
// error other than ErrStale, the words in the file are right, and only new keys are missing. Later
// changes return ErrClosed. A second Close does nothing.
func (f *File) Close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	var errs []error
	for key, r := range f.records {
		if r.unsent {
			errs = append(errs, f.write(key, r))
		}
	}
	if f.file != nil {
		err := f.file.Sync()
		osfile.Unlock(f.file)
		errs = append(errs, stale(errors.Join(err, f.file.Close())))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	return nil
}
