//go:build go1.25

package entries

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// The cache's own clock, under time that a test may let pass.
func TestExpiry_RealClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 1 << 20, TTL: time.Minute})
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close()) }()
		require.NoError(t, c.Set([]byte("default"), []byte("v")))
		require.NoError(t, c.SetWithTTL([]byte("second"), []byte("v"), time.Second))
		require.NoError(t, c.SetWithTTL([]byte("never"), []byte("v"), 0))

		time.Sleep(900 * time.Millisecond)
		require.True(t, c.Has([]byte("second")))
		time.Sleep(100 * time.Millisecond)
		require.False(t, c.Has([]byte("second")))
		left, ok := c.TTL([]byte("default"))
		require.True(t, ok)
		require.Equal(t, 59*time.Second, left)

		time.Sleep(59 * time.Second)
		require.False(t, c.Has([]byte("default")))
		time.Sleep(1000 * time.Hour)
		require.True(t, c.Has([]byte("never")))
		require.Equal(t, 3, c.Len())
		require.Equal(t, 2, c.DeleteExpired())
		require.Equal(t, 1, c.Len())
	})
}
