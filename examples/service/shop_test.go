package main

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

func TestDescribe_ProductsAre300To3000BytesOfJSON(t *testing.T) {
	cfg := testConfig(t)
	db, err := openDatabase(t.Context(), cfg.dir, cfg.products)
	require.NoError(t, err)
	defer db.Close()
	texts := map[string]bool{}
	shortest, longest := 3000, 300
	for id := 1; id <= cfg.products; id++ {
		p, err := db.product(t.Context(), int64(id))
		require.NoError(t, err)
		require.Equal(t, describe(id), p.Text)
		answer, err := json.Marshal(p)
		require.NoError(t, err)
		shortest, longest = min(shortest, len(answer)), max(longest, len(answer))
		texts[p.Text] = true
	}
	require.Len(t, texts, cfg.products)
	require.GreaterOrEqual(t, shortest, 300)
	require.Less(t, shortest, 400)
	require.LessOrEqual(t, longest, 3000)
	require.Greater(t, longest, 2500)
}

func TestZipf_FavoursLowRanks(t *testing.T) {
	const products, draws = 1000, 100_000
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, skew := range []float64{0, 0.8, 1.1, 10} {
		popular := zipf(products, skew)
		counts := make([]int, products+1)
		for range draws {
			counts[popular.draw(rnd)]++
		}
		require.InDelta(t, popular[0]*draws, counts[1], 0.1*popular[0]*draws+50, "skew %v", skew)
		if skew == 0 { // all are as popular
			require.InDelta(t, draws/products, counts[7920%products], 60)
		}
	}
}

// What the cache has compressed comes back as it was, also by another start on the same file.
func TestShop_Compressed(t *testing.T) {
	cfg := testConfig(t)
	cfg.products, cfg.compress, cfg.file = 60_000, true, filepath.Join(cfg.dir, "compressed")
	s, err := openShop(nil, cfg, cfg.dir)
	require.NoError(t, err)
	for id := 1; id <= cfg.products; id++ {
		require.NoError(t, s.products.Set(int64(id), product{ID: int64(id), Text: describe(id)}))
	}
	require.Eventually(t,
		func() bool { return s.cache.Stats().Compression.Compressed > 100 }, waitFor, tick)
	requireProducts(t, s, cfg.products)
	require.Positive(t, s.cache.Stats().Compression.ColdHits)
	z := s.cache.Stats().Compression
	require.Greater(t, float64(z.BytesBefore), 1.2*float64(z.BytesAfter))
	held := s.cache.Stats()
	require.Positive(t, held.Compression.ColdEntries)
	require.NoError(t, s.cache.Close())

	s, err = openShop(nil, cfg, cfg.dir)
	require.NoError(t, err)
	defer s.cache.Close()
	if !cachesInFiles(t) {
		return
	}
	require.Positive(t, s.cache.Stats().Compression.ColdEntries)
	requireProducts(t, s, cfg.products)
	require.Positive(t, s.cache.Stats().Compression.ColdHits)
}

// What another version of the program has left is not read.
func TestShop_AnotherVersionStartsEmpty(t *testing.T) {
	if !cachesInFiles(t) {
		t.Skip("no caches in files here")
	}
	cfg := testConfig(t)
	cfg.file = filepath.Join(cfg.dir, "versions")
	for _, version := range []uint64{storedVersion - 1, storedVersion, storedVersion + 1} {
		other, err := ringcache.NewWithOptions(ringcache.Options{
			MaxBytes: cfg.cacheMB << 20, File: cfg.file, Version: version,
		})
		require.NoError(t, err)
		require.NoError(t, other.Set([]byte("k"), []byte("v")))
		require.NoError(t, other.Close())
		s, err := openShop(nil, cfg, cfg.dir)
		require.NoError(t, err)
		require.Equal(t, version == storedVersion, s.cache.Has([]byte("k")), "version %d", version)
		require.NoError(t, s.cache.Close())
	}
}

// While the process of the last deploy has the file, the next one goes on without it.
func TestShop_StartsEmptyWhileTheFileIsInUse(t *testing.T) {
	cfg := testConfig(t)
	first, err := openShop(nil, cfg, cfg.dir)
	require.NoError(t, err)
	defer first.cache.Close()
	require.NoError(t, first.products.Set(7, product{ID: 7}))
	second, err := openShop(nil, cfg, cfg.dir)
	require.NoError(t, err)
	defer second.cache.Close()
	require.False(t, second.products.Has(7))
	require.NoError(t, second.products.Set(8, product{ID: 8}))
	require.True(t, first.products.Has(7))
	require.False(t, first.products.Has(8))
}

// cachesInFiles reports whether there are any on this system.
func cachesInFiles(t *testing.T) bool {
	t.Helper()
	probe := ringcache.Options{MaxBytes: 32 << 20, File: filepath.Join(t.TempDir(), "probe")}
	c, err := ringcache.NewWithOptions(probe)
	if errors.Is(err, errors.ErrUnsupported) {
		return false
	}
	require.NoError(t, err)
	require.NoError(t, c.Close())
	return true
}

// requireProducts fails unless what the shop holds of the products is right.
func requireProducts(t *testing.T, s *shop, products int) {
	t.Helper()
	for id := 1; id <= products; id++ {
		p, ok, err := s.products.Get(int64(id))
		require.NoError(t, err)
		if ok && p.Text != describe(id) {
			t.Fatalf("product %d is another one: %+v", id, p)
		}
	}
	require.Zero(t, s.cache.Stats().Compression.Errors)
	require.Zero(t, s.cache.Stats().Corruptions)
}
