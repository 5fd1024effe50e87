package main

import (
	"bytes"
	"io"
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
	all := results{}
	v := values{"", 300, 4000}
	for _, kind := range []string{"json", "proto"} {
		for _, name := range storeNames {
			v.Kind = kind
			one := task{values: v, Store: name, Duration: time.Millisecond}
			f, err := one.do()
			require.NoError(t, err, name)
			require.Positive(t, f[hotNS], name)
			require.Equal(t, name == memoStore, f[memoHits] > 0, name)
			require.NotContains(t, f, hitRatio)

			one.Replay, one.MaxBytes, one.MaxObjects = true, 32<<20, 1000
			replay, err := one.do()
			require.NoError(t, err, name)
			require.Equal(t, name == otterStore, replay[hitRatio] < 100, "all but a quarter's room")
			all[name] = map[string][]float64{hotNS: {f[hotNS]}, hitRatio: {replay[hitRatio]}}
		}
	}
	var b bytes.Buffer
	table(&b, v, all)
	require.Regexp(t, `\| Get, 1,024 hot keys, ns \| \S+ \(\S+\) \*\*\S+\*\* \| `, b.String())
	require.Contains(t, b.String(), "100 (100-100)")
}

func TestParse(t *testing.T) {
	loads, err := parse(defaultLoads)
	require.NoError(t, err)
	require.Len(t, loads, 5)
	require.Equal(t, values{"json", 1000, 1_000_000}, loads[0])
	for _, list := range []string{"", "json:1000", "xml:1000:10000", "json:10:10000", "json:300:1"} {
		_, err := parse(list)
		require.ErrorContains(t, err, "-loads", list)
	}
	var out bytes.Buffer
	require.Error(t, run(t.Context(), []string{"-rounds=0"}, &out, io.Discard))
	require.Empty(t, out.String())
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
