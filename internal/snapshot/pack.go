package snapshot

import (
	"encoding/binary"
	"math/bits"
)

// Blocks are packed where that makes them smaller: in the block format of LZ4, which is
// little code and fast on both sides. What does not repeat itself costs next to nothing,
// since the search goes on in longer and longer steps.

const (
	packLog    = 13 // of the table: it stays in the first cache
	leastMatch = 4
	farthest   = 1<<16 - 1
	lastBytes  = 5  // of a block are never in a match
	lastMatch  = 12 // bytes before the end is the last place where one may begin
)

// packTable has the last place of a hash of four bytes, counted from 1.
type packTable [1 << packLog]uint32

// pack appends src to dst, packed.
func pack(dst, src []byte, table *packTable) []byte {
	clear(table[:])
	anchor := 0 // what is behind it is packed
	for i := 0; i < len(src)-lastMatch; {
		four := binary.LittleEndian.Uint32(src[i:])
		at := &table[four*2654435761>>(32-packLog)]
		j := int(*at) - 1
		*at = uint32(i + 1)
		if j < 0 || i-j > farthest || binary.LittleEndian.Uint32(src[j:]) != four {
			i += 1 + (i-anchor)>>4
			continue
		}
		for i > anchor && j > 0 && src[i-1] == src[j-1] {
			i, j = i-1, j-1
		}
		n := matchLen(src[i:len(src)-lastBytes], src[j:])
		dst = appendLiterals(dst, src[anchor:i], n-leastMatch)
		dst = binary.LittleEndian.AppendUint16(dst, uint16(i-j))
		dst = appendLength(dst, n-leastMatch)
		i += n
		anchor = i
	}
	return appendLiterals(dst, src[anchor:], 0)
}

// matchLen returns how many bytes are equal at the beginning of a and b, which is not
// shorter.
func matchLen(a, b []byte) int {
	n := 0
	for ; n+8 <= len(a); n += 8 {
		x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:])
		if x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for n < len(a) && a[n] == b[n] {
		n++
	}
	return n
}

// appendLiterals appends a token, of literals and of a match that is match bytes longer
// than the least, and the literals.
func appendLiterals(dst, literals []byte, match int) []byte {
	dst = append(dst, byte(min(len(literals), 15)<<4|min(match, 15)))
	return append(appendLength(dst, len(literals)), literals...)
}

// appendLength appends what of a length is not in the token.
func appendLength(dst []byte, n int) []byte {
	if n < 15 {
		return dst
	}
	for n -= 15; n >= 255; n -= 255 {
		dst = append(dst, 255)
	}
	return append(dst, byte(n))
}

// unpack fills dst with what pack has made src of, or reports false if it was not dst.
func unpack(dst, src []byte) bool {
	d := 0
	for len(src) > 0 {
		token := src[0]
		n, rest, ok := length(token>>4, src[1:], len(dst))
		if !ok || n > len(rest) || n > len(dst)-d {
			return false
		}
		d += copy(dst[d:], rest[:n])
		if src = rest[n:]; len(src) == 0 {
			return d == len(dst)
		}
		if len(src) < 2 {
			return false
		}
		back := int(binary.LittleEndian.Uint16(src))
		if n, src, ok = length(token&15, src[2:], len(dst)); !ok {
			return false
		}
		if n += leastMatch; back == 0 || back > d || n > len(dst)-d {
			return false
		}
		for n > 0 { // what is copied may be what was copied just now
			more := copy(dst[d:d+n], dst[d-back:d])
			d, n, back = d+more, n-more, back+more
		}
	}
	return false
}

// length returns a length that begins in a token, and what is behind it.
func length(n byte, src []byte, most int) (int, []byte, bool) {
	if n < 15 {
		return int(n), src, true
	}
	for sum := 15; len(src) > 0 && sum <= most; src = src[1:] {
		sum += int(src[0])
		if src[0] != 255 {
			return sum, src[1:], true
		}
	}
	return 0, nil, false
}
