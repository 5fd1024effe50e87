// Package pack is what a cache knows of compressed values: their form in a record, which
// values are worth a try, and what compression brings. It compresses nothing itself.
//
// The value of a packed record is
//
//	byte 0: number of the dictionary
//	byte 1 to 4: check of the value as it was set, little endian
//	then the length of the value as it was set, a varint, and its compressed form
//
// The check is what makes a damaged record, a lost dictionary and a Compressor that
// returns other bytes a miss.
package pack

import (
	"encoding/binary"
	"errors"

	"github.com/cespare/xxhash/v2"
)

const (
	// Dicts is how many dictionaries there can be at a time, number 0 among them: none.
	Dicts = 16

	// MostPrefix is how many bytes a prefix has at most.
	MostPrefix = lengthAt + binary.MaxVarintLen64

	checkAt  = 1
	lengthAt = 5
)

// ErrDamaged tells that a packed value is none.
var ErrDamaged = errors.New("a packed value is damaged")

// Prefix is what stands before the compressed form of a value.
type Prefix struct {
	Dict  uint8
	Check uint32 // of the value as it was set
	Size  int    // its length
}

// PrefixOf returns the prefix of value v, that a dictionary was used for.
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

// Parse returns the prefix of a packed value of a cache whose longest value has most
// bytes, and its compressed form.
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

// Is reports whether v is the value that p stands for.
func (p Prefix) Is(v []byte) bool { return len(v) == p.Size && check(v) == p.Check }
