package ringcache

import "encoding/binary"

// A record is what the ring holds for one entry: header, key, value.
//
// The header has four forms: two for records that live until they are dropped,
// and two with room for an expiry. The short ones serve keys of up to 63 bytes
// with values of up to 65,535 bytes, of up to 32,767 with an expiry, and take 3
// and 7 bytes:
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
//	byte 0: dead (1 bit) | 1 | 0 | kind (5 bits): 0, or 1 or 2 with an expiry
//	byte 1, 2: key length, byte 3 to 6: value length, little endian
//	byte 7 to 10: expiry, little endian, if there is room for one
//
// An expiry is a tick of the cache's clock, or 0 for never. Kind 2 is a mark, which
// has an empty value: a load has found that its key is absent. Kinds from 3 on are
// for headers that carry more: a checksum and sequence number, a compressed
// value. Lengths of 4 bytes leave room for values of up to 4 GiB. The dead bit
// lies in a byte of its own right, so that one store sets it wherever chunks
// end.
const (
	shortHeader = 3
	longHeader  = 7
	expirySize  = 4
	markHeader  = longHeader + expirySize
	maxHeader   = longHeader + expirySize

	deadBit  = 0x80
	longBit  = 0x40 // every form but the short one without an expiry
	timedBit = 0x20 // beside longBit: the short one with an expiry
	kindMask = 0x1f

	kindLong      = 0
	kindLongTimed = 1
	kindMark      = 2

	maxShortKey   = 1<<6 - 1
	maxShortValue = 1<<16 - 1
	maxTimedValue = 1<<15 - 1 // of a short header with an expiry
	maxKey        = 1<<16 - 1
)

// header is a decoded record header. The compiler keeps a struct in registers
// only if it has up to four fields, hence two of them.
type header struct {
	size int // bytes that the header itself takes
	klen int
	vlen int
	fate
}

// fate is whether a record lives, and how long.
type fate struct {
	expiry uint32 // tick from which on it is expired; 0: never
	dead   bool   // replaced, deleted or expired: the tail passes it without a look at the index
	timed  bool   // has room for an expiry
	absent bool   // a mark: to all but loads, the key is not there
}

// total returns the length of the whole record.
func (h header) total() int { return h.size + h.klen + h.vlen }

// headerSize returns the header bytes of a record with such a key and value
// that never expires.
func headerSize(klen, vlen int) int {
	if klen <= maxShortKey && vlen <= maxShortValue {
		return shortHeader
	}
	return longHeader
}

// timedHeaderSize returns the same for a record with room for an expiry.
func timedHeaderSize(klen, vlen int) int {
	if klen <= maxShortKey && vlen <= maxTimedValue {
		return shortHeader + expirySize
	}
	return longHeader + expirySize
}

// putHeader encodes the header of a live record that never expires into buf and
// returns its part of buf.
func putHeader(buf *[maxHeader]byte, klen, vlen int) []byte {
	if headerSize(klen, vlen) == shortHeader {
		buf[0] = byte(klen)
		binary.LittleEndian.PutUint16(buf[1:], uint16(vlen))
		return buf[:shortHeader]
	}
	buf[0] = longBit | kindLong
	putLengths(buf, klen, vlen)
	return buf[:longHeader]
}

// putTimedHeader is putHeader for a record with an expiry.
func putTimedHeader(buf *[maxHeader]byte, klen, vlen int, expiry uint32) []byte {
	n := timedHeaderSize(klen, vlen)
	if n == shortHeader+expirySize {
		buf[0] = longBit | timedBit | byte(klen&kindMask)
		binary.LittleEndian.PutUint16(buf[1:], uint16(vlen|klen>>5<<15))
	} else {
		buf[0] = longBit | kindLongTimed
		putLengths(buf, klen, vlen)
	}
	binary.LittleEndian.PutUint32(buf[n-expirySize:], expiry)
	return buf[:n]
}

// putMark encodes the header of a mark into buf and returns it.
func putMark(buf *[maxHeader]byte, klen int, expiry uint32) []byte {
	buf[0] = longBit | kindMark
	putLengths(buf, klen, 0)
	binary.LittleEndian.PutUint32(buf[longHeader:], expiry)
	return buf[:markHeader]
}

// putLengths encodes the lengths of a long header.
func putLengths(buf *[maxHeader]byte, klen, vlen int) {
	binary.LittleEndian.PutUint16(buf[1:], uint16(klen))
	binary.LittleEndian.PutUint32(buf[3:], uint32(vlen))
}

// parseShort decodes a short header without an expiry from the first 4 bytes of
// b. It reports false if the header is of another form.
func parseShort(b []byte) (h header, ok bool) {
	w := binary.LittleEndian.Uint32(b)
	return header{
		size: shortHeader,
		klen: int(w & maxShortKey),
		vlen: int(w >> 8 & maxShortValue),
		fate: fate{dead: w&deadBit != 0},
	}, w&longBit == 0
}

// parseHeader decodes the header at the start of b. It reports false if b is
// too short for it or if the header is of no known kind.
func parseHeader(b []byte) (h header, ok bool) {
	if len(b) < shortHeader {
		return header{}, false
	}
	h.dead = b[0]&deadBit != 0
	switch {
	case b[0]&longBit == 0:
		h.size = shortHeader
		h.klen = int(b[0] & maxShortKey)
		h.vlen = int(binary.LittleEndian.Uint16(b[1:]))
		return h, true
	case b[0]&timedBit != 0:
		lengths := int(binary.LittleEndian.Uint16(b[1:]))
		h.size = shortHeader
		h.klen = int(b[0]&kindMask) | lengths>>15<<5
		h.vlen = lengths & maxTimedValue
		return h.withExpiry(b)
	}
	kind := b[0] & kindMask
	if len(b) < longHeader || kind > kindMark {
		return header{}, false
	}
	h.size = longHeader
	h.klen = int(binary.LittleEndian.Uint16(b[1:]))
	h.vlen = int(binary.LittleEndian.Uint32(b[3:]))
	if h.vlen < 0 { // an int of 32 bits cannot hold every length
		return header{}, false
	}
	if h.absent = kind == kindMark; h.absent && h.vlen > 0 {
		return header{}, false
	}
	if kind != kindLong {
		return h.withExpiry(b)
	}
	return h, true
}

// withExpiry returns h with the expiry that follows it in b, or false if b is
// too short for that.
func (h header) withExpiry(b []byte) (header, bool) {
	if len(b) < h.size+expirySize {
		return header{}, false
	}
	h.expiry = binary.LittleEndian.Uint32(b[h.size:])
	h.size += expirySize
	h.timed = true
	return h, true
}

// expiryAt returns where in the record its expiry lies, if it has room for one.
func (h header) expiryAt() int { return h.size - expirySize }
