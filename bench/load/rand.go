package load

import (
	"math"
	"math/bits"
)

// Rand is a xorshift64* generator: fast, and the same sequence everywhere. It is
// for one goroutine.
type Rand struct{ state uint64 }

// NewRand returns a generator; every seed starts another sequence.
func NewRand(seed uint64) Rand {
	return Rand{mix(seed) | 1} // the state must not be 0
}

// Uint64 returns 64 random bits.
func (r *Rand) Uint64() uint64 {
	r.state ^= r.state >> 12
	r.state ^= r.state << 25
	r.state ^= r.state >> 27
	return r.state * 0x2545f4914f6cdd1d
}

// Below returns a number in [0, n).
func (r *Rand) Below(n uint64) uint64 {
	hi, _ := bits.Mul64(r.Uint64(), n)
	return hi
}

func (r *Rand) float() float64 { return float64(r.Uint64()>>11) / (1 << 53) }

// Zipf draws ranks 0, 1, ... n-1 with probabilities in proportion to
// 1/(rank+1)^s. It serves any s > 0 but 1, where math/rand wants s > 1.
//
// The method is rejection inversion (W. Hörmann and G. Derflinger, 1996): invert
// the integral of the density, round, and reject the few draws that fell between
// the curve and the steps.
type Zipf struct {
	rnd         *Rand
	n, s        float64
	low, high   float64 // the integral's range
	acceptBelow float64 // distance to the rounded rank up to which no test is needed
}

// NewZipf returns a sampler that takes its random numbers from rnd.
func NewZipf(rnd *Rand, n uint64, s float64) *Zipf {
	z := &Zipf{rnd: rnd, n: float64(n), s: s}
	z.low = z.integral(1.5) - 1
	z.high = z.integral(z.n + 0.5)
	z.acceptBelow = 2 - z.inverse(z.integral(2.5)-z.density(2))
	return z
}

// Next returns a rank.
func (z *Zipf) Next() uint64 {
	for {
		u := z.low + z.rnd.float()*(z.high-z.low)
		x := z.inverse(u)
		k := min(max(math.Floor(x+0.5), 1), z.n)
		if k-x <= z.acceptBelow || u >= z.integral(k+0.5)-z.density(k) {
			return uint64(k) - 1
		}
	}
}

func (z *Zipf) density(x float64) float64  { return math.Pow(x, -z.s) }
func (z *Zipf) integral(x float64) float64 { return (math.Pow(x, 1-z.s) - 1) / (1 - z.s) }
func (z *Zipf) inverse(u float64) float64  { return math.Pow(1+u*(1-z.s), 1/(1-z.s)) }

// ZipfIDs draws count ids below n, Zipf-distributed with exponent s.
func ZipfIDs(rnd *Rand, n uint64, s float64, count int) []uint32 {
	z := NewZipf(rnd, n, s)
	ids := make([]uint32, count)
	for i := range ids {
		ids[i] = uint32(scatteredID(z.Next(), n))
	}
	return ids
}

// scatter is a prime above any number of entries, so that multiplying by it
// permutes the ids.
const scatter = 11400714819323198393

// scatteredID says which id has a rank. Hot entries stored one after the other
// would share cache lines and pages; spread, they do not.
func scatteredID(rank, n uint64) uint64 {
	hi, lo := bits.Mul64(rank, scatter)
	return bits.Rem64(hi, lo, n)
}
