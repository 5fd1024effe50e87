package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/bench/store"
)

// TestStoreExpires has entries that live for a second, the least that all stores know,
// and for an hour. Stores that only look for what is too old when they are written to
// get the Sets for that.
func TestStoreExpires(t *testing.T) {
	for _, info := range store.Known() {
		if info.Name == store.Null {
			continue
		}
		t.Run(info.Name, func(t *testing.T) {
			t.Parallel()
			short, long := withTTL(t, info, time.Second), withTTL(t, info, time.Hour)
			gone := func() bool {
				return fill(short, 1, entries, 0) == nil && verify(short, nil, 0, 1, 0) != nil
			}
			if info.Expires {
				require.Eventually(t, gone, 20*time.Second, 100*time.Millisecond)
			} else {
				require.False(t, gone())
			}
			require.NoError(t, verify(long, nil, 0, 1, 0))
			require.NoError(t, short.Close())
			require.NoError(t, long.Close())
		})
	}
}

// withTTL returns a store that has been given the entry of id 0.
func withTTL(t *testing.T, info store.Info, ttl time.Duration) store.Store {
	t.Helper()
	s, err := info.New(store.Config{
		MaxBytes: 32 << 20, Entries: entries, EntryBytes: format.Bytes(), TTL: ttl, Synchronous: true,
	})
	require.NoError(t, err)
	require.NoError(t, fill(s, 0, 1, 0))
	require.NoError(t, verify(s, nil, 0, 1, 0))
	return s
}
