package ringcache

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNamespace_Allocs(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector pools drop what they are given")
	}
	n := mustCache(t, defaultGeometry(minMaxBytes)).Namespace("n")
	k, v := bytes.Repeat([]byte("k"), 120), []byte("a value")
	dst, keys, vals := make([]byte, 0, 2000), make([][]byte, 100), make([][]byte, 100)
	for i := range keys {
		keys[i] = k[:40+i%50]
	}
	sets := slices.Repeat([][]byte{v}, len(keys))
	ctx := context.Background()
	load := func(context.Context, []byte) (Loaded, error) { return Loaded{Value: v}, nil }
	seen := 0
	look := func(v []byte) { seen += len(v) }
	again := func(old []byte, _ bool) ([]byte, bool) { return old, true }
	require.NoError(t, n.Set(k, v))
	for _, tt := range []struct {
		name string
		call func()
	}{
		{"Set", func() { _ = n.Set(k, v) }},
		{"SetWithTTL", func() { _ = n.SetWithTTL(k, v, time.Hour) }},
		{"SetIfAbsent", func() { _, _ = n.SetIfAbsent(k, v) }},
		{"SetIfChanged", func() { _, _ = n.SetIfChanged(k, v) }},
		{"SetBatch", func() { _ = n.SetBatch(keys, sets) }},
		{"Update", func() { _ = n.Update(k, again) }},
		{"Get", func() { dst = n.Get(dst[:0], k) }},
		{"HasGet", func() { dst, _ = n.HasGet(dst[:0], k) }},
		{"Has", func() { n.Has(k) }},
		{"View", func() { n.View(k, look) }},
		{"GetBatch", func() { dst, _ = n.GetBatch(dst[:0], keys, vals) }},
		{"GetOrLoad", func() { dst, _ = n.GetOrLoad(ctx, dst[:0], k, load) }},
		{"Touch", func() { n.Touch(k, time.Hour) }},
		{"TTL", func() { n.TTL(k) }},
		{"GetAndDel", func() { dst, _ = n.GetAndDel(dst[:0], k); _ = n.Set(k, v) }},
		{"Del", func() { n.Del(k) }},
		{"Get of nothing", func() { dst = n.Get(dst[:0], k) }},
		{"keep", func() { n.keep() }},
		{"Stats", func() { n.Stats() }},
	} {
		zeroAllocs(t, "namespace", tt.name, tt.call)
	}
	require.NotZero(t, seen)
}
