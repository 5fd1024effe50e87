package objects

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every store is measured, and finds what was set; only the one with a memo has hits of it.
func TestTask(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what is resident")
	}
	v := Values{"", 300, 4000}
	for _, kind := range []string{"json", "proto"} {
		for _, name := range StoreNames {
			v.Kind = kind
			one := Task{Values: v, Store: name, Duration: time.Millisecond}
			f, err := one.Do()
			require.NoError(t, err, name)
			require.Positive(t, f[HotNS], name)
			require.Equal(t, name == MemoStore, f[MemoShare] > 0, name)
			require.NotContains(t, f, HitRatio)

			one.Replay, one.MaxBytes, one.MaxObjects = true, 32<<20, 1000
			replay, err := one.Do()
			require.NoError(t, err, name)
			require.Equal(t, name == OtterStore, replay[HitRatio] < 100, "all but a quarter's room")
		}
	}
}

// The encodings have about the size that was asked for, and each value its own bytes.
func TestKinds(t *testing.T) {
	for _, size := range []int{300, 1000, 3000} {
		testKind(t, &orders, size)
		testKind(t, &messages, size)
	}
}

func testKind[V any](t *testing.T, k *kind[V], size int) {
	t.Helper()
	parts, err := k.partsFor(size)
	require.NoError(t, err)
	seen := map[string]bool{}
	for id := range uint64(100) {
		data, err := k.codec.Append(nil, k.make(id, parts))
		require.NoError(t, err)
		require.InDelta(t, size, len(data), 100)
		v, err := k.codec.Decode(data)
		require.NoError(t, err)
		require.Equal(t, id, k.id(v))
		seen[string(data)] = true
	}
	require.Len(t, seen, 100)
}
