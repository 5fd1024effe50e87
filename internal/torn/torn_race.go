//go:build race

// Package torn copies and compares bytes that somebody may be writing to meanwhile. See
// torn.go.
package torn

import "slices"

// Append is append, byte by byte: the detector does not see it.
//
//go:norace
func Append(dst, src []byte) []byte {
	n := len(dst)
	dst = slices.Grow(dst, len(src))[:n+len(src)]
	for i, b := range src {
		dst[n+i] = b
	}
	return dst
}

// Equal reports whether a and b are the same bytes, looking at one after the other.
//
//go:norace
func Equal(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
