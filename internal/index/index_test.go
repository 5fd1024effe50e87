package index

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The homes of a table share the hashes: each begins where the one before ends,
// and what lies between is its own.
func TestGeometry_HomesShareTheHashes(t *testing.T) {
	for _, groups := range []uint32{1, 2, 3, 7, 64, 100, 12_345} {
		var x geometry
		x.groups.Store(groups)
		require.Zero(t, x.start(0))
		require.EqualValues(t, 1<<HashBits, x.end(groups-1))
		for home := range groups {
			first, behind := x.start(home), x.end(home)
			require.Less(t, first, behind)
			require.Equal(t, home, x.home(first<<hashAt))
			require.Equal(t, home, x.home((behind-1)<<hashAt))
			if home > 0 {
				require.Equal(t, x.end(home-1), first)
			}
		}
	}
}
