//go:build amd64 && !purego && !ringcache_heap && !race && !asan && !msan

package ringcache

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What is asked for on behalf of a Set that was put off is the record that it replaces, from its first byte on.
func TestAgenda_Foresee(t *testing.T) {
	g := tiny(1, 65536, 64)
	g.laterFrom = 0
	c := mustCache(t, g)
	for i := range 2000 { // enough for a hint
		k := []byte{byte(i), byte(i >> 8), 'k'}
		setPlain(t, c, string(k), "older value of this key")
	}
	c.Len()
	b, seen := &c.buckets[0], 0
	require.NotNil(t, b.index.hint.Load())
	for i := range 2000 {
		k := []byte{byte(i), byte(i >> 8), 'k'}
		h := c.shared.hash(k)
		setPlain(t, c, string(k), "newer value")
		require.True(t, isPutOff(c, string(k)))
		at := foresee(c, b.aside)
		if at.n == 0 {
			continue // not in its home group
		}
		seen++
		slot, ok := b.likely(h)
		require.True(t, ok)
		var want lines
		b.noteAsideLocked(&want, slot)
		require.Equal(t, want, at)
		b.aside.slot = slot
		require.Zero(t, foresee(c, b.aside).n, "it has been asked for")
		b.aside.slot = unsought
	}
	require.Greater(t, seen, 1500)

	p := b.aside
	c.Len()
	require.Zero(t, foresee(c, p).n, "nothing waits")
	setPlain(t, c, "a new key", "value")
	require.True(t, isPutOff(c, "a new key"))
	require.Zero(t, foresee(c, b.aside).n, "there is no record")
}
