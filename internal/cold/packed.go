package cold

import (
	"encoding/binary"
	"errors"

	"github.com/cespare/xxhash/v2"
)

// The value of a packed record is
//
//	byte 0: number of the dictionary
//	byte 1 to 4: check of the value as it was set, little endian
//	then the length of the value as it was set, a varint, and its compressed form
//
// Because of the check, a damaged record, a lost dictionary or a Compressor that returns other
// bytes leads to a miss.

const (
	// Dicts is the number of dictionaries that there can be at a time, including number 0, which
	// stands for no dictionary.
	Dicts = 16

	// MostPrefix is the length of the longest prefix, the part before the compressed bytes, in bytes.
	MostPrefix = lengthAt + binary.MaxVarintLen64

	checkAt  = 1
	lengthAt = 5
)

// ErrDamaged tells that bytes are not a valid packed value.
var ErrDamaged = errors.New("a packed value is damaged")

// check returns a check of a value.
func check(v []byte) uint32 { return uint32(xxhash.Sum64(v) >> 32) }

// appendPrefix appends the prefix for value v, compressed with that dictionary, to b.
func appendPrefix(b []byte, dict uint8, v []byte) []byte {
	b = append(b, dict)
	b = binary.LittleEndian.AppendUint32(b, check(v))
	return binary.AppendUvarint(b, uint64(len(v)))
}

// packed is a packed value.
type packed struct {
	dict       uint8
	check      uint32 // of the value as it was set
	size       int    // its length
	compressed []byte
}

// parse splits a packed value. One that would be longer than most bytes counts as damaged.
func parse(b []byte, most int64) (p packed, err error) {
	if len(b) < lengthAt {
		return p, ErrDamaged
	}
	size, n := binary.Uvarint(b[lengthAt:])
	if n <= 0 || size > uint64(most) || b[0] >= Dicts {
		return p, ErrDamaged
	}
	check := binary.LittleEndian.Uint32(b[checkAt:])
	return packed{b[0], check, int(size), b[lengthAt+n:]}, nil
}
