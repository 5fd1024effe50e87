package bustest

import (
	"bytes"
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringbus"
)

// stuck is a transport whose subscriber does not get on until open is closed.
type stuck struct {
	ringbus.Transport
	open chan struct{}
}

func (s stuck) Subscribe(
	ctx context.Context, subscribed func(), receive func(message []byte),
) error {
	return s.Transport.Subscribe(ctx, subscribed, func(message []byte) {
		<-s.open
		receive(message)
	})
}

// start starts an instance in this process.
func (s *busServer) start(o ringbus.Options, wrap func(ringbus.Transport) ringbus.Transport) (
	*ringcache.Cache, *ringbus.Bus,
) {
	transport, closed, err := s.system.connect(s.addr())
	require.NoError(s.t, err)
	s.t.Cleanup(closed)
	cache := ringcache.New(32 << 20)
	bus := ringbus.New(cache, wrap(transport), o)
	run, cancel := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- bus.Run(run) }()
	s.t.Cleanup(func() {
		cancel()
		require.ErrorIs(s.t, <-ended, context.Canceled)
		cache.Close()
	})
	require.Eventually(s.t, func() bool { return bus.Stats().Subscribed }, patience, time.Millisecond)
	return cache, bus
}

// A subscriber that is too slow for what is sent loses its subscription and empties its cache. It
// holds up nobody.
func TestSlowSubscriber(t *testing.T) {
	eachSystem(t, func(t *testing.T, name string, s *busServer) {
		same := func(t ringbus.Transport) ringbus.Transport { return t }
		open := make(chan struct{})
		var lost atomic.Pointer[error]
		cache, bus := s.start(
			ringbus.Options{OnLost: func(err error) { lost.CompareAndSwap(nil, &err) }},
			func(t ringbus.Transport) ringbus.Transport { return stuck{t, open} })
		_, sender := s.start(ringbus.Options{}, same)
		quick, _ := s.start(ringbus.Options{}, same)

		for _, c := range []*ringcache.Cache{cache, quick} {
			require.NoError(t, c.Set([]byte("k"), nil))
		}
		long := bytes.Repeat([]byte("k"), 10_000) // Valkey 9 doesn't count long strings in a buffer
		for range 13_000 {                        // 130 MB
			require.NoError(t, sender.Del(ctx, long))
		}
		require.NoError(t, sender.Del(ctx, []byte("k")))
		require.Eventually(t, func() bool { return !quick.Has([]byte("k")) },
			patience, time.Millisecond)
		require.True(t, cache.Has([]byte("k")))

		close(open)
		require.Eventually(t, func() bool { return lost.Load() != nil && bus.Stats().Subscribed },
			patience, 10*time.Millisecond)
		t.Log(*lost.Load())
		require.False(t, cache.Has([]byte("k")))
		require.NoError(t, cache.Set([]byte("k2"), nil))
		require.NoError(t, sender.Del(ctx, []byte("k2")))
		require.Eventually(t, func() bool { return !cache.Has([]byte("k2")) },
			patience, time.Millisecond)
	})
}

// Run ends with its context, and leaves no subscription behind.
func TestRun_Ends(t *testing.T) {
	eachSystem(t, func(t *testing.T, name string, s *busServer) {
		t.Run("instance", func(t *testing.T) {
			of := *s
			of.t = t
			of.start(ringbus.Options{}, func(t ringbus.Transport) ringbus.Transport { return t })
		})
		_, bus := s.start(ringbus.Options{}, func(t ringbus.Transport) ringbus.Transport { return t })
		require.NoError(t, bus.Del(ctx, []byte("k")))
	})
}

// The READMEs show the transports as they are tested.
func TestReadme_Transports(t *testing.T) {
	readme, err := os.ReadFile("../../ringbus/README.md")
	require.NoError(t, err)
	for _, file := range []string{"transport_nats_test.go", "transport_redis_test.go"} {
		code, err := os.ReadFile(file)
		require.NoError(t, err)
		_, code, ok := bytes.Cut(code, []byte("\n)\n\n")) // after the imports
		require.True(t, ok)
		require.Contains(t, string(readme), "```go\n"+string(code)+"```\n", file)
	}
}
