//go:build go1.25

package ringscs_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/adapters/ringscs"
)

func TestStore_SessionEndsAtItsExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ringscs.New(newCache(t), ringscs.Options{})
		require.NoError(t, s.Commit("token", []byte("data"), time.Now().Add(time.Second)))
		time.Sleep(900 * time.Millisecond)
		requireFound(t, s, "token", "data")
		time.Sleep(100 * time.Millisecond)
		requireNotFound(t, s, "token")
		all, err := s.All()
		require.NoError(t, err)
		require.Empty(t, all)
	})
}

// To the cache, a time to live of 0 is for ever.
func TestStore_SessionThatEndsNowIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ringscs.New(newCache(t), ringscs.Options{})
		require.NoError(t, s.Commit("token", []byte("old"), time.Now().Add(hour)))
		require.NoError(t, s.Commit("token", []byte("new"), time.Now()))
		requireNotFound(t, s, "token")
	})
}
