//go:build unix

package persist

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// A panic of OnRemove while a file is opened with a smaller bound leaves it to the next cache.
func TestFile_OnRemovePanicsWhileItIsOpened(t *testing.T) {
	o := ringcache.Options{MaxBytes: 16 << 20, File: filepath.Join(t.TempDir(), "cache")}
	c, err := ringcache.NewWithOptions(o)
	require.NoError(t, err)
	ringtest.FillCache(t, c, 0, 100_000, 100)
	require.NoError(t, c.Close())
	o.MaxBytes = 8 << 20
	o.OnRemove = func(ringcache.Removal) { panic("mine") }
	require.PanicsWithValue(t, "mine", func() { _, _ = ringcache.NewWithOptions(o) })
	o.OnRemove = nil
	c, err = ringcache.NewWithOptions(o)
	require.NoError(t, err)
	require.Positive(t, c.Len())
	require.NoError(t, c.Close())
}
