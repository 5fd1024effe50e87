package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/testhook"
)

// An entry whose namespace is reset during its Set, after the generation was checked, is removed,
// although the Set's own search for forgotten entries has ended before the record is written.
func TestNamespace_ResetDuringASet(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(1, 1024, 64))
	n := c.Namespace("n")
	key, hash := ringtest.KeyOf(n, []byte("key"))
	w := store.Write{Key: key, Value: []byte("value"), Hash: hash, Kind: record.Spaced}
	ringtest.Change(c, 0, func(b *store.Store) {
		require.False(t, b.IsForgotten(&w))
		w.Measure(b.Shared)
		b.Shared.Generations.Forget(testhook.PartsOf(n).Generation.Load())
		require.NoError(t, b.Set(&w))
		require.Equal(t, 1, b.Sizes().Entries)
	})
	c.DeleteExpired()
	require.Zero(t, c.Stats().EntriesCount)
}
