// Package record is the form of a record: what a ring holds for one entry.
// Its functions are pure: they see only the bytes that they are given.
//
// A record is a header, the key and the value. The header has four forms: two
// for records that live until they are dropped, and two with room for an expiry.
// The short ones serve keys of up to 63 bytes with values of up to 65,535 bytes,
// of up to 32,767 with an expiry, and take 3 and 7 bytes:
//
//	byte 0: dead (1 bit) | 0 | key length (6 bits)
//	byte 1, 2: value length, little endian
//
//	byte 0: dead (1 bit) | 1 | 1 | key length, the low 5 bits
//	byte 1, 2: value length (15 bits), little endian | key length, the high bit
//	byte 3 to 6: expiry, little endian
//
// The long ones serve everything else, and take 7 and 11 bytes:
//
//	byte 0: dead (1 bit) | 1 | 0 | kind (5 bits): 0, 3 or 5, or 1, 2 or 4 with an expiry
//	byte 1, 2: key length, byte 3 to 6: value length, little endian
//	byte 7 to 10: expiry, little endian, if there is room for one
//
// Records in a file are checked: behind the lengths, before the expiry, stands a
// checksum of 4 bytes (Form, ring.WriteSum).
//
// An expiry is a tick of the cache's clock, or 0 for never. Kind 2 is a negative
// entry, which has an empty value: a load found that its key has none. Kinds 3 and 4
// are packed: the value is what package pack makes of it. Kind 5 is an entry of the cache's
// own, which no key of a user's reaches. Kinds from 6 on are free for headers that carry more. The
// dead bit is in the first byte, so that a single store sets it even in a header that crosses two
// chunks.
package record

import (
	"encoding/binary"
	"math/bits"
)

// Sizes of headers, and their limits.
const (
	ShortHeader = 3
	LongHeader  = 7
	ExpirySize  = 4
	SumSize     = 4
	MaxShort    = ShortHeader + SumSize + ExpirySize // of the short headers
	MaxHeader   = LongHeader + SumSize + ExpirySize

	MaxKey = 1<<16 - 1

	maxShortKey   = 1<<6 - 1
	maxShortValue = 1<<16 - 1
	maxShortTimed = 1<<15 - 1 // value of a short header with an expiry
)

const (
	deadBit   = 0x80
	longBit   = 0x40 // every form but the short one without an expiry
	expiryBit = 0x20 // beside longBit: the short one with an expiry
	kindMask  = 0x1f

	kindLong         = 0
	kindLongExpiry   = 1
	kindNegative     = 2
	kindPacked       = 3
	kindPackedExpiry = 4
	kindInternal     = 5
)

// Kind tells what the value of a record is.
type Kind uint8

const (
	Value    Kind = iota // what was set
	Negative             // nothing: to all but loads, the key is not there
	Packed               // what was set, compressed
	Internal             // what the cache keeps for itself, under a reserved key
)

// IsUsers reports whether the record is an entry that a user has set.
func (k Kind) IsUsers() bool { return k == Value || k == Packed }

// Form is what all headers of a cache have beside their lengths and expiries.
type Form uint8

const (
	Plain   Form = 0       // nothing
	Checked Form = SumSize // a checksum
)

// Header is a decoded header. The compiler keeps a struct in registers only if
// it has up to four fields, hence two of them.
type Header struct {
	Size     int // bytes that the header itself takes
	KeyLen   int
	ValueLen int
	Lifetime
}

// Lifetime is whether a record lives, and how long.
type Lifetime struct {
	Expiry    uint32 // tick from which on it is expired; 0: never
	Dead      bool   // replaced, deleted or expired: the tail passes it
	HasExpiry bool   // has room for an expiry
	Kind      Kind   // what the value is
}

// Total returns the length of the whole record.
func (h Header) Total() int { return h.Size + h.KeyLen + h.ValueLen }

// Takes reports whether the record can have that expiry where it lies.
func (h Header) Takes(expiry uint32) bool { return h.HasExpiry || expiry == 0 }

// ExpiryAt returns where in the record its expiry lies, if it has room for one.
func (h Header) ExpiryAt() int { return h.Size - ExpirySize }

// HeaderSize returns the header bytes of a record with such a key and value;
// expires tells that it has room for an expiry.
func (f Form) HeaderSize(klen, vlen int, expires bool) int {
	switch {
	case !expires && klen <= maxShortKey && vlen <= maxShortValue:
		return ShortHeader + int(f)
	case !expires:
		return LongHeader + int(f)
	case klen <= maxShortKey && vlen <= maxShortTimed:
		return ShortHeader + int(f) + ExpirySize
	default:
		return LongHeader + int(f) + ExpirySize
	}
}

// NegativeSize returns the header bytes of a negative entry.
func (f Form) NegativeSize() int { return LongHeader + int(f) + ExpirySize }

// InternalSize returns the header bytes of an internal record.
func (f Form) InternalSize() int { return LongHeader + int(f) }

// Put encodes the header of a live record into buf and returns its part of buf.
// An expiry of 0 takes the form without one. A checksum is left for later.
func (f Form) Put(buf *[MaxHeader]byte, klen, vlen int, expiry uint32) []byte {
	n := f.HeaderSize(klen, vlen, expiry != 0)
	switch short := klen <= maxShortKey; {
	case short && expiry == 0 && vlen <= maxShortValue:
		buf[0] = byte(klen)
		binary.LittleEndian.PutUint16(buf[1:], uint16(vlen))
	case expiry == 0:
		putLong(buf, kindLong, klen, vlen)
	case short && vlen <= maxShortTimed:
		buf[0] = longBit | expiryBit | byte(klen&kindMask)
		binary.LittleEndian.PutUint16(buf[1:], uint16(vlen|klen>>5<<15))
	default:
		putLong(buf, kindLongExpiry, klen, vlen)
	}
	if expiry != 0 {
		binary.LittleEndian.PutUint32(buf[n-ExpirySize:], expiry)
	}
	return buf[:n]
}

// PackedSize returns the header bytes of a packed record.
func (f Form) PackedSize(expires bool) int {
	if expires {
		return LongHeader + int(f) + ExpirySize
	}
	return LongHeader + int(f)
}

// PutPacked encodes the header of a packed record into buf and returns it. It has room for
// an expiry if expires says so.
func (f Form) PutPacked(
	buf *[MaxHeader]byte, klen, vlen int, expires bool, expiry uint32,
) []byte {
	n := f.PackedSize(expires)
	if expires {
		putLong(buf, kindPackedExpiry, klen, vlen)
		binary.LittleEndian.PutUint32(buf[n-ExpirySize:], expiry)
	} else {
		putLong(buf, kindPacked, klen, vlen)
	}
	return buf[:n]
}

// PutNegative encodes the header of a negative entry into buf and returns it.
func (f Form) PutNegative(buf *[MaxHeader]byte, klen int, expiry uint32) []byte {
	n := f.NegativeSize()
	putLong(buf, kindNegative, klen, 0)
	binary.LittleEndian.PutUint32(buf[n-ExpirySize:], expiry)
	return buf[:n]
}

// PutInternal encodes the header of an internal record into buf and returns it.
func (f Form) PutInternal(buf *[MaxHeader]byte, klen, vlen int) []byte {
	putLong(buf, kindInternal, klen, vlen)
	return buf[:f.InternalSize()]
}

// putLong encodes a long header up to its expiry.
func putLong(buf *[MaxHeader]byte, kind byte, klen, vlen int) {
	buf[0] = longBit | kind
	binary.LittleEndian.PutUint16(buf[1:], uint16(klen))
	binary.LittleEndian.PutUint32(buf[3:], uint32(vlen))
}

// MinDead returns the bytes of the shortest dead record.
func (f Form) MinDead() int { return ShortHeader + int(f) }

// PutDead encodes the header of a dead record of n bytes, which are MinDead or more, into buf
// and returns its part of buf. Nothing is said of the bytes behind it.
func (f Form) PutDead(buf *[MaxHeader]byte, n int) []byte {
	b := buf[:f.MinDead()]
	if vlen := n - len(b); vlen <= maxShortValue {
		f.Put(buf, 0, vlen, 0)
	} else {
		b = buf[:LongHeader+int(f)]
		putLong(buf, kindLong, 0, n-len(b))
	}
	Kill(b)
	return b
}

// PutValueLen changes the value's length in a header h that is at b, from which on the whole
// header lies, to one that takes the same form.
func (h Header) PutValueLen(b []byte, vlen int) {
	switch {
	case b[0]&longBit == 0:
		binary.LittleEndian.PutUint16(b[1:], uint16(vlen))
	case b[0]&expiryBit != 0:
		binary.LittleEndian.PutUint16(b[1:], uint16(vlen|h.KeyLen>>5<<15))
	default:
		binary.LittleEndian.PutUint32(b[3:], uint32(vlen))
	}
}

// Kill sets the dead bit of the record that begins at b.
func Kill(b []byte) { b[0] |= deadBit }

// Sum returns the checksum of a record, which is not 0: that is what a dead one has.
// content is a hash of key and value. seed is a secret of the cache, so that no value can
// pass for a record.
func (h Header) Sum(content, seed uint64) uint32 {
	x := mix(content, seed|1) ^ uint64(h.KeyLen)<<32 ^ uint64(h.ValueLen)
	kind := uint64(h.Expiry) << 2
	if h.HasExpiry {
		kind |= 1
	}
	switch h.Kind {
	case Negative:
		kind |= 2
	case Packed:
		kind |= 1 << 34
	case Internal:
		kind |= 1 << 35
	}
	return max(uint32(mix(x, kind^0x9e3779b97f4a7c15)>>32), 1)
}

// mix folds two words into one.
func mix(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	return hi ^ lo
}

// SumAt returns where in a checked record its checksum lies.
func (h Header) SumAt() int {
	if h.HasExpiry {
		return h.Size - ExpirySize - SumSize
	}
	return h.Size - SumSize
}

// ParseShort decodes a short header without an expiry from b, which has at least
// 4 bytes. It reports false if the header is of another kind.
func (f Form) ParseShort(b []byte) (h Header, ok bool) {
	w := binary.LittleEndian.Uint32(b)
	return Header{
		Size:     ShortHeader + int(f),
		KeyLen:   int(w & maxShortKey),
		ValueLen: int(w >> 8 & maxShortValue),
		Lifetime: Lifetime{Dead: w&deadBit != 0},
	}, w&longBit == 0
}

// ParseExpiring is ParseShort for a short header with an expiry. b has at least
// MaxShort bytes.
func (f Form) ParseExpiring(b []byte) (h Header, ok bool) {
	w := binary.LittleEndian.Uint32(b)
	return Header{
		Size:     ShortHeader + int(f) + ExpirySize,
		KeyLen:   int(w&kindMask | w>>18&(1<<5)),
		ValueLen: int(w >> 8 & maxShortTimed),
		Lifetime: Lifetime{
			Expiry:    binary.LittleEndian.Uint32(b[ShortHeader+int(f):]),
			Dead:      w&deadBit != 0,
			HasExpiry: true,
		},
	}, w&(longBit|expiryBit) == longBit|expiryBit
}

// Parse decodes the header at the start of b. It reports false if b is too
// short for it or if the header is of no known kind.
func (f Form) Parse(b []byte) (h Header, ok bool) {
	var buf [MaxHeader]byte
	n := copy(buf[:], b)
	if h, ok = f.ParseShort(buf[:]); !ok {
		h, ok = f.ParseExpiring(buf[:])
	}
	if !ok {
		h, ok = f.parseLong(&buf)
	}
	return h, ok && h.Size <= n
}

// parseLong is Parse of a long header.
func (f Form) parseLong(b *[MaxHeader]byte) (h Header, ok bool) {
	kind := b[0] & kindMask
	h.Size = LongHeader + int(f)
	h.KeyLen = int(binary.LittleEndian.Uint16(b[1:]))
	h.ValueLen = int(binary.LittleEndian.Uint32(b[3:]))
	h.Dead = b[0]&deadBit != 0
	switch kind {
	case kindNegative:
		h.Kind = Negative
	case kindPacked, kindPackedExpiry:
		h.Kind = Packed
	case kindInternal:
		h.Kind = Internal
	}
	h.HasExpiry = kind == kindLongExpiry || kind == kindNegative || kind == kindPackedExpiry
	if h.HasExpiry {
		h.Expiry = binary.LittleEndian.Uint32(b[h.Size:])
		h.Size += ExpirySize
	}
	// An int of 32 bits cannot hold every length.
	return h, kind <= kindInternal && h.ValueLen >= 0 && !(h.Kind == Negative && h.ValueLen > 0)
}
