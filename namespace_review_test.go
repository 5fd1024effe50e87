package ringcache

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Who only loads has a warm start too: a generation that was dropped is stored again after
// loads, be they for misses or ahead of an expiry.
func TestNamespace_GenerationIsStoredAgainByLoads(t *testing.T) {
	load := func(context.Context, []byte) (Loaded, error) { return Loaded{TTL: time.Minute}, nil }
	typed := func(context.Context, int) (string, time.Duration, error) { return "v", time.Minute, nil }
	g := roomy(0)
	g.ahead = time.Hour // each hit is due
	for name, ask := range map[string]func(n *Namespace, view *Typed[int, string], i int) error{
		"misses": func(n *Namespace, _ *Typed[int, string], i int) error {
			_, err := n.GetOrLoad(t.Context(), nil, []byte{byte(i), byte(i >> 8)}, load)
			return err
		},
		"refreshes": func(n *Namespace, _ *Typed[int, string], i int) error {
			_, err := n.GetOrLoad(t.Context(), nil, []byte("k"), load)
			return err
		},
		"a view": func(_ *Namespace, view *Typed[int, string], i int) error {
			_, err := view.GetOrLoad(t.Context(), i, typed)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := mustCache(t, g)
			n := c.Namespace("n")
			view := NewTyped[int](c, StringCodec[string](), TypedOptions{Namespace: n})
			require.True(t, c.Del(n.space.entry))
			calls := 0
			for there := false; !there; calls++ {
				require.Less(t, calls, 10*keepEvery) // a stack that moves counts elsewhere
				require.NoError(t, ask(n, view, calls))
				_, there = n.stored()
			}
			stored, _ := n.stored()
			require.Equal(t, n.space.generation.Load(), stored)
			require.GreaterOrEqual(t, calls, keepEvery)
			require.EqualValues(t, calls, n.Stats().GetCalls)
			require.Zero(t, n.Stats().SetCalls)
		})
	}
}

// Any bytes will do as a name, as long as it comes back after a restart where the entry has
// room for it.
func TestNamespace_Names(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	longest := 65535 - len(reserved)
	names := map[string]bool{
		"":                             true,
		"\x00":                         true,
		"\xff\xfe":                     true,
		reserved:                       true,
		strings.Repeat("n", 20_000):    true, // a large entry
		strings.Repeat("n", longest):   true,
		strings.Repeat("n", longest+1): false,
		strings.Repeat("n", 2*longest): false,
	}
	k := []byte("k")
	c := openFile(t, path, minMaxBytes)
	for name := range names {
		require.NoError(t, c.Namespace(name).Set(k, []byte(name)[:min(len(name), 10)]))
	}
	for name := range names {
		v, ok := c.Namespace(name).HasGet(nil, k)
		require.True(t, ok)
		require.Equal(t, name[:min(len(name), 10)], string(v))
	}
	require.NoError(t, c.Close())
	c = openFile(t, path, minMaxBytes)
	for name, back := range names {
		require.Equal(t, back, c.Namespace(name).Has(k), "%d bytes", len(name))
	}
	for name := range names {
		require.NoError(t, c.Namespace(name).Invalidate())
		require.False(t, c.Namespace(name).Has(k))
	}
	require.NoError(t, c.Close())
	c = openFile(t, path, minMaxBytes)
	for name := range names {
		require.False(t, c.Namespace(name).Has(k), "%d bytes", len(name))
	}
	require.NoError(t, c.Close())
}
