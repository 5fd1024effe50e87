// Package dictfile reads and writes the file of the dictionaries that values of a ring file are
// compressed with. The file is replaced as a whole, before the first value is compressed with a new
// dictionary.
//
//	"ringdict" | version, 1 byte | compressor's ID | dictionaries | XXH64 of all that, 8 bytes
//
// The ID and each dictionary are preceded by their length, a varint. There is one for each number
// from 1 on; an empty one is none. The checksum is little-endian.
package dictfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/cespare/xxhash/v2"

	"github.com/ringcache/ringcache/internal/atomicfile"
	"github.com/ringcache/ringcache/internal/osfile"
)

const (
	magic   = "ringdict"
	version = 1
	sumSize = 8

	// MostID is the length of the longest ID.
	MostID = 64

	mostBytes = 64 << 20 // of a file that is read
)

// Errors of Read.
var (
	ErrForeign = errors.New("not a file of dictionaries")
	ErrVersion = errors.New("file of dictionaries of a newer version")

	errDamaged = errors.New("damaged file of dictionaries")
)

// format returns the bytes of a file.
func format(id string, dicts []string) []byte {
	b := append([]byte(magic), version)
	for _, part := range append([]string{id}, dicts...) {
		b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
	}
	return appendSum(b)
}

// appendSum appends the checksum of b.
func appendSum(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
}

// parse decodes the bytes of a file.
func parse(b []byte) (id string, dicts []string, err error) {
	const head = len(magic) + 1
	n := len(b) - sumSize
	if len(b) < head || !bytes.HasPrefix(b, []byte(magic)) {
		return "", nil, ErrForeign
	}
	if v := b[len(magic)]; v > version {
		return "", nil, fmt.Errorf("%w: %d, at most %d", ErrVersion, v, version)
	} else if n < head || v < version || binary.LittleEndian.Uint64(b[n:]) != xxhash.Sum64(b[:n]) {
		return "", nil, errDamaged
	}
	var parts []string
	for b = b[head:n]; len(b) > 0; {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return "", nil, errDamaged
		}
		parts = append(parts, string(b[n:][:size]))
		b = b[n+int(size):]
	}
	if len(parts) == 0 {
		return "", nil, errDamaged
	}
	return parts[0], parts[1:], nil
}

// Write replaces the file at path, or creates it. A file of another kind that has come there since
// it was read stays.
func Write(path, id string, dicts []string) error {
	if _, _, err := Read(path, id); err != nil {
		return err
	}
	f, err := atomicfile.Create(path)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(format(id, dicts)); err != nil {
		return err
	}
	return f.Commit()
}

// Read returns the dictionaries of the Compressor with that ID. ok is false if the file at path is
// missing, damaged, or another Compressor's; it may be replaced. The error is ErrForeign for a file
// of another kind.
func Read(path, id string) (dicts []string, ok bool, err error) {
	f, err := osfile.OpenOwn(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostBytes))
	if err != nil {
		return nil, false, err
	}
	whose, dicts, err := parse(b)
	if errors.Is(err, errDamaged) {
		return nil, false, nil
	}
	if err == nil {
		err = osfile.MakePrivate(f)
	}
	return dicts, err == nil && whose == id, err
}
