package ringcache

import "encoding/binary"

// A record is what the ring holds for one entry: header, key, value.
//
// The header has two forms. The short one serves keys of up to 63 bytes with
// values of up to 65,535 bytes, and takes 3 bytes:
//
//	byte 0: dead (1 bit) | 0 | key length (6 bits)
//	byte 1, 2: value length, little endian
//
// The long one serves everything else, and takes 7 bytes:
//
//	byte 0: dead (1 bit) | 1 | kind (6 bits, 0 today)
//	byte 1, 2: key length, byte 3 to 6: value length, little endian
//
// The six kind bits are for headers that carry more: an expiry, a checksum and
// sequence number, a compressed value. Lengths of 4 bytes leave room for
// values of up to 4 GiB. The dead bit lies in a byte of its own right, so that
// one store sets it wherever chunks end.
const (
	shortHeader = 3
	longHeader  = 7
	maxHeader   = longHeader

	deadBit = 0x80
	longBit = 0x40

	maxShortKey   = 1<<6 - 1
	maxShortValue = 1<<16 - 1
	maxKey        = 1<<16 - 1
)

// header is a decoded record header.
type header struct {
	size int // bytes that the header itself takes
	klen int
	vlen int
	dead bool // replaced or deleted: the tail passes it without a look at the index
}

// total returns the length of the whole record.
func (h header) total() int { return h.size + h.klen + h.vlen }

// headerSize returns the header bytes of a record with such a key and value.
func headerSize(klen, vlen int) int {
	if klen <= maxShortKey && vlen <= maxShortValue {
		return shortHeader
	}
	return longHeader
}

// putHeader encodes the header of a live record into buf and returns its part
// of buf.
func putHeader(buf *[maxHeader]byte, klen, vlen int) []byte {
	if headerSize(klen, vlen) == shortHeader {
		buf[0] = byte(klen)
		binary.LittleEndian.PutUint16(buf[1:], uint16(vlen))
		return buf[:shortHeader]
	}
	buf[0] = longBit
	binary.LittleEndian.PutUint16(buf[1:], uint16(klen))
	binary.LittleEndian.PutUint32(buf[3:], uint32(vlen))
	return buf[:longHeader]
}

// parseShort decodes a short header from the first 4 bytes of b. It reports
// false if the header is a long one.
func parseShort(b []byte) (h header, ok bool) {
	w := binary.LittleEndian.Uint32(b)
	return header{
		size: shortHeader,
		klen: int(w & maxShortKey),
		vlen: int(w >> 8 & maxShortValue),
		dead: w&deadBit != 0,
	}, w&longBit == 0
}

// parseHeader decodes the header at the start of b. It reports false if b is
// too short for it or if the header is of no known kind.
func parseHeader(b []byte) (h header, ok bool) {
	if len(b) < shortHeader {
		return header{}, false
	}
	h.dead = b[0]&deadBit != 0
	if b[0]&longBit == 0 {
		h.size = shortHeader
		h.klen = int(b[0] & maxShortKey)
		h.vlen = int(binary.LittleEndian.Uint16(b[1:]))
		return h, true
	}
	if len(b) < longHeader || b[0]&maxShortKey != 0 {
		return header{}, false
	}
	h.size = longHeader
	h.klen = int(binary.LittleEndian.Uint16(b[1:]))
	v := binary.LittleEndian.Uint32(b[3:])
	h.vlen = int(v)
	return h, h.vlen >= 0 // an int of 32 bits cannot hold every length
}
