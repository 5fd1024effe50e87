package ringbus_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringbus"
)

func TestNew_NilPanics(t *testing.T) {
	const text = "ringbus: make bus: cache or transport is nil"
	require.PanicsWithValue(t, text, func() { ringbus.New(nil, newHub(), ringbus.Options{}) })
	cache := ringcache.New(cacheSize)
	defer cache.Close()
	require.PanicsWithValue(t, text, func() { ringbus.New(cache, nil, ringbus.Options{}) })
}

func TestDel_EveryInstance(t *testing.T) {
	h := newHub()
	a, b := h.start(t, ringbus.Options{}), h.start(t, ringbus.Options{})
	for _, i := range []*instance{a, b} {
		i.set(i.cache, "", "k1", "k2", "k3")
		i.set(i.cache.Namespace("n"), "", "k1", "k2")
		i.set(i.cache.Namespace(""), "k1")
	}
	require.NoError(t, a.bus.Del(ctx, []byte("k1"), nil))
	require.NoError(t, b.bus.Namespace("n").Del(ctx, []byte("k2")))
	require.NoError(t, a.bus.Namespace("").Del(ctx, []byte("k1")))
	require.NoError(t, a.bus.Del(ctx))
	for _, i := range []*instance{a, b} {
		i.requireHas(i.cache.Namespace("n"), "", "k1")
		i.requireHas(i.cache.Namespace(""))
		require.False(t, i.cache.Has([]byte("k1")))
		require.True(t, i.cache.Has([]byte("k3")))
		require.Equal(t, 2, i.cache.Len(), "k2 and k3")
	}
	require.Equal(t, uint64(1), a.bus.Stats().Received, "not its own")
	require.Equal(t, uint64(2), b.bus.Stats().Received)
}

func TestReset_EveryInstance(t *testing.T) {
	h := newHub()
	a, b := h.start(t, ringbus.Options{}), h.start(t, ringbus.Options{})
	for _, i := range []*instance{a, b} {
		i.set(i.cache, "k")
		i.set(i.cache.Namespace("n"), "k")
		i.set(i.cache.Namespace("m"), "k")
	}
	require.NoError(t, a.bus.Namespace("n").Reset(ctx))
	for _, i := range []*instance{a, b} {
		i.requireHas(i.cache.Namespace("n"))
		i.requireHas(i.cache.Namespace("m"), "k")
		require.True(t, i.cache.Has([]byte("k")))
	}
	require.NoError(t, a.bus.Reset(ctx))
	for _, i := range []*instance{a, b} {
		i.requireHas(i.cache)
		i.requireHas(i.cache.Namespace("m"))
	}
	require.Equal(t, uint64(1), b.bus.Stats().Emptied, "only when it had subscribed")
}

// A value that was loaded after Del stays when the message comes back.
func TestDel_EchoIsIgnored(t *testing.T) {
	h := newHub()
	a, b := h.start(t, ringbus.Options{}), h.start(t, ringbus.Options{})
	h.set(func() { h.late = true })
	require.NoError(t, a.bus.Del(ctx, []byte("k")))
	a.set(a.cache, "k")
	b.set(b.cache, "k")
	h.set(h.deliver)
	a.requireHas(a.cache, "k")
	b.requireHas(b.cache)
}

// A bus may be that of a namespace.
func TestNew_Namespace(t *testing.T) {
	h := newHub()
	a := h.start(t, ringbus.Options{})
	cache := ringcache.New(cacheSize)
	defer cache.Close()
	space := cache.Namespace("n")
	b := ringbus.New(space, h, ringbus.Options{})
	run, cancel := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- b.Run(run) }()
	for !b.Stats().Subscribed {
		time.Sleep(time.Millisecond)
	}
	a.set(cache, "k")
	a.set(space, "k", "k2")
	require.NoError(t, a.bus.Del(ctx, []byte("k")))
	a.requireHas(space, "k2")
	require.NoError(t, a.bus.Namespace("n").Reset(ctx))
	a.requireHas(space, "k2")
	require.NoError(t, a.bus.Reset(ctx))
	a.requireHas(space)
	require.True(t, cache.Has([]byte("k")))
	require.Panics(t, func() { b.Namespace("m") })
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// An instance does not make a namespace because of a message.
func TestNamespace_OthersDoNotMakeIt(t *testing.T) {
	h := newHub()
	a, b := h.start(t, ringbus.Options{}), h.start(t, ringbus.Options{})
	b.set(b.cache, "k")
	for i := range 1000 {
		n := a.bus.Namespace(fmt.Sprint(i))
		require.NoError(t, n.Del(ctx, []byte("k")))
		require.NoError(t, n.Reset(ctx))
	}
	for name := range b.cache.Namespaces() {
		require.Fail(t, "a namespace", name)
	}
	b.requireHas(b.cache, "k")
	require.Equal(t, uint64(1), b.bus.Stats().Emptied)
}

func TestNamespace_LongNamesAndKeys(t *testing.T) {
	h := newHub()
	a, b := h.start(t, ringbus.Options{}), h.start(t, ringbus.Options{})
	name, key := strings.Repeat("n", 64<<10), strings.Repeat("k", 65_527)
	space := b.cache.Namespace(name)
	b.set(space, key, "k")
	require.NoError(t, a.bus.Namespace(name).Del(ctx, []byte(key)))
	b.requireHas(space, "k")
	require.NoError(t, a.bus.Namespace(name).Reset(ctx))
	b.requireHas(space)

	b.set(b.cache, "k")
	tooLong := []byte(strings.Repeat("k", 1<<20))
	require.NoError(t, a.bus.Del(ctx, tooLong, []byte("k")), "no cache has such a key")
	b.requireHas(b.cache)
	for _, size := range h.sizes {
		require.LessOrEqual(t, size, 200_000)
	}
}

func TestDel_ManyKeys(t *testing.T) {
	h := newHub()
	a, b := h.start(t, ringbus.Options{}), h.start(t, ringbus.Options{})
	const n = 1_000_000
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = binary.BigEndian.AppendUint64(nil, uint64(i))
		if i%10 == 0 {
			require.NoError(t, a.cache.Set(keys[i], nil))
			require.NoError(t, b.cache.Set(keys[i], nil))
		}
	}
	b.set(b.cache, "other")
	require.NoError(t, a.bus.Del(ctx, keys...))
	require.Zero(t, a.cache.Len())
	b.requireHas(b.cache, "other")
	require.Len(t, h.sizes, 153) // of 6,552 keys of 10 bytes
	for _, size := range h.sizes {
		require.Less(t, size, 64<<10+10)
	}
}
