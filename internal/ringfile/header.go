package ringfile

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/ringcache/ringcache/internal/chunk"
)

// Version is the version of the format that this package reads and writes.
const Version = 1

const (
	magic      = "ringfile"
	headerSize = 128
	sumAt      = headerSize - 8
)

// Header describes the file. It is written once, when the file is made. Its numbers are
// little-endian, except nativeOrder.
type Header struct {
	Version   uint32
	ChunkSize uint32
	Buckets   uint32 // small buckets
	PosBits   uint32
	MaxBytes  int64
	Seed      [2]uint64 // the hash secret
	Program   uint64    // version of the entries, chosen by the program
}

// Errors of Open and ReadHeader.
var (
	ErrInUse   = errors.New("the file is in use")
	ErrSpace   = errors.New("no space for the file")
	ErrNew     = errors.New("the file is new")
	ErrForeign = errors.New("not a ring file")
	ErrOrder   = errors.New("the byte order is not that of this machine")
	ErrVersion = errors.New("the version is newer than this library's")
	ErrDamaged = errors.New("the header is damaged")
)

// nativeOrder is stored in the machine's byte order: a machine of the other one reads another
// number.
const nativeOrder = 0x01020304

// Put writes h to the head. The magic is written last: only with it, the file is a ring file.
func (h *Header) Put(head []byte) {
	le := binary.LittleEndian
	b := make([]byte, 0, headerSize)
	b = append(b, magic...)
	b = binary.NativeEndian.AppendUint32(b, nativeOrder)
	for _, n := range []uint32{Version, h.ChunkSize, h.Buckets, h.PosBits} {
		b = le.AppendUint32(b, n)
	}
	for _, n := range []uint64{uint64(h.MaxBytes), h.Seed[0], h.Seed[1], h.Program} {
		b = le.AppendUint64(b, n)
	}
	b = append(b, make([]byte, sumAt-len(b))...)
	b = le.AppendUint64(b, xxhash.Sum64(b))
	copy(head[len(magic):], b[len(magic):])
	copy(head, magic)
}

// isBlank reports whether a head is all zeros except for a state, as if it was allocated but no
// header was written.
func isBlank(head []byte) bool {
	return isZero(head[:stateAt]) && isZero(head[stateAt+wordSize:])
}

// isBegun reports whether b, which is shorter than a header, may be the beginning of one.
func isBegun(b []byte) bool {
	n := min(len(b), len(magic))
	return string(b[:n]) == magic[:n]
}

func isZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// ReadHeader reads the header of a file from its head. It returns ErrNew if the header was never
// finished.
func ReadHeader(head []byte) (h Header, err error) {
	le := binary.LittleEndian
	if string(head[:len(magic)]) == string(make([]byte, len(magic))) {
		return h, ErrNew
	}
	if string(head[:len(magic)]) != magic {
		return h, ErrForeign
	}
	if binary.NativeEndian.Uint32(head[8:]) != nativeOrder {
		return h, ErrOrder
	}
	if h.Version = le.Uint32(head[12:]); h.Version > Version {
		return h, fmt.Errorf("%w: %d, at most %d", ErrVersion, h.Version, Version)
	}
	if le.Uint64(head[sumAt:]) != xxhash.Sum64(head[:sumAt]) {
		return h, ErrDamaged
	}
	h.ChunkSize, h.Buckets = le.Uint32(head[16:]), le.Uint32(head[20:])
	h.PosBits = le.Uint32(head[24:])
	h.MaxBytes = int64(le.Uint64(head[28:]))
	h.Seed = [2]uint64{le.Uint64(head[36:]), le.Uint64(head[44:])}
	h.Program = le.Uint64(head[52:])
	if size := h.ChunkSize; size&(size-1) != 0 || size < 64 || size > chunk.MaxSize {
		return h, ErrDamaged
	}
	return h, nil
}
