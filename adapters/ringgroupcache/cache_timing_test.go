package ringgroupcache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/groupcache/groupcache-go/v3"
	"github.com/groupcache/groupcache-go/v3/transport"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringgroupcache"
)

// timed are the caches that are compared: groupcache's own (nil) and this one.
var timed = []struct {
	name    string
	factory func(int64) (groupcache.Cache, error)
}{
	{"lru", nil}, {"ring", ringgroupcache.Factory(ringcache.Options{})},
}

// filled returns a group that has n values of 100 bytes, and their keys in random order.
func filled(
	b *testing.B, factory func(int64) (groupcache.Cache, error), n int,
) (groupcache.Group, []string) {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("product:%012d", i)
	}
	value := make([]byte, 100)
	loads := 0
	load := func(_ context.Context, _ string, dest transport.Sink) error {
		loads++
		return dest.SetBytes(value, time.Time{})
	}
	instance := groupcache.New(groupcache.Options{CacheFactory: factory})
	group, err := instance.NewGroup("products", 1<<30, groupcache.GetterFunc(load))
	require.NoError(b, err)
	for range 2 {
		for _, k := range keys {
			var v transport.ByteView
			require.NoError(b, group.Get(context.Background(), k, transport.ByteViewSink(&v)))
		}
		require.Equal(b, n, loads, "all are hits the second time")
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return group, keys
}

// BenchmarkHit is a Group.Get of a value that the process has. A view is what Get of the cache
// returns; bytes are a copy of it, which a peer gets, too.
func BenchmarkHit(b *testing.B) {
	for _, n := range []int{1_000, 1_000_000} {
		for _, t := range timed {
			group, keys := filled(b, t.factory, n)
			sinks := map[string]func() transport.Sink{
				"view":  func() transport.Sink { return transport.ByteViewSink(new(transport.ByteView)) },
				"bytes": func() transport.Sink { return transport.AllocatingByteSliceSink(new([]byte)) },
			}
			for name, sink := range sinks {
				b.Run(fmt.Sprintf("n=%d/sink=%s/cache=%s", n, name, t.name), func(b *testing.B) {
					b.ReportAllocs()
					for i := 0; b.Loop(); i++ {
						if err := group.Get(b.Context(), keys[i%n], sink()); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// BenchmarkGC is a collection while a group has a million values, and the keys of this benchmark
// are gone.
func BenchmarkGC(b *testing.B) {
	for _, t := range timed {
		group, _ := filled(b, t.factory, 1_000_000)
		runtime.GC()
		b.Run("cache="+t.name, func(b *testing.B) {
			for b.Loop() {
				runtime.GC()
			}
		})
		runtime.KeepAlive(group)
	}
}
