package compresstest

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

func (s suite) cacheReturnsWhatWasSet(t *testing.T) {
	cache, err := ringcache.NewWithOptions(ringcache.Options{
		MaxBytes: 64 << 20, Compressor: s.by,
	})
	require.NoError(t, err)
	defer cache.Close()

	_, values := records(t, ".json", 3000)
	value := func(i int) []byte { return values[i%len(values)][:300+i*37%2701] }
	key := func(i int) []byte { return fmt.Appendf(nil, "key %d", i) }
	const entries = 100_000 // 160 MB: more than twice what fits
	for range 100 {         // until the goroutine that compresses has had its turn, on one core too
		for i := range entries {
			cache.Set(key(i), value(i))
		}
		if cache.Stats().Compression.Compressed > 1000 {
			break
		}
		runtime.Gosched()
	}
	require.Greater(t, cache.Stats().Compression.Compressed, uint64(1000))
	hits := 0
	for i := range entries {
		if got := cache.Get(nil, key(i)); got != nil {
			hits++
			require.Equal(t, string(value(i)), string(got))
		}
	}
	got := cache.Stats()
	ratio := float64(got.Compression.BytesBefore) / float64(got.Compression.BytesAfter)
	t.Logf("%d hits, of them %d cold; %d packed, %.2f times smaller",
		hits, got.Compression.ColdHits, got.Compression.Compressed, ratio)
	assert.Positive(t, hits)
	assert.Positive(t, got.Compression.ColdHits)
	assert.Greater(t, ratio, 1.5)
	assert.Zero(t, got.Compression.Errors+got.Corruptions)
}
