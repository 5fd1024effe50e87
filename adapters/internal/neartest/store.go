package neartest

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// Store is the interface of a client's cache of one connection, for its message and entry types.
type Store[M any, E Entry[M]] interface {
	Flight(key, cmd string, ttl time.Duration, now time.Time) (M, E)
	Update(key, cmd string, val M) (pxat int64)
	Delete(keys []M)
}

// Entry is what a reader waits for.
type Entry[M any] interface {
	comparable
	Wait(ctx context.Context) (M, error)
}

// Message is a pointer to a reply.
type Message[M any] interface {
	*M
	CacheUnmarshalView(buf []byte) error
	CachePXAT() int64
	IsCacheHit() bool
	ToString() (string, error)
}

// Stores are the tests of a store by its interface, without a server. open returns the store of a
// new connection.
func Stores[M any, P Message[M], E Entry[M]](
	t *testing.T, open func(cache *ringcache.Cache) Store[M, E],
) {
	newStore := func(t *testing.T) Store[M, E] {
		cache := ringcache.New(32 << 20)
		t.Cleanup(func() { cache.Close() })
		return open(cache)
	}
	t.Run("miss, join, hit", func(t *testing.T) { missJoinHit[M, P](t, newStore(t)) })
	t.Run("a hit allocates the reply only", func(t *testing.T) { hitAllocates[M, P](t, newStore(t)) })
}

// text returns a string as a server sends it. Messages have no constructor, so it is made
// from the form that CacheMarshal has.
func text[M any, P Message[M]](s string) (m M) {
	b := append(make([]byte, 7, 16+len(s)), '$')
	b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
	if err := P(&m).CacheUnmarshalView(append(b, s...)); err != nil {
		panic(err)
	}
	return m
}

func missJoinHit[M any, P Message[M], E Entry[M]](t *testing.T, s Store[M, E]) {
	var none E
	now := time.Now()
	msg, entry := s.Flight("k", "GET", time.Hour, now)
	require.Zero(t, msg)
	require.True(t, entry == none, "no entry of a type either")
	_, entry = s.Flight("k", "GET", time.Hour, now)
	require.NotNil(t, entry)

	pxat := s.Update("k", "GET", text[M, P]("v"))
	require.Equal(t, now.Add(time.Hour).UnixMilli(), pxat)
	joined, err := entry.Wait(t.Context())
	require.NoError(t, err)
	hit, entry := s.Flight("k", "GET", time.Hour, now)
	require.True(t, entry == none)
	for _, msg := range []M{joined, hit} {
		got, err := P(&msg).ToString()
		require.NoError(t, err)
		require.Equal(t, "v", got)
		require.Equal(t, pxat, P(&msg).CachePXAT())
	}
	s.Delete([]M{text[M, P]("k")})
	msg, entry = s.Flight("k", "GET", time.Hour, now)
	require.Zero(t, msg)
	require.True(t, entry == none)
}

func hitAllocates[M any, P Message[M], E Entry[M]](t *testing.T, s Store[M, E]) {
	if RaceDetector {
		t.Skip("it makes code allocate more")
	}
	var none E
	now := time.Now()
	s.Flight("key", "GET", time.Hour, now)
	require.NotZero(t, s.Update("key", "GET", text[M, P](strings.Repeat("v", 100))))
	require.EqualValues(t, 1, testing.AllocsPerRun(100, func() {
		if _, entry := s.Flight("key", "GET", time.Hour, now); entry != none {
			t.Error("no hit")
		}
	}))
	msg, _ := s.Flight("key", "GET", time.Hour, now)
	require.True(t, P(&msg).IsCacheHit())
}
