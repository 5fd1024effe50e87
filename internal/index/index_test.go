package index

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The homes of a table share the hashes: each begins where the one before ends,
// and what lies between is its own.
func TestGeometry_HomesShareTheHashes(t *testing.T) {
	for _, groups := range []uint32{1, 2, 3, 7, 64, 100, 12_345} {
		x := Geometry(groups)
		require.Zero(t, x.start(0))
		require.EqualValues(t, 1<<HashBits, x.start(groups))
		for home := range groups {
			first, behind := x.start(home), x.start(home+1)
			require.Less(t, first, behind)
			require.Equal(t, home, x.Home(first<<hashAt))
			require.Equal(t, home, x.Home((behind-1)<<hashAt))
		}
	}
}
