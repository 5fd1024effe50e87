// Package record defines the format of a record, which is what a ring holds for one entry. Its
// functions are pure: they see only the bytes that they are given.
//
// A record is a header, the key and the value. Most headers are short. They serve keys of up to 63
// bytes with values of up to 32,767 bytes, or of up to 16,383 if the record has room for a
// deadline, and take 3 or 7 bytes:
//
//	byte 0: dead (1 bit) | 0 | key length (6 bits)
//	byte 1, 2: value length (15 bits), little endian | spaced
//
//	byte 0: dead (1 bit) | 1 | 1 | key length, the low 5 bits
//	byte 1, 2: value length (14 bits), little endian | key length, the high bit | spaced
//	byte 3 to 6: expiry, little endian
//
// The long ones serve all other records, and take 7, 11 or 15 bytes:
//
//	byte 0: dead (1 bit) | 1 | 0 | spaced | kind (2 bits) | number of deadlines (2 bits)
//	byte 1, 2: key length, byte 3 to 6: value length, little endian
//	byte 7 to 10: expiry, byte 11 to 14: last deadline, little endian, if there is room for them
//
// Records in a file are checked: a checksum of 4 bytes stands between the lengths and the expiry
// (Form, ring.WriteSum).
//
// A deadline is a tick of the cache's clock, or 0 for never. A record expires at its expiry. In a
// record with two deadlines, reads postpone the expiry, but not beyond the last deadline
// (Options.ExpireAfterAccess).
//
// A record is spaced, which one bit says, if its key begins with the generation of a namespace.
//
// The value of a negative entry is empty: a load found that the key has no value. The values of
// packed records are encoded by package cold. The dead bit is in the first byte, so that a single
// store sets it even if the header spans two chunks.
package record

import (
	"encoding/binary"
	"math/bits"
)

// Sizes of headers, and their limits.
const (
	ShortHeader  = 3
	LongHeader   = 7
	DeadlineSize = 4
	SumSize      = 4
	MaxHeader    = LongHeader + SumSize + 2*DeadlineSize

	MaxKey = 1<<16 - 1

	maxShortKey   = 1<<6 - 1
	maxShortValue = 1<<15 - 1 // half of it with a deadline
)

const (
	deadBit   = 0x80
	longBit   = 0x40 // every form except the short one without a deadline
	expiryBit = 0x20 // with longBit: the short form with a deadline

	// In the first byte of a long header.
	spacedShift   = 3 // from Spaced to its bit
	kindShift     = 2
	kindMask      = 0x03
	deadlinesMask = 0x03
)

// Deadlines is the number of deadlines that a record has room for.
type Deadlines uint8

const (
	Timeless Deadlines = iota // none: the record stays until it is dropped
	Timed                     // one, the expiry
	Idle                      // two: the expiry, which reads postpone, and the last deadline
)

// Times are the deadlines of a record. The zero value has none.
type Times struct {
	Deadlines Deadlines
	Expiry    uint32 // tick from which on the record is expired; 0: never
	Last      uint32 // tick beyond which no read postpones the expiry; 0: never
}

// Put encodes the deadlines for which the record has room into buf, and returns the used part of
// buf.
func (t Times) Put(buf *[2 * DeadlineSize]byte) []byte {
	binary.LittleEndian.PutUint32(buf[:], t.Expiry)
	binary.LittleEndian.PutUint32(buf[DeadlineSize:], t.Last)
	return buf[:int(t.Deadlines)*DeadlineSize]
}

// Kind tells what the value of a record is, and whether the record is Spaced.
type Kind uint8

const (
	Value    Kind = iota // what was set
	Negative             // nothing: the key is absent, except to loads
	Packed               // what was set, compressed
	kinds

	// Spaced is a bit of a Kind: the key begins with the generation of a namespace. In the last byte
	// of the lengths of a short header it is the highest bit.
	Spaced Kind = 0x80
)

// Base returns the kind without Spaced.
func (k Kind) Base() Kind { return k &^ Spaced }

// IsUsers reports whether the record is an entry that a user has set.
func (k Kind) IsUsers() bool { return k.Base() == Value || k.Base() == Packed }

// Form is what all headers of a cache contain in addition to lengths and deadlines.
type Form uint8

const (
	Plain   Form = 0       // nothing
	Checked Form = SumSize // a checksum
)

// Header is a decoded header. The compiler keeps a struct in registers only if it has at most four
// fields, so there are two structs.
type Header struct {
	Size     int // bytes that the header itself takes
	KeyLen   int
	ValueLen int
	Status
}

// Status is the rest of a Header: whether the record is live, until when, and what its value is.
type Status struct {
	Expiry    uint32    // tick from which on it is expired; 0: never
	Dead      bool      // replaced, deleted or expired
	Deadlines Deadlines // for which it has room
	Kind      Kind      // what the value is
}

// Total returns the length of the whole record.
func (h Header) Total() int { return h.Size + h.KeyLen + h.ValueLen }

// Takes reports whether the record has room for the deadlines t in place.
func (h Header) Takes(t Times) bool { return h.Deadlines >= t.Deadlines }

// TimesAt returns the offset of the deadlines in the record, if it has room for any.
func (h Header) TimesAt() int { return h.Size - int(h.Deadlines)*DeadlineSize }

// LastAt returns the offset of the last deadline in a record with two, directly before the key.
func (h Header) LastAt() int { return h.Size - DeadlineSize }

// HeaderSize returns the size of the header of a record of kind k with key and value of these
// lengths and room for d deadlines.
func (f Form) HeaderSize(k Kind, klen, vlen int, d Deadlines) int {
	size := LongHeader
	if k&^Spaced == Value && klen <= maxShortKey && vlen <= maxShortValue>>d && d <= Timed {
		size = ShortHeader
	}
	return size + int(f) + int(d)*DeadlineSize
}

// Put encodes the header of a live record into buf and returns the used part of buf. It leaves room
// for a checksum, but does not write it. Its callers are where records begin: a Set, compression,
// and a save. Everything else copies a record as it is, or sets its entry again.
func (f Form) Put(buf *[MaxHeader]byte, k Kind, klen, vlen int, t Times) []byte {
	n := f.HeaderSize(k, klen, vlen, t.Deadlines)
	switch {
	case n >= LongHeader+int(f)+int(t.Deadlines)*DeadlineSize:
		buf[0] = longBit | byte(k&Spaced)>>spacedShift | byte(k&kindMask)<<kindShift | byte(t.Deadlines)
		binary.LittleEndian.PutUint16(buf[1:], uint16(klen))
		binary.LittleEndian.PutUint32(buf[3:], uint32(vlen))
	case t.Deadlines == Timeless:
		buf[0] = byte(klen)
		binary.LittleEndian.PutUint16(buf[1:], uint16(vlen)|uint16(k&Spaced)<<8)
	default:
		buf[0] = longBit | expiryBit | byte(klen&0x1f)
		binary.LittleEndian.PutUint16(buf[1:], uint16(vlen|klen>>5<<14)|uint16(k&Spaced)<<8)
	}
	if t.Deadlines != Timeless {
		var times [2 * DeadlineSize]byte
		copy(buf[n-int(t.Deadlines)*DeadlineSize:], t.Put(&times))
	}
	return buf[:n]
}

// MinDead returns the length of the shortest dead record.
func (f Form) MinDead() int { return ShortHeader + int(f) }

// PutDead encodes the header of a dead record of n bytes, at least MinDead, into buf and returns
// the used part of buf. The rest of the record may contain any bytes.
func (f Form) PutDead(buf *[MaxHeader]byte, n int) []byte {
	k, size := Value, f.MinDead()
	if n-size > maxShortValue {
		k, size = Packed, LongHeader+int(f) // its headers are long, whatever the length
	}
	b := f.Put(buf, k, 0, n-size, Times{})
	Kill(b)
	return b
}

// PutValueLen changes the value's length in the header h at the beginning of b, which contains the
// whole header. The new length must have a header of the same form.
func (h Header) PutValueLen(b []byte, vlen int) {
	spaced := int(h.Kind&Spaced) << 8
	switch {
	case b[0]&longBit == 0:
		binary.LittleEndian.PutUint16(b[1:], uint16(vlen|spaced))
	case b[0]&expiryBit != 0:
		binary.LittleEndian.PutUint16(b[1:], uint16(vlen|h.KeyLen>>5<<14|spaced))
	default:
		binary.LittleEndian.PutUint32(b[3:], uint32(vlen))
	}
}

// Kill sets the dead bit of the record that begins at b.
func Kill(b []byte) { b[0] |= deadBit }

// Sum returns the checksum of a record, which is never 0, the checksum of a dead record. content is
// a hash of the bytes from SummedAt on. seed is a secret of the cache, so that no value can pass
// for a record.
func (h Header) Sum(content, seed uint64) uint32 {
	x := mix(content, seed|1) ^ uint64(h.KeyLen)<<32 ^ uint64(h.ValueLen)
	life := uint64(h.Expiry) | uint64(h.Deadlines)<<32 | uint64(h.Kind)<<34
	return max(uint32(mix(x, life^0x9e3779b97f4a7c15)>>32), 1)
}

// mix folds two words into one.
func mix(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	return hi ^ lo
}

// SumAt returns the offset of the checksum in a checked record.
func (h Header) SumAt() int { return h.TimesAt() - SumSize }

// SummedAt returns the offset of the bytes of a record that its checksum covers as they are: the
// offset of the last deadline, if there is one, or else of the key.
func (h Header) SummedAt() int {
	if h.Deadlines == Idle {
		return h.LastAt()
	}
	return h.Size
}

// ParseShort decodes a short header without an expiry from b, which has at least 4 bytes. It
// reports false if the header has another form.
func (f Form) ParseShort(b []byte) (h Header, ok bool) {
	w := binary.LittleEndian.Uint32(b)
	return Header{
		Size:     ShortHeader + int(f),
		KeyLen:   int(w & maxShortKey),
		ValueLen: int(w >> 8 & maxShortValue),
		Status:   Status{Dead: w&deadBit != 0, Kind: Kind(w>>16) & Spaced},
	}, w&longBit == 0
}

// ParseOther is ParseShort for headers of all other forms. b has at least MaxHeader bytes. Readers
// without a lock call it, and check its result; it is too large to be inlined into them.
//
//go:norace
func (f Form) ParseOther(b []byte) (h Header, ok bool) {
	w := binary.LittleEndian.Uint32(b)
	h.Dead = w&deadBit != 0
	if w&expiryBit != 0 {
		h.Size = ShortHeader + int(f)
		h.KeyLen, h.ValueLen = int(w&0x1f|w>>17&0x20), int(w>>8&(maxShortValue>>1))
		h.Kind, h.Deadlines = Kind(w>>16)&Spaced, Timed
	} else {
		h.Size = LongHeader + int(f)
		h.KeyLen, h.ValueLen = int(w>>8&MaxKey), int(binary.LittleEndian.Uint32(b[3:]))
		h.Kind = Kind(w>>kindShift)&kindMask | Kind(w<<spacedShift)&Spaced
		h.Deadlines = Deadlines(w & deadlinesMask)
	}
	if h.Deadlines != Timeless {
		h.Expiry = binary.LittleEndian.Uint32(b[h.Size:])
		h.Size += int(h.Deadlines) * DeadlineSize
	}
	// An int of 32 bits cannot hold every length.
	return h, w&longBit != 0 && h.Deadlines <= Idle && h.ValueLen >= 0 &&
		(h.ValueLen == 0 || h.Kind&^Spaced != Negative) && h.Kind.Base() < kinds
}

// Parse decodes the header at the start of b. It reports false if b is too short for the header, or
// is none.
func (f Form) Parse(b []byte) (h Header, ok bool) {
	var buf [MaxHeader]byte
	n := copy(buf[:], b)
	if h, ok = f.ParseShort(buf[:]); !ok {
		h, ok = f.ParseOther(buf[:])
	}
	return h, ok && h.Size <= n
}
