package load

import (
	"math"
	"math/rand/v2"
)

// Zipf draws ids from [0, n) where the id of rank r, counted from 1, has a
// probability proportional to r^-s: a few keys are very popular, most are rare.
//
// It samples by rejection-inversion (Hörmann and Derflinger, 1996), which needs
// no table and takes every s > 0, unlike [rand.Zipf] that wants s > 1.
type Zipf struct {
	rnd  *rand.Rand
	n    float64
	s    float64
	low  float64 // integral at the left edge of the sampled range
	high float64 // integral at its right edge
	near float64 // a candidate this close to its sample is always accepted
}

// NewZipf returns a Zipf source over n ids with the exponent s. Equal seeds give equal sequences,
// on every platform. It panics if n is 0 or s is not positive.
func NewZipf(seed, n uint64, s float64) *Zipf {
	if n == 0 || !(s > 0) {
		panic("load: NewZipf: want n > 0 and s > 0")
	}
	const stream = 0x9e3779b97f4a7c15 // any constant: PCG wants two words
	z := &Zipf{rnd: rand.New(rand.NewPCG(seed, stream)), n: float64(n), s: s}
	z.low = z.integral(1.5) - 1
	z.high = z.integral(z.n + 0.5)
	z.near = 2 - z.inverse(z.integral(2.5)-z.density(2))
	return z
}

// Next returns the next id; 0 is the most popular one.
func (z *Zipf) Next() uint64 {
	for {
		u := z.high + z.rnd.Float64()*(z.low-z.high)
		x := z.inverse(u)
		rank := min(max(math.Floor(x+0.5), 1), z.n)
		if rank-x <= z.near || u >= z.integral(rank+0.5)-z.density(rank) {
			return uint64(rank) - 1
		}
	}
}

// density is the unnormalised probability of rank x.
func (z *Zipf) density(x float64) float64 { return math.Exp(-z.s * math.Log(x)) }

// integral is the integral of density from 1 to x.
func (z *Zipf) integral(x float64) float64 {
	if z.s == 1 {
		return math.Log(x)
	}
	return math.Expm1((1-z.s)*math.Log(x)) / (1 - z.s)
}

// inverse undoes integral.
func (z *Zipf) inverse(y float64) float64 {
	if z.s == 1 {
		return math.Exp(y)
	}
	return math.Exp(math.Log1p((1-z.s)*y) / (1 - z.s))
}
