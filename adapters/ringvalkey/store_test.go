package ringvalkey_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/internal/neartest"
	"github.com/ringcache/ringcache/adapters/ringvalkey"
)

func newStore(t *testing.T) valkey.CacheStore {
	cache := ringcache.New(32 << 20)
	t.Cleanup(func() { cache.Close() })
	return ringvalkey.NewStore(cache)(valkey.CacheStoreOption{})
}

// text returns a string as a server sends it. ValkeyMessage has no constructor, so it is made
// from the form that CacheMarshal has.
func text(s string) (m valkey.ValkeyMessage) {
	b := append(make([]byte, 7, 16+len(s)), '$')
	b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
	if err := m.CacheUnmarshalView(append(b, s...)); err != nil {
		panic(err)
	}
	return m
}

func TestNewStore_NilCachePanics(t *testing.T) {
	require.PanicsWithValue(t, "ringvalkey: make store: cache is nil",
		func() { ringvalkey.NewStore(nil) })
}

func TestFlight_MissJoinHit(t *testing.T) {
	s, now := newStore(t), time.Now()
	msg, entry := s.Flight("k", "GET", time.Hour, now)
	require.Zero(t, msg)
	require.True(t, entry == nil, "no entry of a type either")
	_, entry = s.Flight("k", "GET", time.Hour, now)
	require.NotNil(t, entry)

	pxat := s.Update("k", "GET", text("v"))
	require.Equal(t, now.Add(time.Hour).UnixMilli(), pxat)
	joined, err := entry.Wait(t.Context())
	require.NoError(t, err)
	hit, entry := s.Flight("k", "GET", time.Hour, now)
	require.Nil(t, entry)
	for _, msg := range []valkey.ValkeyMessage{joined, hit} {
		got, err := msg.ToString()
		require.NoError(t, err)
		require.Equal(t, "v", got)
		require.Equal(t, pxat, msg.CachePXAT())
	}
	s.Delete([]valkey.ValkeyMessage{text("k")})
	msg, entry = s.Flight("k", "GET", time.Hour, now)
	require.Zero(t, msg)
	require.Nil(t, entry)
}

func TestFlight_HitAllocatesTheReplyOnly(t *testing.T) {
	if neartest.RaceDetector {
		t.Skip("it makes code allocate more")
	}
	s, now := newStore(t), time.Now()
	s.Flight("key", "GET", time.Hour, now)
	require.NotZero(t, s.Update("key", "GET", text(strings.Repeat("v", 100))))
	require.EqualValues(t, 1, testing.AllocsPerRun(100, func() {
		if msg, entry := s.Flight("key", "GET", time.Hour, now); entry != nil || !msg.IsCacheHit() {
			t.Error("no hit")
		}
	}))
}
