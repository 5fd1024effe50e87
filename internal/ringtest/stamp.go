package ringtest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Stamp identifies a test value: its key, the write of that key that made it, and its length.
// All bytes of the value follow from the stamp, so a mixture of two values is recognised.
type Stamp struct {
	ID      uint32
	Version uint64
	Size    int
}

// Values of at least stampSize bytes begin with their stamp. Those of at least SelfSize bytes also
// have 8 bytes of filler behind it, so ReadStamp can check them without knowing what was written.
// Shorter values are the first bytes of the filler.
const (
	stampSize = 16
	SelfSize  = stampSize + 8
)

// String describes the stamp.
func (s Stamp) String() string {
	return fmt.Sprintf("key %d version %d, %d bytes", s.ID, s.Version, s.Size)
}

// Value returns the bytes of s in buf, which is grown when it is too small.
func (s Stamp) Value(buf []byte) []byte { return s.filled(buf, s.mask()) }

// filled is Value with the filler masked by mask.
func (s Stamp) filled(buf []byte, mask uint64) []byte {
	b := slices.Grow(buf[:0], s.Size)[:s.Size]
	rest := b
	if s.Size >= stampSize {
		binary.LittleEndian.PutUint64(b, s.Version)
		binary.LittleEndian.PutUint32(b[8:], s.ID)
		binary.LittleEndian.PutUint32(b[12:], uint32(s.Size))
		rest = b[stampSize:]
	}
	x := s.filler()
	for ; len(rest) >= 8; rest = rest[8:] {
		binary.LittleEndian.PutUint64(rest, x&mask)
		x += fillerStep
	}
	for i := range rest {
		rest[i] = byte(x >> (8 * i))
	}
	return b
}

// Wrote reports whether b is exactly the value of s.
func (s Stamp) Wrote(b []byte) bool {
	if len(b) != s.Size {
		return false
	}
	if s.Size >= stampSize {
		if binary.LittleEndian.Uint64(b) != s.Version ||
			binary.LittleEndian.Uint32(b[8:]) != s.ID ||
			binary.LittleEndian.Uint32(b[12:]) != uint32(s.Size) {
			return false
		}
		b = b[stampSize:]
	}
	x := s.filler()
	for ; len(b) >= 8; b = b[8:] {
		if binary.LittleEndian.Uint64(b) != x&s.mask() {
			return false
		}
		x += fillerStep
	}
	for i := range b {
		if b[i] != byte(x>>(8*i)) {
			return false
		}
	}
	return true
}

const fillerStep = 0x9e3779b97f4a7c15

// mask returns the bits of the filler that are used. Long values do not use all of them, so that
// they can be compressed.
func (s Stamp) mask() uint64 {
	if s.Size < 64 {
		return math.MaxUint64
	}
	return 0x0f0f0f0f0f0f0f0f
}

// filler returns the first word of the filler.
func (s Stamp) filler() uint64 {
	x := s.Version*0xbf58476d1ce4e5b9 ^ (uint64(s.ID)<<32|uint64(s.Size))*0x94d049bb133111eb
	return x ^ x>>29
}

// ReadStamp returns the stamp at the beginning of the value b, or an error if b is not the value
// of that stamp.
func ReadStamp(b []byte) (Stamp, error) {
	if len(b) < SelfSize {
		return Stamp{}, fmt.Errorf("%d bytes are too few for a stamp: %x", len(b), b)
	}
	s := Stamp{
		ID:      binary.LittleEndian.Uint32(b[8:]),
		Version: binary.LittleEndian.Uint64(b),
		Size:    int(binary.LittleEndian.Uint32(b[12:])),
	}
	if !s.Wrote(b) {
		return Stamp{}, fmt.Errorf("a mixture of %d bytes that calls itself %v: %.64x", len(b), s, b)
	}
	return s, nil
}
