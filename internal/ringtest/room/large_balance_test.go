package room

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/ringtest"
)

// An entry of 20 KB stays for a while in a cache that is full of short ones, even if it is the only
// large one: the large buckets give up dead bytes for small ones, but live entries only beyond
// their share.
func TestRoom_OneLargeEntryStays(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(64<<20))
	ringtest.FillCache(t, c, 0, 300_000, 260)
	require.NoError(t, c.Set([]byte("large"), make([]byte, 20_000)))
	ringtest.FillCache(t, c, 300_000, 304_000, 260)
	require.True(t, c.Has([]byte("large")))
}

// Resize leaves short entries in small buckets, however many of the Sets of late were large.
func TestRoom_ShortEntriesStayInSmallBuckets(t *testing.T) {
	const entries = 200_000
	c := ringtest.MustCache(t, ringtest.Default(64<<20))
	ringtest.FillCache(t, c, 0, entries, 50)
	inSmall := func() (n int) {
		for i := range ringtest.Shared(c).Buckets {
			n += ringtest.Nth(c, i).Sizes().Entries
		}
		return n
	}
	for i := range 8000 {
		require.NoError(t, c.Set(fmt.Append(nil, "large", i%20), make([]byte, 200_000+i%3)))
	}
	require.Equal(t, entries, inSmall())
	require.NoError(t, c.Resize(60<<20))
	require.Equal(t, entries, inSmall())
}
