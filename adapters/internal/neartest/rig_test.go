package neartest

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

const (
	hour      = time.Hour
	cacheSize = 32 << 20
	patience  = 10 * time.Second // what takes longer fails

	oneConnection = -1 // as a config.multiplex
)

var ctx = context.Background()

// newCache returns a small cache that is closed at the end of the test.
func newCache(t testing.TB) *ringcache.Cache {
	cache := ringcache.New(cacheSize)
	t.Cleanup(func() { cache.Close() })
	return cache
}

// connect returns a client that is closed at the end of the test.
func connect(t testing.TB, target target, c config) client {
	client, err := target.connect(c)
	require.NoError(t, err)
	t.Cleanup(client.close)
	return client
}

// rig is a server, a reader with a near cache, and another client, which writes.
type rig struct {
	t      *testing.T
	server *server
	reader client
	other  client
}

func newRig(t *testing.T, target target) *rig {
	r := &rig{t: t, server: startServer(t, target)}
	r.reader = connect(t, target, config{addrs: r.addrs(), name: "reader", cache: newCache(t)})
	r.other = connect(t, target, config{addrs: r.addrs(), multiplex: oneConnection})
	return r
}

func (r *rig) addrs() []string { return []string{r.server.addr()} }

// write sends a command with the other client, and waits for the reply.
func (r *rig) write(words ...string) {
	r.t.Helper()
	require.NoError(r.t, r.other.do(ctx, words...).err)
}

func (r *rig) get(key string) reply { return get(r.reader, key, hour) }

// get reads a key through the near cache, with a timeout.
func get(client client, key string, ttl time.Duration) reply {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return client.doCache(ctx, ttl, "GET", key)
}

// requireCached reads want twice, the second time from the cache.
func (r *rig) requireCached(key, want string) {
	r.t.Helper()
	for i := range 2 {
		got := r.get(key)
		require.NoError(r.t, got.err)
		require.Equal(r.t, want, got.value)
		require.Equal(r.t, i == 1, got.hit, "read %d is from the cache", i+1)
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
	require.NoError(r.t, got.err)
	if want == "" {
		require.True(r.t, got.isNil, "read %q: want no value", got.value)
		return
	}
	require.Equal(r.t, want, got.value)
}

var roundTrips atomic.Int64

// roundTrip makes a round trip on the connection that the near cache uses for key, by the read that
// the READMEs name: no other has its range, so it neither hits nor joins a request, and with a time
// to live of 0 it is not stored. That the key has another type does not matter.
func roundTrip(client client, key string) error {
	n := strconv.FormatInt(roundTrips.Add(1), 10)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := client.doCache(ctx, 0, "GETRANGE", key, n, n).err
	if err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE") {
		return nil
	}
	return err
}

// text sends a command whose reply is a string with the other client.
func (r *rig) text(words ...string) string {
	r.t.Helper()
	got := r.other.do(ctx, words...)
	require.NoError(r.t, got.err)
	text, ok := got.value.(string)
	require.True(r.t, ok, "%q is %T", words, got.value)
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
