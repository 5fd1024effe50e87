//go:build !race

// Package torn copies and compares bytes that somebody may be writing to meanwhile.
//
// An optimistic reader does so, and finds out afterwards. The built-in append and
// copy would do, but under the race detector they report it, even in a function
// that is marked norace.
package torn

import "encoding/binary"

// Append is the built-in append.
func Append(dst, src []byte) []byte { return append(dst, src...) }

// Equal reports whether a and b are the same bytes. Most keys have 8 to 16: a call
// would take longer than two words of each.
func Equal(a, b []byte) bool {
	if n := len(a); n == len(b) && n >= 8 && n <= 16 {
		first := binary.LittleEndian.Uint64(a) ^ binary.LittleEndian.Uint64(b)
		last := binary.LittleEndian.Uint64(a[n-8:]) ^ binary.LittleEndian.Uint64(b[n-8:])
		return first|last == 0
	}
	return string(a) == string(b)
}
