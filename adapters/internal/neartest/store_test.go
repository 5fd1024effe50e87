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

// store is the interface of a client's cache of one connection, for its message and entry types.
type store[M any, E entry[M]] interface {
	Flight(key, cmd string, ttl time.Duration, now time.Time) (M, E)
	Update(key, cmd string, val M) (pxat int64)
	Delete(keys []M)
}

// entry is what a reader waits for.
type entry[M any] interface {
	comparable
	Wait(ctx context.Context) (M, error)
}

// message is a pointer to a reply.
type message[M any] interface {
	*M
	CacheUnmarshalView(buf []byte) error
	CachePXAT() int64
	IsCacheHit() bool
	ToString() (string, error)
}

// testStore tests a store through its interface, without a server. open returns the store of a new
// connection.
func testStore[M any, P message[M], E entry[M]](
	t *testing.T, open func(cache *ringcache.Cache) store[M, E],
) {
	t.Run("miss, join, hit", func(t *testing.T) { missJoinHit[M, P](t, open(newCache(t))) })
	t.Run("a hit allocates the reply only", func(t *testing.T) {
		hitAllocates[M, P](t, open(newCache(t)))
	})
}

// text returns a string as a server sends it. Messages have no constructor, so it is made
// from the form that CacheMarshal has.
func text[M any, P message[M]](s string) (m M) {
	b := append(make([]byte, 7, 16+len(s)), '$')
	b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
	if err := P(&m).CacheUnmarshalView(append(b, s...)); err != nil {
		panic(err)
	}
	return m
}

func missJoinHit[M any, P message[M], E entry[M]](t *testing.T, s store[M, E]) {
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

func hitAllocates[M any, P message[M], E entry[M]](t *testing.T, s store[M, E]) {
	if raceDetector {
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
