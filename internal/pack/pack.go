// Package pack defines the form of compressed values in a record, and decides which values are
// worth compressing and how much memory compression is worth. It compresses nothing itself.
//
// The value of a packed record is
//
//	byte 0: number of the dictionary
//	byte 1 to 4: check of the value as it was set, little endian
//	then the length of the value as it was set, a varint, and its compressed form
//
// Because of the check, a damaged record, a lost dictionary or a Compressor that returns other
// bytes leads to a miss.
package pack

import (
	"encoding/binary"
	"errors"

	"github.com/cespare/xxhash/v2"
)

const (
	// Dicts is the number of dictionaries that there can be at a time, including number 0, which
	// stands for no dictionary.
	Dicts = 16

	// MostPrefix is the length of the longest prefix in bytes.
	MostPrefix = lengthAt + binary.MaxVarintLen64

	checkAt  = 1
	lengthAt = 5
)

// ErrDamaged tells that bytes are not a valid packed value.
var ErrDamaged = errors.New("a packed value is damaged")

// Prefix is the part of a packed value before the compressed bytes.
type Prefix struct {
	Dict  uint8
	Check uint32 // of the value as it was set
	Size  int    // its length
}

// PrefixOf returns the prefix for value v and the dictionary that it is compressed with.
func PrefixOf(dict uint8, v []byte) Prefix {
	return Prefix{Dict: dict, Check: check(v), Size: len(v)}
}

// check returns a check of a value.
func check(v []byte) uint32 { return uint32(xxhash.Sum64(v) >> 32) }

// Append appends p to b.
func (p Prefix) Append(b []byte) []byte {
	b = append(b, p.Dict)
	b = binary.LittleEndian.AppendUint32(b, p.Check)
	return binary.AppendUvarint(b, uint64(p.Size))
}

// Parse splits a packed value into its prefix and the compressed bytes. A value that would be
// longer than most bytes counts as damaged.
func Parse(b []byte, most int) (p Prefix, compressed []byte, err error) {
	if len(b) < lengthAt {
		return p, nil, ErrDamaged
	}
	size, n := binary.Uvarint(b[lengthAt:])
	if n <= 0 || size > uint64(most) || b[0] >= Dicts {
		return p, nil, ErrDamaged
	}
	p = Prefix{Dict: b[0], Check: binary.LittleEndian.Uint32(b[checkAt:]), Size: int(size)}
	return p, b[lengthAt+n:], nil
}

// Is reports whether v has the length and the check of p.
func (p Prefix) Is(v []byte) bool { return len(v) == p.Size && check(v) == p.Check }
