package ringbus_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringbus"
)

const cacheSize = 32 << 20

var (
	ctx     = context.Background()
	errDown = errors.New("the bus is down")
)

// hub is a bus within the process. It delivers to its subscribers in Publish, itself included.
type hub struct {
	mu    sync.Mutex
	subs  map[*subscription]bool
	down  bool          // Publish and Subscribe fail
	slow  time.Duration // what Subscribe takes
	mute  bool          // Publish fails, but the subscriptions stay
	hold  chan struct{} // not nil: Publish waits until it is closed
	late  bool          // messages wait for deliver
	held  [][]byte
	sizes []int // of the messages
}

type subscription struct {
	receive func(message []byte)
	lost    chan error
}

func newHub() *hub { return &hub{subs: map[*subscription]bool{}} }

// set changes how the hub works.
func (h *hub) set(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

func (h *hub) Publish(ctx context.Context, message []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if hold := h.hold; hold != nil {
		h.mu.Unlock()
		select {
		case <-hold:
		case <-ctx.Done():
		}
		h.mu.Lock()
	}
	switch {
	case h.down, h.mute:
		return errDown
	case ctx.Err() != nil:
		return ctx.Err()
	}
	h.sizes = append(h.sizes, len(message))
	h.held = append(h.held, bytes.Clone(message))
	if !h.late {
		h.deliver()
	}
	return nil
}

// deliver sends what is held.
func (h *hub) deliver() {
	for _, m := range h.held {
		for s := range h.subs {
			s.receive(slices.Clip(m))
		}
	}
	h.held = nil
}

// shuffle sends what is held in another order, and some messages twice.
func (h *hub) shuffle(rnd *rand.Rand) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.held {
		if rnd.IntN(2) == 0 {
			h.held = append(h.held, m)
		}
	}
	rnd.Shuffle(len(h.held), func(i, j int) { h.held[i], h.held[j] = h.held[j], h.held[i] })
	h.deliver()
}

func (h *hub) Subscribe(
	ctx context.Context, subscribed func(), receive func(message []byte),
) error {
	s := &subscription{receive, make(chan error, 1)}
	var slow time.Duration
	h.set(func() { slow = h.slow })
	time.Sleep(slow)
	h.mu.Lock()
	if h.down {
		h.mu.Unlock()
		return errDown
	}
	h.subs[s] = true
	subscribed()
	h.mu.Unlock()
	defer h.set(func() { delete(h.subs, s) })
	select {
	case err := <-s.lost:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// kill makes all subscribers lose their connections.
func (h *hub) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs {
		delete(h.subs, s)
		s.lost <- errDown
	}
}

// inject sends a message of anybody.
func (h *hub) inject(message []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = append(h.held, message)
	h.deliver()
}

// instance is a process of a service.
type instance struct {
	t     testing.TB
	cache *ringcache.Cache
	bus   *ringbus.Bus
	stop  func() // ends Run and waits for it
}

// start starts an instance whose bus has subscribed, and stops it after the test.
func (h *hub) start(t testing.TB, o ringbus.Options) *instance {
	i := h.startAlone(t, o)
	for !i.bus.Stats().Subscribed {
		time.Sleep(time.Millisecond)
	}
	return i
}

// startAlone is start for a hub that is down.
func (h *hub) startAlone(t testing.TB, o ringbus.Options) *instance {
	cache := ringcache.New(cacheSize)
	i := &instance{t: t, cache: cache, bus: ringbus.New(cache, h, o)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- i.bus.Run(ctx) }()
	i.stop = sync.OnceFunc(func() {
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		cache.Close()
	})
	t.Cleanup(i.stop)
	return i
}

func (i *instance) set(c *ringcache.Cache, keys ...string) {
	i.t.Helper()
	for _, k := range keys {
		require.NoError(i.t, c.Set([]byte(k), []byte("value")))
	}
}

// requireHas requires that of some keys exactly those are there that are given as want.
func (i *instance) requireHas(c *ringcache.Cache, want ...string) {
	i.t.Helper()
	var got []string
	for k := range c.Keys() {
		got = append(got, string(k))
	}
	require.ElementsMatch(i.t, want, got)
}
