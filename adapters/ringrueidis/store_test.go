package ringrueidis_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/internal/neartest"
	"github.com/ringcache/ringcache/adapters/ringrueidis"
)

func newStore(t *testing.T) rueidis.CacheStore {
	cache := ringcache.New(32 << 20)
	t.Cleanup(func() { cache.Close() })
	return ringrueidis.NewStore(cache)(rueidis.CacheStoreOption{})
}

// text returns a string as a server sends it. RedisMessage has no constructor, so it is made
// from the form that CacheMarshal has.
func text(s string) (m rueidis.RedisMessage) {
	b := append(make([]byte, 7, 16+len(s)), '$')
	b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
	if err := m.CacheUnmarshalView(append(b, s...)); err != nil {
		panic(err)
	}
	return m
}

func TestNewStore_NilCachePanics(t *testing.T) {
	require.PanicsWithValue(t, "ringrueidis: make store: cache is nil",
		func() { ringrueidis.NewStore(nil) })
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
	for _, msg := range []rueidis.RedisMessage{joined, hit} {
		got, err := msg.ToString()
		require.NoError(t, err)
		require.Equal(t, "v", got)
		require.Equal(t, pxat, msg.CachePXAT())
	}
	s.Delete([]rueidis.RedisMessage{text("k")})
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
