package ringtest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The stamps must bite, or no test that rests on them does.
func TestStamp_FindsMixtures(t *testing.T) {
	for _, size := range []int{0, 1, 7, 8, 15, 16, 17, 100, 1000} {
		s := Stamp{ID: 7, Version: 3, Size: size}
		b := s.Value(nil)
		require.True(t, s.Wrote(b), "size %d", size)
		for i := range b {
			b[i] ^= 1
			require.False(t, s.Wrote(b), "size %d, byte %d has changed", size, i)
			_, err := ReadStamp(b)
			require.Error(t, err, "size %d, byte %d has changed", size, i)
			b[i] ^= 1
		}
		if size > 0 {
			next := Stamp{ID: 7, Version: 4, Size: size}
			require.False(t, next.Wrote(b), "size %d: another version", size)
			require.False(t, s.Wrote(b[:size-1]), "size %d: a byte less", size)
		}
	}
}
