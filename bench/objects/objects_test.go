package objects

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/bench/measure"
)

// Every store is measured, and finds what was set; only the one with a memo has hits of it.
func TestRun(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what is resident")
	}
	scale := measure.Scale{Entries: 64_000, Duration: time.Millisecond}
	for _, name := range StoreNames {
		m, err := Run(300, name, scale)
		require.NoError(t, err, name)
		require.Positive(t, m[HotNS], name)
		require.Equal(t, name == MemoStore, m[MemoShare] > 0, name)
	}
}

// The encodings have about the size that was asked for, and each value its own bytes.
func TestSizes(t *testing.T) {
	for _, size := range Sizes {
		items, err := itemsFor(size)
		require.NoError(t, err)
		seen := map[string]bool{}
		for id := range uint64(100) {
			data, err := encoding.Append(nil, newOrder(id, items))
			require.NoError(t, err)
			require.InDelta(t, size, len(data), 100)
			v, err := encoding.Decode(data)
			require.NoError(t, err)
			require.Equal(t, id, v.ID)
			seen[string(data)] = true
		}
		require.Len(t, seen, 100)
	}
}
