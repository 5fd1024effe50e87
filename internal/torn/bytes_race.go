//go:build race

package torn

import "slices"

// Append is append, but copies byte by byte, which the race detector does not report.
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

// Equal reports whether a and b are the same bytes. It compares byte by byte.
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
