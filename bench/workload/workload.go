// Package workload makes key sequences to run caches on: seeded generators, so that a
// run can be repeated exactly.
package workload

import (
	"math"
	"math/rand/v2"
)

// Source is an endless sequence of key ids. A Source is not safe for
// concurrent use: give each goroutine its own, with its own seed.
type Source interface {
	// Next returns the next key id.
	Next() uint64
}

// NewRand returns the random generator that all seeded sources use. Equal
// seeds give equal sequences, on every platform.
func NewRand(seed uint64) *rand.Rand {
	const stream = 0x9e3779b97f4a7c15 // any constant: PCG wants two words
	return rand.New(rand.NewPCG(seed, stream))
}

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

// NewZipf returns a Zipf source over n ids with the exponent s. It panics if n
// is 0 or s is not positive.
func NewZipf(seed, n uint64, s float64) *Zipf {
	if n == 0 || !(s > 0) {
		panic("workload: NewZipf: want n > 0 and s > 0")
	}
	z := &Zipf{rnd: NewRand(seed), n: float64(n), s: s}
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

// Scan counts up from a first id and never repeats one: what a backup or a
// full table scan does to a cache.
type Scan struct{ next uint64 }

// NewScan returns a Scan that starts at first.
func NewScan(first uint64) *Scan { return &Scan{next: first} }

// Next returns the next id.
func (s *Scan) Next() uint64 {
	id := s.next
	s.next++
	return id
}

// Loop walks 0, 1, ... n-1 again and again. With n a little above the capacity
// of a cache, first-in first-out and LRU miss on every access.
type Loop struct{ n, next uint64 }

// NewLoop returns a Loop over n ids. It panics if n is 0.
func NewLoop(n uint64) *Loop {
	if n == 0 {
		panic("workload: NewLoop: want n > 0")
	}
	return &Loop{n: n}
}

// Next returns the next id.
func (l *Loop) Next() uint64 {
	id := l.next
	if l.next++; l.next == l.n {
		l.next = 0
	}
	return id
}

// Churn is a Zipf distribution whose popular keys grow old: every so many
// accesses all ids move up by one, so that the most popular key is new and a
// key that was popular sinks in rank until nobody asks for it.
type Churn struct {
	zipf  *Zipf
	top   uint64 // id of rank 1
	every uint64
	count uint64
}

// NewChurn returns a Churn over a window of n ids with the exponent s, which
// moves by one id after every accesses. It panics where [NewZipf] does and if
// every is 0.
func NewChurn(seed, n uint64, s float64, every uint64) *Churn {
	if every == 0 {
		panic("workload: NewChurn: want every > 0")
	}
	return &Churn{zipf: NewZipf(seed, n, s), top: n - 1, every: every}
}

// Next returns the next id.
func (c *Churn) Next() uint64 {
	id := c.top - c.zipf.Next()
	if c.count++; c.count == c.every {
		c.count = 0
		c.top++
	}
	return id
}
