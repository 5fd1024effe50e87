package workload

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func take(s Source, n int) []uint64 {
	ids := make([]uint64, n)
	for i := range ids {
		ids[i] = s.Next()
	}
	return ids
}

// The share of each of the first ranks must be what the definition says.
func TestZipf_Shares(t *testing.T) {
	const draws = 400_000
	for _, s := range []float64{0.5, 0.99, 1, 1.5} {
		for _, n := range []uint64{1, 2, 1000} {
			t.Run(fmt.Sprintf("s=%v/n=%d", s, n), func(t *testing.T) {
				counts := make([]float64, n)
				for _, id := range take(NewZipf(1, n, s), draws) {
					counts[id]++ // an id out of range panics
				}
				var sum float64
				for r := uint64(1); r <= n; r++ {
					sum += math.Pow(float64(r), -s)
				}
				for r := uint64(1); r <= min(n, 5); r++ {
					want := math.Pow(float64(r), -s) / sum * draws
					// Six standard deviations of a binomial count.
					assert.InDelta(t, want, counts[r-1], 6*math.Sqrt(want)+1, "rank %d", r)
				}
			})
		}
	}
}

func TestSources_SeedDecides(t *testing.T) {
	makers := map[string]func(seed uint64) Source{
		"zipf":  func(seed uint64) Source { return NewZipf(seed, 1000, 0.99) },
		"churn": func(seed uint64) Source { return NewChurn(seed, 1000, 0.99, 10) },
	}
	for name, mk := range makers {
		assert.Equal(t, take(mk(7), 1000), take(mk(7), 1000), "%s: equal seeds", name)
		assert.NotEqual(t, take(mk(7), 1000), take(mk(8), 1000), "%s: different seeds", name)
	}
}

func TestScanAndLoop(t *testing.T) {
	require.Equal(t, []uint64{5, 6, 7, 8}, take(NewScan(5), 4))
	require.Equal(t, []uint64{0, 1, 2, 0, 1, 2, 0}, take(NewLoop(3), 7))
}

// The window of a Churn must move by one id per step and never be left.
func TestChurn_WindowMoves(t *testing.T) {
	const n, every = 50, 4
	c := NewChurn(3, n, 0.9, every)
	for i := range uint64(10_000) {
		low := i / every
		if id := c.Next(); id < low || id >= low+n {
			require.Fail(t, "out of range", "access %d: id %d outside [%d, %d)", i, id, low, low+n)
		}
	}
}

func TestNew_BadArgumentsPanic(t *testing.T) {
	for name, mk := range map[string]func(){
		"zipf n=0":      func() { NewZipf(1, 0, 1) },
		"zipf s=0":      func() { NewZipf(1, 1, 0) },
		"zipf s=NaN":    func() { NewZipf(1, 1, math.NaN()) },
		"loop n=0":      func() { NewLoop(0) },
		"churn every=0": func() { NewChurn(1, 1, 1, 0) },
	} {
		assert.Panics(t, mk, name)
	}
}
