//go:build !race

package torn

import "encoding/binary"

// The built-in append and copy would do, but the race detector reports them even in a function that
// is marked norace: bytes_race.go has what replaces them.

// Append is the built-in append.
func Append(dst, src []byte) []byte { return append(dst, src...) }

// Equal reports whether a and b are the same bytes. Most keys have 8 to 16 bytes: for them,
// comparing two words is faster than a call.
func Equal(a, b []byte) bool {
	if n := len(a); n == len(b) && n >= 8 && n <= 16 {
		first := binary.LittleEndian.Uint64(a) ^ binary.LittleEndian.Uint64(b)
		last := binary.LittleEndian.Uint64(a[n-8:]) ^ binary.LittleEndian.Uint64(b[n-8:])
		return first|last == 0
	}
	return string(a) == string(b)
}
