package neartest

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/internal/respserver"
)

const (
	hour      = time.Hour
	cacheSize = 32 << 20
	patience  = 10 * time.Second // what takes longer fails

	oneConnection = -1 // as a Config.Multiplex
)

var ctx = context.Background()

// newCache returns a small cache that is closed at the end of the test.
func newCache(t testing.TB) *ringcache.Cache {
	cache := ringcache.New(cacheSize)
	t.Cleanup(func() { cache.Close() })
	return cache
}

// requireStarted skips the test where the server is not installed.
func requireStarted(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, respserver.ErrNotInstalled) && os.Getenv("RINGCACHE_CI") == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
}

// connect returns a client that is closed at the end of the test.
func connect(t testing.TB, target Target, c Config) Client {
	client, err := target.Connect(c)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// rig is a server, a reader with a near cache and another client, which writes.
type rig struct {
	t      *testing.T
	server *respserver.Server
	reader Client
	other  Client
}

func newRig(t *testing.T, target Target) *rig {
	server, err := respserver.Start(t.TempDir(), target.Programs)
	requireStarted(t, err)
	t.Cleanup(server.Kill)
	r := &rig{t: t, server: server}
	r.reader = connect(t, target, Config{Addrs: r.addrs(), Name: "reader", Cache: newCache(t)})
	r.other = connect(t, target, Config{Addrs: r.addrs(), Multiplex: oneConnection})
	return r
}

func (r *rig) addrs() []string { return []string{r.server.Addr()} }

// write has the other client send a command, and waits for the reply.
func (r *rig) write(words ...string) {
	r.t.Helper()
	require.NoError(r.t, r.other.Do(ctx, words...).Err)
}

func (r *rig) get(key string) Reply { return get(r.reader, key, hour) }

// get reads a key through the near cache. It does not wait for ever.
func get(client Client, key string, ttl time.Duration) Reply {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return client.DoCache(ctx, ttl, "GET", key)
}

// requireCached reads want twice, the second time from the cache.
func (r *rig) requireCached(key, want string) {
	r.t.Helper()
	for i := range 2 {
		got := r.get(key)
		require.NoError(r.t, got.Err)
		require.Equal(r.t, want, got.Value)
		require.Equal(r.t, i == 1, got.Hit, "read %d is from the cache", i+1)
	}
}

// requireAfterRoundTrip is the guarantee: after a round trip, want is read; "" is no value.
func (r *rig) requireAfterRoundTrip(key, want string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return roundTrip(r.reader, key) == nil },
		2*patience, 10*time.Millisecond, "the connection comes back")
	r.requireRead(key, want)
}

// requireRead reads want; "" is no value.
func (r *rig) requireRead(key, want string) {
	r.t.Helper()
	got := r.get(key)
	require.NoError(r.t, got.Err)
	if want == "" {
		require.True(r.t, got.Nil, "read %q: want no value", got.Value)
		return
	}
	require.Equal(r.t, want, got.Value)
}

var roundTrips atomic.Int64

// roundTrip sends a request on the connection that the near cache uses for key, and waits
// for the reply: it reads a key of the same slot that nobody has read before.
func roundTrip(client Client, key string) error {
	if !strings.HasPrefix(key, "{") { // it has no slot of another word
		key = "{" + key + "}"
	}
	never := key + strconv.FormatInt(roundTrips.Add(1), 10)
	return get(client, never, time.Millisecond).Err
}

// text has the other client send a command whose reply is a string.
func (r *rig) text(words ...string) string {
	r.t.Helper()
	got := r.other.Do(ctx, words...)
	require.NoError(r.t, got.Err)
	text, ok := got.Value.(string)
	require.True(r.t, ok, "%q is %T", words, got.Value)
	return strings.TrimPrefix(text, "txt:")
}

// readerIDs returns the ids of the connections named reader in a CLIENT LIST.
func readerIDs(list string) (ids []string) {
	for line := range strings.Lines(list) {
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
