package main

import (
	"math"
	"math/rand/v2"
	"slices"
)

// popularity is a cumulative distribution: at index i, the fraction of requests for the i+1 most
// popular products.
type popularity []float64

// zipf returns a popularity by Zipf's law: the product of rank r is requested r^-skew times as
// often as the first. (math/rand/v2 has no Zipf distribution with a skew below 1.)
func zipf(products int, skew float64) popularity {
	p := make(popularity, products)
	var sum float64
	for i := range p {
		sum += math.Pow(float64(i+1), -skew)
		p[i] = sum
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// draw returns the id of a random product. The most popular products are spread over all
// categories.
func (p popularity) draw(rnd *rand.Rand) int64 {
	rank, _ := slices.BinarySearch(p, rnd.Float64())
	return 1 + int64(rank)*7919%int64(len(p))
}
