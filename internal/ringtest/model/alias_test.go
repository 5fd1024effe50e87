package model

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/torn"
)

// A key that lies where its value goes is still there when a call needs it again.

// aliased returns dst and the key "key" in one array.
func aliased() (dst, k []byte) {
	buf := append(make([]byte, 0, 64), "key"...)
	return buf[:0], buf
}

func TestAlias_GetAndDelRemovesTheKey(t *testing.T) {
	c := ringcache.New(ringtest.MinBytes)
	defer ringtest.CloseCache(t, c)
	require.NoError(t, c.Set([]byte("key"), []byte("value")))
	dst, k := aliased()
	out, ok := c.GetAndDel(dst, k)
	require.True(t, ok)
	require.Equal(t, "value", string(out))
	require.False(t, c.Has([]byte("key")))
}

func TestAlias_GetOrLoadOfAnExpiredEntryLoadsTheKey(t *testing.T) {
	g := ringtest.Tiny(1, 1024, 256)
	now := time.Duration(0)
	g.Elapsed = func() time.Duration { return now }
	c := ringtest.MustCache(t, g) // validated at the end
	require.NoError(t, c.SetWithTTL([]byte("key"), []byte("value"), time.Second))
	now = 2 * time.Second
	dst, k := aliased()
	out, err := c.GetOrLoad(context.Background(), dst, k,
		func(_ context.Context, k []byte) ([]byte, time.Duration, error) {
			return append([]byte("of "), k...), 0, nil
		})
	require.NoError(t, err)
	require.Equal(t, "of key", string(out))
	require.Equal(t, "of key", string(c.Get(nil, []byte("key"))))
}

// A refresh of an entry that is due is listed under its key, and loads that key.
func TestAlias_GetOrLoadOfADueEntryLoadsTheKey(t *testing.T) {
	g := ringtest.Default(ringtest.MinBytes)
	g.RefreshAhead = 2 * time.Hour
	c := ringtest.MustCache(t, g)
	require.NoError(t, c.SetWithTTL([]byte("key"), []byte("value"), time.Hour))
	dst, k := aliased()
	loaded := make(chan string, 1)
	out, err := c.GetOrLoad(context.Background(), dst, k,
		func(_ context.Context, k []byte) ([]byte, time.Duration, error) {
			loaded <- string(k)
			return []byte("fresh"), 0, nil
		})
	require.NoError(t, err)
	require.Equal(t, "value", string(out))
	require.Equal(t, "key", <-loaded)
	ringtest.AwaitWaiting(t, c, []byte("key"), -1)
	require.Equal(t, "fresh", string(c.Get(nil, []byte("key"))))
}

// Keys before, in and behind dst, touching it or not.
func TestAlias_OverlapsIsExact(t *testing.T) {
	buf := make([]byte, 64)
	for _, tt := range []struct {
		k, dst []byte
		want   bool
	}{
		{buf[0:16], buf[16:16], false},
		{buf[0:17], buf[16:16], true},
		{buf[16:32], buf[0:0:16], false},
		{buf[15:32], buf[0:0:16], true},
		{buf[20:24], buf[0:0:64], true},
		{buf[0:64], buf[20:20:24], true},
		{buf[3:3], buf[0:0:16], true}, // empty: it does not matter
		{buf[3:3], nil, false},
		{nil, buf[0:0], false},
		{make([]byte, 8), buf[0:0], false},
	} {
		if len(tt.k) > 0 {
			require.Equal(t, tt.want, torn.Overlaps(tt.dst, tt.k))
		} else {
			require.False(t, cap(tt.dst) == 0 && torn.Overlaps(tt.dst, tt.k))
		}
	}
}
