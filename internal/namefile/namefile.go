// Package namefile keeps the file of the namespaces of a ring file: their names and generations.
//
//	"ringname" | version, 1 byte | 7 bytes, zero | salt, 8 bytes | records
//	record: generation, 8 bytes | length of the name, 4 bytes | checksum, 4 bytes | name | zeros
//
// All numbers are little-endian. The checksum is the low half of the XXH64 of salt and name: bytes
// that a killed process has left behind the last record, and a name that looks like a record, are
// none. Records are aligned to 8 bytes, so that a generation is overwritten in place, in a single
// write of a word that no page boundary divides: a reset takes no space on the disk. Generation 0
// is that of a dropped namespace.
package namefile

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/ringcache/ringcache/internal/atomicfile"
	"github.com/ringcache/ringcache/internal/osfile"
)

const (
	magic    = "ringname"
	version  = 1
	saltAt   = 16
	headSize = 24

	recordHead = 16
	align      = 8
)

// Errors of Open, and of changes after Close.
var (
	ErrForeign = errors.New("not a file of namespaces")
	ErrVersion = errors.New("file of namespaces of a newer version")
	ErrClosed  = errors.New("file of namespaces is closed")
)

// File is the file of one cache. All methods are safe for concurrent use.
type File struct {
	path string

	mu      sync.Mutex
	file    *os.File // nil before there are namespaces
	head    [headSize]byte
	slots   map[string]slot
	end     int64 // of the last record
	dropped int   // records of dropped namespaces
	behind  bool  // a change could not be written
	closed  bool
}

// slot is a namespace.
type slot struct {
	at         int64 // where its record is; 0: not in the file
	generation uint64
}

// Open reads the file at path, and returns the generations by name. The file need not be there; it
// is made with the first namespace. After an error the file is as it was.
func Open(path string) (*File, map[string]uint64, error) {
	f := &File{path: path, slots: map[string]slot{}}
	file, err := osfile.OpenOwn(path, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		if _, is := os.Lstat(path); is != nil { // else it is a link that leads nowhere
			return f, nil, nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if err = f.parse(file); err == nil {
		err = osfile.MakePrivate(file)
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	_ = osfile.Lock(file) // systemd-tmpfiles removes old files in /tmp that are not locked
	f.file = file
	known := make(map[string]uint64, len(f.slots))
	for name, s := range f.slots {
		known[name] = s.generation
	}
	return f, known, nil
}

// parse reads a file up to its last whole record, and not what may lie behind that: a file of zeros
// takes no memory.
func (f *File) parse(from io.Reader) error {
	r := bufio.NewReader(from)
	switch _, err := io.ReadFull(r, f.head[:]); {
	case isEnd(err) || err == nil && !bytes.HasPrefix(f.head[:], []byte(magic)):
		return ErrForeign
	case err != nil:
		return err
	}
	if v := f.head[len(magic)]; v != version {
		return fmt.Errorf("%w: %d, at most %d", ErrVersion, v, version)
	}
	for f.end = headSize; ; {
		var head [recordHead]byte
		_, err := io.ReadFull(r, head[:])
		n := int64(binary.LittleEndian.Uint32(head[8:]))
		var rec bytes.Buffer // grows with what there is
		if err == nil {
			_, err = io.CopyN(&rec, r, sizeOf(n)-recordHead)
		}
		switch {
		case isEnd(err):
			return nil // a process was killed while it wrote
		case err != nil:
			return err
		case f.sum(rec.Bytes()[:n]) != binary.LittleEndian.Uint32(head[12:]):
			return nil
		}
		if g := binary.LittleEndian.Uint64(head[:]); g != 0 {
			f.slots[string(rec.Bytes()[:n])] = slot{f.end, g}
		} else {
			f.dropped++
		}
		f.end += sizeOf(n)
	}
}

func isEnd(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF }

// sizeOf returns the size of the record of a name of n bytes.
func sizeOf(n int64) int64 { return recordHead + (n+align-1)&^(align-1) }

func (f *File) sum(name []byte) uint32 {
	var d xxhash.Digest
	d.Reset()
	_, _ = d.Write(f.head[saltAt:])
	_, _ = d.Write(name)
	return uint32(d.Sum64())
}

// appendRecord appends the record of a namespace to b.
func (f *File) appendRecord(b []byte, name string, g uint64) []byte {
	b = binary.LittleEndian.AppendUint64(b, g)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(name)))
	b = binary.LittleEndian.AppendUint32(b, f.sum([]byte(name)))
	b = append(b, name...)
	return append(b, make([]byte, sizeOf(int64(len(name)))-recordHead-int64(len(name)))...)
}

// Set gives a namespace a generation, a new one or another one. A process that opens the file finds
// that generation, even if this process is killed; only a crash of the machine needs Close. After
// an error it may find the old one, until Close. Without room for a new name it finds none until
// then.
func (f *File) Set(name string, g uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	at := f.slots[name].at
	f.slots[name] = slot{at, g}
	if at != 0 {
		return f.overwrite(at, g)
	}
	f.add(name, g)
	return nil
}

// Drop removes a namespace. After an error the file may have it until Close.
func (f *File) Drop(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	old := f.slots[name]
	delete(f.slots, name)
	if old.at == 0 {
		return nil
	}
	f.dropped++
	return f.overwrite(old.at, 0)
}

// overwrite changes the generation of a record.
func (f *File) overwrite(at int64, g uint64) error {
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], g)
	_, err := f.file.WriteAt(word[:], at)
	f.behind = f.behind || err != nil
	return err
}

// add adds a record to the file, or makes one.
func (f *File) add(name string, g uint64) {
	if f.file == nil || f.dropped > 16+len(f.slots) {
		err := f.replace()
		if f.file == nil || f.slots[name].at != 0 {
			f.behind = err != nil
			return
		}
		f.dropped = 0 // not again for a while
	}
	rec := f.appendRecord(nil, name, g)
	if _, err := f.file.WriteAt(rec, f.end); err != nil {
		f.behind = true
		return
	}
	f.slots[name] = slot{f.end, g}
	f.end += int64(len(rec))
}

// replace writes a new file, without what was dropped. After an error of the last step, syncing the
// directory, the new file is in use.
func (f *File) replace() error {
	b := append([]byte(magic), version)
	b = append(b, make([]byte, headSize-len(b))...)
	_, _ = rand.Read(b[saltAt:]) // never fails
	before := f.head
	copy(f.head[:], b)
	slots := make(map[string]slot, len(f.slots))
	for name, s := range f.slots {
		slots[name] = slot{int64(len(b)), s.generation}
		b = f.appendRecord(b, name, s.generation)
	}
	file, err := f.write(b)
	if file == nil {
		f.head = before
		return err
	}
	if f.file != nil {
		f.file.Close()
	}
	f.file, f.slots, f.end, f.dropped, f.behind = file, slots, int64(len(b)), 0, err != nil
	return err
}

// write replaces the file that f has open, or makes the first one, and opens it. Another file at
// its path, such as one that came with a directory that was moved, stays.
func (f *File) write(b []byte) (*os.File, error) {
	path, err := osfile.Target(f.path)
	if f.file != nil && err == nil {
		err = osfile.At(f.file, path)
	} else if _, is := os.Lstat(path); is == nil && err == nil {
		err = &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	if err != nil {
		return nil, err
	}
	made, err := atomicfile.Create(path)
	if err != nil {
		return nil, err
	}
	defer made.Discard()
	if _, err := made.Write(b); err != nil {
		return nil, err
	}
	file, err := osfile.OpenOwn(made.Name(), os.O_RDWR)
	if err != nil {
		return nil, err
	}
	if err = made.Commit(); err != nil && osfile.At(file, path) != nil {
		file.Close()
		return nil, err
	}
	_ = osfile.Lock(file)
	return file, err
}

// Close writes the file to the disk, with the changes that could not be written before. Later
// changes return ErrClosed. A second Close does nothing.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	var errs []error
	if f.behind {
		errs = append(errs, f.replace())
	}
	if f.file != nil {
		errs = append(errs, f.file.Sync(), f.file.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("write namespaces %s: %w", f.path, err)
	}
	return nil
}
