package load

import (
	"math"
	"testing"
)

func TestRandIsUniform(t *testing.T) {
	const buckets, draws = 100, 1_000_000
	r := NewRand(1)
	var count [buckets]int
	for range draws {
		count[r.Below(buckets)]++
	}
	for i, n := range count {
		if math.Abs(float64(n)-draws/buckets) > 6*math.Sqrt(draws/buckets) {
			t.Errorf("bucket %d: %d of %d draws", i, n, draws)
		}
	}
}

func TestRandIsDeterministic(t *testing.T) {
	a, b, c := NewRand(7), NewRand(7), NewRand(8)
	for range 100 {
		x := a.Uint64()
		if x != b.Uint64() {
			t.Fatal("the same seed gives other numbers")
		}
		if x == c.Uint64() {
			t.Fatal("another seed gives the same number")
		}
	}
}

func TestZipfIDs(t *testing.T) {
	const n = 5000
	r := NewRand(5)
	ids := ZipfIDs(&r, n, 0.99, 200_000)
	count := map[uint32]int{}
	for _, id := range ids {
		if id >= n {
			t.Fatalf("id %d of %d", id, n)
		}
		count[id]++
	}
	second := uint32(scatter % uint64(n)) // rank 1
	if second == 1 || count[0] < count[second] || count[second] < len(ids)/100 {
		t.Fatalf("ranks 0 and 1 were drawn %d and %d times", count[0], count[second])
	}
}

func TestScatterPermutes(t *testing.T) {
	const n = 4096
	seen := map[uint64]bool{}
	for rank := range uint64(n) {
		seen[scatteredID(rank, n)] = true
	}
	if len(seen) != n {
		t.Fatalf("%d ranks become %d ids", n, len(seen))
	}
}
