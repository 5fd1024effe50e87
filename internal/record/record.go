// Package record defines the format of a record, which is what a ring holds for one entry. Its
// functions are pure: they see only the bytes that they are given.
//
// A record is a header, the key and the value. There are short headers and long ones, each with
// room for no deadline, for one or for two. The short ones serve keys of up to 63 bytes with values
// of up to 32,767, 16,383 or 8,191 bytes, and take 3, 7 or 11 bytes:
//
//	byte 0: dead (1 bit) | 0 | key length (6 bits)
//	byte 1, 2: value length (15 bits), little endian | spaced
//
//	byte 0: dead (1 bit) | 1 | 1 | key length, the low 5 bits
//	byte 1, 2: value length (14 bits), little endian | key length, the high bit | spaced
//	byte 3 to 6: expiry, little endian
//
//	byte 0: dead (1 bit) | 1 | 0 | 1 | key length, the low 4 bits
//	byte 1, 2: value length (13 bits), little endian | key length, the high 2 bits | spaced
//	byte 3 to 6: expiry, byte 7 to 10: last deadline, little endian
//
// The long ones serve all other records, and take 7, 11 or 15 bytes:
//
//	byte 0: dead (1 bit) | 1 | 0 | 0 | spaced | kind (3 bits): 0, 3 or 5, or 1, 2 or 4 with one
//	        deadline, or 6 or 7 with two
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
// Kind 2 is a negative entry, whose value is empty: a load found that the key has no value. Kinds
// 3, 4 and 7 are packed: their values are encoded by package cold. Kind 5 is an internal entry of
// the cache. The dead bit is in the first byte, so that a single store sets it even if the header
// spans two chunks.
package record

import (
	"encoding/binary"
	"math/bits"
)

// Sizes of headers, and their limits.
const (
	ShortHeader = 3
	LongHeader  = 7
	ExpirySize  = 4 // of a deadline
	SumSize     = 4
	MaxShort    = ShortHeader + SumSize + 2*ExpirySize // of the short headers
	MaxHeader   = LongHeader + SumSize + 2*ExpirySize

	MaxKey = 1<<16 - 1

	maxShortKey   = 1<<6 - 1
	maxShortValue = 1<<15 - 1 // half of it with a deadline, a quarter with two
)

const (
	deadBit   = 0x80
	longBit   = 0x40 // every form except the short one without a deadline
	expiryBit = 0x20 // with longBit: the short form with one deadline
	idleBit   = 0x10 // with longBit alone: the short form with two
	kindMask  = 0x07

	kindLong         = 0
	kindLongExpiry   = 1
	kindNegative     = 2
	kindPacked       = 3
	kindPackedExpiry = 4
	kindInternal     = 5
	kindLongIdle     = 6
	kindPackedIdle   = 7

	spacedShift = 4 // from Spaced to its bit in the first byte of a long header
)

// Deadlines is the number of deadlines that a record has room for.
type Deadlines uint8

const (
	Timeless Deadlines = iota // none: the record stays until it is dropped
	Timed                     // one, the expiry
	Idle                      // two: the expiry, which reads postpone, and the last deadline
)

// size returns the size of the deadlines in bytes.
func (d Deadlines) size() int { return int(d) * ExpirySize }

// Times are the deadlines of a record. The zero value has none.
type Times struct {
	Deadlines Deadlines
	Expiry    uint32 // tick from which on the record is expired; 0: never
	Last      uint32 // tick beyond which no read postpones the expiry; 0: never
}

// Put encodes the deadlines for which the record has room into buf, and returns the used part of
// buf.
func (t Times) Put(buf *[2 * ExpirySize]byte) []byte {
	binary.LittleEndian.PutUint32(buf[:], t.Expiry)
	binary.LittleEndian.PutUint32(buf[ExpirySize:], t.Last)
	return buf[:t.Deadlines.size()]
}

// putAt encodes the deadlines after the first at bytes of a header.
func (t Times) putAt(buf *[MaxHeader]byte, at int) {
	if t.Deadlines != Timeless {
		copy(buf[at:], t.Put(new([2 * ExpirySize]byte)))
	}
}

// Kind tells what the value of a record is, and whether the record is Spaced.
type Kind uint8

const (
	Value    Kind = iota // what was set
	Negative             // nothing: the key is absent, except to loads
	Packed               // what was set, compressed
	Internal             // internal data of the cache, under a reserved key

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
	Lifetime
}

// Lifetime tells whether a record is live, and for how long.
type Lifetime struct {
	Expiry    uint32    // tick from which on it is expired; 0: never
	Dead      bool      // replaced, deleted or expired
	Deadlines Deadlines // for which it has room
	Kind      Kind      // what the value is
}

// HasExpiry reports whether the record has room for an expiry.
func (l Lifetime) HasExpiry() bool { return l.Deadlines != Timeless }

// Total returns the length of the whole record.
func (h Header) Total() int { return h.Size + h.KeyLen + h.ValueLen }

// Takes reports whether the record has room for the deadlines t in place.
func (h Header) Takes(t Times) bool { return h.Deadlines >= t.Deadlines }

// TimesAt returns the offset of the deadlines in the record, if it has room for any.
func (h Header) TimesAt() int { return h.Size - h.Deadlines.size() }

// LastAt returns the offset of the last deadline in a record with two, directly before the key.
func (h Header) LastAt() int { return h.Size - ExpirySize }

// HeaderSize returns the size of the header of a record with key and value of these lengths and
// room for d deadlines.
func (f Form) HeaderSize(klen, vlen int, d Deadlines) int {
	size := LongHeader
	if isShort(klen, vlen, d) {
		size = ShortHeader
	}
	return size + int(f) + d.size()
}

// isShort reports whether a header with these lengths is a short one.
func isShort(klen, vlen int, d Deadlines) bool {
	return klen <= maxShortKey && vlen <= maxShortValue>>d
}

// NegativeSize returns the size of the header of a negative entry.
func (f Form) NegativeSize() int { return LongHeader + int(f) + ExpirySize }

// InternalSize returns the size of the header of an internal record.
func (f Form) InternalSize() int { return LongHeader + int(f) }

// Put encodes the header of a live record with a value into buf and returns the used part of buf.
// k is 0 or Spaced. It leaves room for a checksum, but does not write it.
func (f Form) Put(buf *[MaxHeader]byte, k Kind, klen, vlen int, t Times) []byte {
	n := f.HeaderSize(klen, vlen, t.Deadlines)
	if isShort(klen, vlen, t.Deadlines) {
		putShort(buf, k, klen, vlen, t.Deadlines)
	} else {
		putLong(buf, [...]byte{kindLong, kindLongExpiry, kindLongIdle}[t.Deadlines], k, klen, vlen)
	}
	t.putAt(buf, n-t.Deadlines.size())
	return buf[:n]
}

// putShort encodes a short header up to its deadlines.
func putShort(buf *[MaxHeader]byte, k Kind, klen, vlen int, d Deadlines) {
	switch d {
	case Timeless:
		buf[0] = byte(klen)
	case Timed:
		buf[0] = longBit | expiryBit | byte(klen&0x1f)
		vlen |= klen >> 5 << 14
	case Idle:
		buf[0] = longBit | idleBit | byte(klen&0x0f)
		vlen |= klen >> 4 << 13
	}
	binary.LittleEndian.PutUint16(buf[1:], uint16(vlen)|uint16(k&Spaced)<<8)
}

// PackedSize returns the size of the header of a packed record.
func (f Form) PackedSize(d Deadlines) int { return LongHeader + int(f) + d.size() }

// PutPacked encodes the header of a packed record into buf and returns it. k is as in Put.
func (f Form) PutPacked(buf *[MaxHeader]byte, k Kind, klen, vlen int, t Times) []byte {
	n := f.PackedSize(t.Deadlines)
	putLong(buf, [...]byte{kindPacked, kindPackedExpiry, kindPackedIdle}[t.Deadlines], k, klen, vlen)
	t.putAt(buf, n-t.Deadlines.size())
	return buf[:n]
}

// PutNegative encodes the header of a negative entry into buf and returns it. k is as in Put.
func (f Form) PutNegative(buf *[MaxHeader]byte, k Kind, klen int, expiry uint32) []byte {
	n := f.NegativeSize()
	putLong(buf, kindNegative, k, klen, 0)
	binary.LittleEndian.PutUint32(buf[n-ExpirySize:], expiry)
	return buf[:n]
}

// PutInternal encodes the header of an internal record, which is spaced, into buf and returns it.
func (f Form) PutInternal(buf *[MaxHeader]byte, klen, vlen int) []byte {
	putLong(buf, kindInternal, Spaced, klen, vlen)
	return buf[:f.InternalSize()]
}

// putLong encodes a long header up to its expiry.
func putLong(buf *[MaxHeader]byte, kind byte, k Kind, klen, vlen int) {
	buf[0] = longBit | byte(k&Spaced)>>spacedShift | kind
	binary.LittleEndian.PutUint16(buf[1:], uint16(klen))
	binary.LittleEndian.PutUint32(buf[3:], uint32(vlen))
}

// MinDead returns the length of the shortest dead record.
func (f Form) MinDead() int { return ShortHeader + int(f) }

// PutDead encodes the header of a dead record of n bytes, at least MinDead, into buf and returns
// the used part of buf. The rest of the record may contain any bytes.
func (f Form) PutDead(buf *[MaxHeader]byte, n int) []byte {
	b := buf[:f.MinDead()]
	if vlen := n - len(b); vlen <= maxShortValue {
		f.Put(buf, Value, 0, vlen, Times{})
	} else {
		b = buf[:LongHeader+int(f)]
		putLong(buf, kindLong, Value, 0, n-len(b))
	}
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
	case b[0]&idleBit != 0:
		binary.LittleEndian.PutUint16(b[1:], uint16(vlen|h.KeyLen>>4<<13|spaced))
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
	kind := uint64(h.Expiry) << 2
	switch h.Deadlines {
	case Timed:
		kind |= 1
	case Idle:
		kind |= 1 << 36
	}
	switch h.Kind.Base() {
	case Negative:
		kind |= 2
	case Packed:
		kind |= 1 << 34
	case Internal:
		kind |= 1 << 35
	}
	kind |= uint64(h.Kind&Spaced) << 30
	return max(uint32(mix(x, kind^0x9e3779b97f4a7c15)>>32), 1)
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
		Lifetime: Lifetime{Dead: w&deadBit != 0, Kind: Kind(w>>16) & Spaced},
	}, w&longBit == 0
}

// ParseTimed is ParseShort for a short header with one or two deadlines. b has at least MaxShort
// bytes. Readers without a lock call it, and check its result; it is too large to be inlined into
// them.
//
//go:norace
func (f Form) ParseTimed(b []byte) (h Header, ok bool) {
	w := binary.LittleEndian.Uint32(b)
	d, low := Timed, uint(5) // low bits of the key's length are in the first byte
	if w&expiryBit == 0 {
		d, low = Idle, 4
	}
	return Header{
		Size:     ShortHeader + int(f) + d.size(),
		KeyLen:   int(w&(1<<(low&31)-1) | w&0x7fffff>>((17+low)&31)<<(low&31)),
		ValueLen: int(w >> 8 & (1<<((9+low)&31) - 1)),
		Lifetime: Lifetime{
			Expiry:    binary.LittleEndian.Uint32(b[ShortHeader+int(f):]),
			Dead:      w&deadBit != 0,
			Deadlines: d,
			Kind:      Kind(w>>16) & Spaced,
		},
	}, w&longBit != 0 && w&(expiryBit|idleBit) != 0
}

// Parse decodes the header at the start of b. It reports false if b is too short for the header, or
// is none.
func (f Form) Parse(b []byte) (h Header, ok bool) {
	var buf [MaxHeader]byte
	n := copy(buf[:], b)
	if h, ok = f.ParseShort(buf[:]); !ok {
		h, ok = f.ParseTimed(buf[:])
	}
	if !ok {
		h, ok = f.parseLong(&buf)
	}
	return h, ok && h.Size <= n
}

// parseLong is Parse for a long header.
func (f Form) parseLong(b *[MaxHeader]byte) (h Header, ok bool) {
	kind := b[0] & kindMask
	h.Size = LongHeader + int(f)
	h.KeyLen = int(binary.LittleEndian.Uint16(b[1:]))
	h.ValueLen = int(binary.LittleEndian.Uint32(b[3:]))
	h.Dead = b[0]&deadBit != 0
	switch kind {
	case kindNegative:
		h.Kind = Negative
	case kindPacked, kindPackedExpiry, kindPackedIdle:
		h.Kind = Packed
	case kindInternal:
		h.Kind = Internal
	}
	switch kind {
	case kindLongExpiry, kindNegative, kindPackedExpiry:
		h.Deadlines = Timed
	case kindLongIdle, kindPackedIdle:
		h.Deadlines = Idle
	}
	if h.HasExpiry() {
		h.Expiry = binary.LittleEndian.Uint32(b[h.Size:])
		h.Size += h.Deadlines.size()
	}
	isNegative := h.Kind == Negative
	h.Kind |= Kind(b[0]<<spacedShift) & Spaced
	// An int of 32 bits cannot hold every length.
	return h, h.ValueLen >= 0 && !(isNegative && h.ValueLen > 0)
}
