package ringrueidis_test

import (
	"context"
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringrueidis"
	"github.com/ringcache/ringcache/adapters/ringrueidis/internal/redisserver"
)

const (
	hour      = time.Hour
	cacheSize = 32 << 20
	patience  = 10 * time.Second // what takes longer fails
)

var ctx = context.Background()

// newCache returns a small cache that is closed at the end of the test.
func newCache(t testing.TB) *ringcache.Cache {
	cache := ringcache.New(cacheSize)
	t.Cleanup(func() { cache.Close() })
	return cache
}

// newStore returns the store of one more connection.
func newStore(cache *ringcache.Cache) rueidis.CacheStore {
	return ringrueidis.NewStore(cache)(rueidis.CacheStoreOption{})
}

// reply returns a string as a server sends it whose key expires at pxat (0: never).
// RedisMessage has no constructor, so it is made from the form that CacheMarshal has.
func reply(typ byte, text string, pxat int64) (m rueidis.RedisMessage) {
	b := make([]byte, 0, 16+len(text))
	for i := range 7 {
		b = append(b, byte(pxat>>(8*i)))
	}
	b = append(b, typ)
	b = binary.BigEndian.AppendUint64(b, uint64(len(text)))
	if err := m.CacheUnmarshalView(append(b, text...)); err != nil {
		panic(err)
	}
	return m
}

func text(s string) rueidis.RedisMessage { return reply('$', s, 0) }

// startRedis starts a server that ends with the test.
func startRedis(t testing.TB) *redisserver.Server {
	s, err := redisserver.Start(t.TempDir())
	if err == redisserver.ErrNotInstalled && os.Getenv("RINGCACHE_CI") == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(s.Kill)
	return s
}

// connect returns a client with a near cache.
func connect(t testing.TB, addr string, o rueidis.ClientOption) rueidis.Client {
	o.InitAddress = []string{addr}
	o.ForceSingleClient = true
	if o.NewCacheStoreFn == nil && !o.DisableCache {
		o.NewCacheStoreFn = ringrueidis.NewStore(newCache(t))
	}
	client, err := rueidis.NewClient(o)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// rig is a server, a reader with a near cache and another client, which writes.
type rig struct {
	t      *testing.T
	server *redisserver.Server
	reader rueidis.Client
	other  rueidis.Client
}

func newRig(t *testing.T) *rig {
	server := startRedis(t)
	return &rig{
		t:      t,
		server: server,
		reader: connect(t, server.Addr(), rueidis.ClientOption{ClientName: "reader"}),
		other:  connect(t, server.Addr(), rueidis.ClientOption{DisableCache: true}),
	}
}

// write has the other client send a command, and waits for the reply.
func (r *rig) write(args ...string) {
	r.t.Helper()
	cmd := r.other.B().Arbitrary(args...).Build()
	err := r.other.Do(ctx, cmd).Error()
	if !rueidis.IsRedisNil(err) {
		require.NoError(r.t, err)
	}
}

func (r *rig) get(key string) rueidis.RedisResult { return get(r.reader, key, hour) }

// get reads a key through the near cache. It does not wait for ever.
func get(client rueidis.Client, key string, ttl time.Duration) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return client.DoCache(ctx, client.B().Get().Key(key).Cache(), ttl)
}

// requireCached reads want twice, the second time from the cache.
func (r *rig) requireCached(key, want string) {
	r.t.Helper()
	for i := range 2 {
		res := r.get(key)
		got, err := res.ToString()
		require.NoError(r.t, err)
		require.Equal(r.t, want, got)
		require.Equal(r.t, i == 1, res.IsCacheHit(), "read %d is from the cache", i+1)
	}
}

// requireAfterRoundTrip is the guarantee: after a round trip, want is read; "" is no value.
func (r *rig) requireAfterRoundTrip(key, want string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return roundTrip(r.reader, key) == nil },
		2*patience, 10*time.Millisecond, "the connection comes back")
	got, err := r.get(key).ToString()
	if want == "" {
		require.True(r.t, rueidis.IsRedisNil(err), "read %q, %v: want no value", got, err)
		return
	}
	require.NoError(r.t, err)
	require.Equal(r.t, want, got)
}

var roundTrips atomic.Int64

// roundTrip sends a request on the connection that DoCache uses for key, and waits for the
// reply: it reads a key of the same slot that nobody has read before.
func roundTrip(client rueidis.Client, key string) error {
	if !strings.HasPrefix(key, "{") { // it has no slot of another word
		key = "{" + key + "}"
	}
	never := key + strconv.FormatInt(roundTrips.Add(1), 10)
	err := get(client, never, time.Millisecond).Error()
	if rueidis.IsRedisNil(err) {
		return nil
	}
	return err
}

// readerIDs returns the ids of the connections named reader in a CLIENT LIST.
func readerIDs(list string) (ids []string) {
	for line := range strings.Lines(strings.TrimPrefix(list, "txt:")) {
		var id, name string
		for field := range strings.FieldsSeq(line) {
			switch k, v, _ := strings.Cut(field, "="); k {
			case "id":
				id = v
			case "name":
				name = v
			}
		}
		if name == "reader" {
			ids = append(ids, id)
		}
	}
	return ids
}
