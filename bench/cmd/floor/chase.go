package main

import (
	"math/bits"
	"time"

	"github.com/ringcache/ringcache/bench/load"
)

const (
	lineBytes = 64 // of a cache line
	lineWords = lineBytes / 8

	// chunk is how many accesses are made between two looks at the clock.
	chunk = 1 << 14
)

// lay makes the lines of words one circle in random order: the first word of each
// is the place of the next one.
func lay(words []uint64) {
	lines := uint64(len(words) / lineWords)
	for i := range lines {
		words[i*lineWords] = i * lineWords
	}
	// Swapping each line's word with that of an earlier one leaves a single circle.
	rnd := load.NewRand(lines)
	for i := lines - 1; i > 0; i-- {
		a, b := &words[i*lineWords], &words[rnd.Below(i)*lineWords]
		*a, *b = *b, *a
	}
}

// chase follows the circle from a place on and returns where it ends.
func chase(words []uint64, at uint64) uint64 {
	for range chunk {
		at = words[at]
	}
	return at
}

// scatter reads lines at places that follow from a number, which is cheap to
// compute, and returns the next number.
func scatter(words []uint64, number uint64) uint64 {
	lines := uint64(len(words) / lineWords)
	var sum uint64
	for range chunk {
		number = number*6364136223846793005 + 1442695040888963407
		line, _ := bits.Mul64(number, lines)
		sum += words[line*lineWords]
	}
	seen = sum
	return number
}

// seen keeps the compiler from leaving out reads of which nothing is used.
var seen uint64

// timed repeats walk for a while and returns the nanoseconds of one access.
func timed(d time.Duration, words []uint64, walk func([]uint64, uint64) uint64) float64 {
	var at uint64
	for warm := time.Now(); time.Since(warm) < d/4; {
		at = walk(words, at)
	}
	n, start := 0, time.Now()
	for time.Since(start) < d {
		at = walk(words, at)
		n += chunk
	}
	took := time.Since(start)
	seen += at
	return float64(took.Nanoseconds()) / float64(n)
}
