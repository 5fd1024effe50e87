// Package dictfile reads and writes the file of the dictionaries that values of a ring file are
// compressed with. The file is replaced as a whole, before the first value is compressed with a new
// dictionary.
//
//	"ringdict" | version, 1 byte | length of the compressor's ID, 1 byte | ID
//	for each dictionary: its number, 1 byte | length, 4 bytes | bytes
//	XXH64 of all that, 8 bytes
//
// Numbers are little-endian.
package dictfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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
	ErrDamaged = errors.New("damaged file of dictionaries")
	ErrVersion = errors.New("file of dictionaries of a newer version")
)

// Dict is a dictionary with its number.
type Dict struct {
	Number uint8
	Bytes  []byte
}

// format returns the bytes of a file.
func format(id string, dicts []Dict) []byte {
	b := []byte(magic)
	b = append(b, version, byte(len(id)))
	b = append(b, id...)
	for _, d := range dicts {
		b = append(b, d.Number)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(d.Bytes)))
		b = append(b, d.Bytes...)
	}
	return appendSum(b)
}

// appendSum appends the checksum of b.
func appendSum(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
}

// parse decodes the bytes of a file. The dictionaries that it returns are parts of b.
func parse(b []byte) (id string, dicts []Dict, err error) {
	const head = len(magic) + 2
	n := len(b) - sumSize
	if !bytes.HasPrefix(b, []byte(magic)) {
		return "", nil, ErrForeign
	}
	if n < head || binary.LittleEndian.Uint64(b[n:]) != xxhash.Sum64(b[:n]) {
		return "", nil, ErrDamaged
	}
	if v := b[len(magic)]; v != version {
		return "", nil, fmt.Errorf("%w: %d, at most %d", ErrVersion, v, version)
	}
	idLen := int(b[len(magic)+1])
	if b = b[head:n]; len(b) < idLen {
		return "", nil, ErrDamaged
	}
	id, b = string(b[:idLen]), b[idLen:]
	for len(b) > 0 {
		const before = 1 + 4
		if len(b) < before || uint64(binary.LittleEndian.Uint32(b[1:])) > uint64(len(b)-before) {
			return "", nil, ErrDamaged
		}
		end := before + int(binary.LittleEndian.Uint32(b[1:]))
		dicts = append(dicts, Dict{Number: b[0], Bytes: b[before:end:end]})
		b = b[end:]
	}
	return id, dicts, nil
}

// Write replaces the file at path, or creates it.
func Write(path, id string, dicts []Dict) error {
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

// Read reads the file at path. The error is ErrDamaged for a damaged file of dictionaries, which
// may be replaced, and ErrForeign for a file of another kind.
func Read(path string) (id string, dicts []Dict, err error) {
	f, err := osfile.OpenOwn(path, os.O_RDONLY)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if err != nil {
		return "", nil, err
	}
	if len(b) > mostBytes { // parse reports it as damaged
		b = b[:mostBytes]
	}
	if id, dicts, err = parse(b); err == nil {
		err = osfile.MakePrivate(f)
	}
	return id, dicts, err
}
