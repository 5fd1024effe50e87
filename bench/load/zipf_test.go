package load

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func take(z *Zipf, n int) []uint64 {
	ids := make([]uint64, n)
	for i := range ids {
		ids[i] = z.Next()
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

func TestZipf_SeedDecides(t *testing.T) {
	ids := func(seed uint64) []uint64 { return take(NewZipf(seed, 1000, 0.99), 1000) }
	assert.Equal(t, ids(7), ids(7), "equal seeds")
	assert.NotEqual(t, ids(7), ids(8), "different seeds")
}

func TestZipf_BadArgumentsPanic(t *testing.T) {
	for name, mk := range map[string]func(){
		"zipf n=0":   func() { NewZipf(1, 0, 1) },
		"zipf s=0":   func() { NewZipf(1, 1, 0) },
		"zipf s=NaN": func() { NewZipf(1, 1, math.NaN()) },
	} {
		assert.Panics(t, mk, name)
	}
}
