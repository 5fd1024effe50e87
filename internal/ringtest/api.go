package ringtest

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// Limits of a cache of MinBytes.
const (
	MaxValue = MinBytes / 16
	MaxKey   = 65535
)

// Small returns the smallest cache there is.
func Small(t testing.TB) *ringcache.Cache {
	t.Helper()
	c := ringcache.New(MinBytes)
	t.Cleanup(func() { CloseCache(t, c) })
	return c
}

// Pattern returns n bytes that differ from those of every other tag.
func Pattern(tag string, n int) []byte {
	b := make([]byte, n)
	x := uint32(len(tag))
	for i := range b {
		x = x*1664525 + 1013904223 + uint32(tag[i%len(tag)])
		b[i] = byte(x >> 24)
	}
	return b
}

// RequireHas fails unless the value of k is v, byte for byte. It does not print them.
func RequireHas(t *testing.T, c *ringcache.Cache, k, v []byte) {
	t.Helper()
	got, ok := c.HasGet(nil, k)
	if !ok || string(got) != string(v) {
		require.Fail(t, "not the value that was set",
			"key of %d bytes, value of %d: found %v, %d bytes", len(k), len(v), ok, len(got))
	}
}

// RequirePart fails if part, unless empty, does not lie within whole.
func RequirePart(t *testing.T, whole, part []byte) {
	t.Helper()
	if len(part) == 0 {
		return
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	first := uintptr(unsafe.Pointer(unsafe.SliceData(whole)))
	require.GreaterOrEqual(t, at, first, "a value lies before out")
	require.LessOrEqual(t, at+uintptr(len(part)), first+uintptr(len(whole)), "or behind it")
}

// Within fails the test if fn, run in a goroutine, does not return.
func Within(t *testing.T, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	select {
	case <-done:
	case <-time.After(HangLimit):
		require.Fail(t, "a call hangs: a lock was left held")
	}
}
