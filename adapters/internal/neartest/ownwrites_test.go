package neartest

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOwnWrites tests the calls after which a client reads its own writes, while the server kills
// its connections.
func TestOwnWrites(t *testing.T) {
	runEach(t, map[string]func(*testing.T, target){
		"FourConnections": func(t *testing.T, target target) {
			testOwnWrites(t, target, 2, func(c client, key, value string) error {
				if err := c.do(ctx, "SET", key, value).err; err != nil {
					return err
				}
				return roundTrip(c, key)
			})
		},
		"OneConnection": func(t *testing.T, target target) {
			testOwnWrites(t, target, oneConnection, func(c client, key, value string) error {
				got := c.pipeline(ctx, []string{"SET", key, value}, []string{"PING"})
				if got[0].err != nil {
					return got[0].err
				}
				return got[1].err
			})
		},
	})
}

// testOwnWrites runs several writers with separate keys. After write returns nil, the writer must
// read its value; after an error, it tries again.
func testOwnWrites(
	t *testing.T, target target, multiplex int, write func(c client, key, value string) error,
) {
	const writers, writes = 8, 500
	r := &rig{t: t, server: startServer(t, target)}
	r.reader = connect(t, target, config{
		addrs: r.addrs(), name: "reader", cache: newCache(t), multiplex: multiplex,
	})
	r.other = connect(t, target, config{addrs: r.addrs(), multiplex: oneConnection})
	var wg sync.WaitGroup
	var hits, stale, failed, written atomic.Int64
	for w := range writers {
		wg.Go(func() {
			key := fmt.Sprint("key", w)
			for i := range writes {
				hits.Add(cached(r.reader, key)) // so that there is something to invalidate
				value := strconv.Itoa(i)
				for write(r.reader, key, value) != nil {
					failed.Add(1)
				}
				if got := r.get(key); got.err != nil || got.value != value {
					stale.Add(1)
				}
				written.Add(1)
			}
		})
	}
	killed := int64(0)
	for end := int64(writers * writes); written.Load() < end; time.Sleep(5 * time.Millisecond) {
		killed += r.killReaders()
	}
	wg.Wait()
	t.Logf("%d of %d writes read stale, %d hits, %d connections killed, %d writes failed",
		stale.Load(), written.Load(), hits.Load(), killed, failed.Load())
	require.Zero(t, stale.Load())
	require.Positive(t, killed)
	require.Greater(t, hits.Load(), int64(writers*writes/2))
}

// cached reads a key twice, and returns 1 if the second read was from the cache.
func cached(client client, key string) int64 {
	get(client, key, hour)
	if get(client, key, hour).hit {
		return 1
	}
	return 0
}
