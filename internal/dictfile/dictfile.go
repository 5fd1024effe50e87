// Package dictfile is the file of the dictionaries that values of a ring file were
// compressed with. It is written as a whole, before the first value is compressed with
// a new one.
//
//	"ringdict" | version, 1 byte | length of the compressor's ID, 1 byte | ID
//	for each dictionary: its number, 1 byte | length, 4 bytes | bytes
//	XXH64 of all that, 8 bytes
//
// Numbers are little-endian.
package dictfile

import (
	"encoding/binary"
	"errors"
	"os"

	"github.com/cespare/xxhash/v2"

	"github.com/ringcache/ringcache/internal/atomicfile"
)

const (
	magic   = "ringdict"
	version = 1
	sumSize = 8

	// MostID is the length of the longest ID.
	MostID = 64

	mostBytes = 64 << 20 // of a file that is read
)

// ErrDamaged tells that a file is none of dictionaries, or is damaged.
var ErrDamaged = errors.New("not a file of dictionaries, or damaged")

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

// parse returns what is in the file's bytes, which the dictionaries are parts of.
func parse(b []byte) (id string, dicts []Dict, err error) {
	const head = len(magic) + 2
	n := len(b) - sumSize
	if n < head || string(b[:len(magic)]) != magic || b[len(magic)] != version ||
		binary.LittleEndian.Uint64(b[n:]) != xxhash.Sum64(b[:n]) {
		return "", nil, ErrDamaged
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

// Write puts a file in the place of the one at path.
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

// Read reads the file at path.
func Read(path string) (id string, dicts []Dict, err error) {
	if info, err := os.Stat(path); err == nil && info.Size() > mostBytes {
		return "", nil, ErrDamaged
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", nil, err
	}
	return parse(b)
}
