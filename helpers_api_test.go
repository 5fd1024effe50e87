package ringcache_test

import (
	"encoding/binary"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

const (
	floor    = 32 << 20 // the least that New takes maxBytes for
	maxValue = floor / 16
	maxKey   = 65535
)

// small returns the smallest cache there is.
func small(t testing.TB) *ringcache.Cache {
	t.Helper()
	c := ringcache.New(1)
	t.Cleanup(func() { closeIt(t, c) })
	return c
}

// closeIt closes a cache.
func closeIt(t testing.TB, c *ringcache.Cache) {
	t.Helper()
	require.NoError(t, c.Close())
	ringcache.CollectClosed()
}

// pattern returns n bytes that differ from those of every other tag.
func pattern(tag string, n int) []byte {
	b := make([]byte, n)
	x := uint32(len(tag))
	for i := range b {
		x = x*1664525 + 1013904223 + uint32(tag[i%len(tag)])
		b[i] = byte(x >> 24)
	}
	return b
}

func stats(c *ringcache.Cache) (s ringcache.Stats) {
	c.UpdateStats(&s)
	return s
}

// fill sets n entries of 8 bytes and a value, with ids from first on.
func fill(t *testing.T, c *ringcache.Cache, first, n, valueSize int) {
	t.Helper()
	key, value := make([]byte, 8), make([]byte, valueSize)
	for id := range n {
		binary.LittleEndian.PutUint64(key, uint64(first+id))
		if err := c.Set(key, value); err != nil {
			require.NoError(t, err)
		}
	}
}

// requireHas fails unless the value of k is v, byte for byte. It does not print them.
func requireHas(t *testing.T, c *ringcache.Cache, k, v []byte) {
	t.Helper()
	got, ok := c.HasGet(nil, k)
	if !ok || string(got) != string(v) {
		require.Fail(t, "not the value that was set",
			"key of %d bytes, value of %d: found %v, %d bytes", len(k), len(v), ok, len(got))
	}
}

// requirePart fails if part, unless empty, does not lie within whole.
func requirePart(t *testing.T, whole, part []byte) {
	t.Helper()
	if len(part) == 0 {
		return
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	first := uintptr(unsafe.Pointer(unsafe.SliceData(whole)))
	require.GreaterOrEqual(t, at, first, "a value lies before out")
	require.LessOrEqual(t, at+uintptr(len(part)), first+uintptr(len(whole)), "or behind it")
}

// within fails the test if fn, run in a goroutine, does not return.
func within(t *testing.T, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		require.Fail(t, "a call hangs: a lock was left held")
	}
}
