package ringtest

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/clock"
)

// ModelCases crosses what shapes a cache. The positions are as narrow as they
// may be in every second case.
func ModelCases() []ModelCase {
	cases := slices.Concat(lifeCases(), coldCases(), refusedCases())
	for _, buckets := range []int{1, 2, 512} {
		for _, chunkSize := range []int{64, 256, 4096} {
			for _, chunks := range []int{8, 64} {
				if buckets*chunkSize*chunks > 16<<20 {
					continue // not filled within the time of a test
				}
				if RaceEnabled && buckets*chunkSize*chunks > 1<<20 {
					continue // one goroutine: the detector only makes it slow
				}
				wide := Tiny(buckets, chunkSize, chunks)
				wide.ExpectedEntries = SomeExpectation(len(cases) / 4)
				zero := Narrow(Tiny(buckets, chunkSize, chunks))
				zero.Seed = [2]uint64{}
				fifo := Narrow(wide)
				fifo.Policy = ringcache.PolicyFIFO
				cases = append(cases,
					ModelCase{G: wide},
					ModelCase{G: Narrow(wide), Wraps: buckets <= 2, Told: true},
					ModelCase{G: zero, Told: true},
					ModelCase{G: fifo, Wraps: buckets <= 2})
			}
		}
	}
	return cases
}

// ModelCase is one shape of cache for the model test.
type ModelCase struct {
	G     Shape
	Wraps bool // the run is long enough to use up all positions twice
	Told  bool // by OnRemove

	Refused bool // a part of its memory, by the system
}

// RefusingMemory is memory for one of refusedCases. It counts how often it refuses.
func RefusingMemory(maxBytes int, seed uint64, refusals *atomic.Int64) chunk.Memory {
	mem, rnd, given := SystemMemory(), NewRand(seed), 0
	mem.Headroom = 0
	mem.Map = func(n int) ([]byte, error) {
		if given+n > maxBytes/2 && rnd.IntN(200) > 0 {
			refusals.Add(1)
			return nil, ErrRefused
		}
		given += n
		return SystemMemory().Map(n)
	}
	return mem
}

// coldCases are those with a cold part.
func coldCases() []ModelCase {
	var cases []ModelCase
	for i := range 16 {
		if RaceEnabled && i%3 != 0 {
			continue // those without a goroutine
		}
		g := Tiny([]int{1, 2}[i&1], []int{128, 256, 1024, 4096}[i>>1&3], 64)
		by := ringcache.Compressor(FlateCompressor{})
		switch i % 5 {
		case 1:
			g = Narrow(g)
			g.ExpireAfterAccess = someIdleTime
		case 2:
			g.Policy = ringcache.PolicyFIFO
		case 3:
			g.TTL, g.ExpireAfterAccess = 20*time.Second, someIdleTime
		case 4:
			by = &BadCompressor{One: 3}
		}
		g = WithCold(g, by)
		g.ByHand = i%3 != 0
		// OnRemove is not told of what cannot be decompressed.
		cases = append(cases, ModelCase{G: g, Told: i&4 != 0 && i%5 != 4})
	}
	return cases
}

// someIdleTime is Options.ExpireAfterAccess where there is one.
const someIdleTime = 5*time.Second + clock.Tick/2

// lifeCases crosses policy, time to live, idle time and callback.
func lifeCases() []ModelCase {
	var cases []ModelCase
	for i := range 16 {
		g := Tiny(2, 256, 64)
		if i&8 != 0 {
			g.ExpireAfterAccess = someIdleTime
		}
		if i&1 != 0 {
			g = Narrow(g)
			g.Policy = ringcache.PolicyFIFO
		}
		if i&2 != 0 {
			g.TTL = 20 * time.Second
		}
		cases = append(cases, ModelCase{G: g, Told: i&4 != 0})
	}
	return cases
}

// refusedCases are of caches that the system refuses a part of their memory: up to half of
// it is given, and then now and then a little.
func refusedCases() []ModelCase {
	var cases []ModelCase
	for i := range 6 {
		g := Tiny([]int{1, 2, 512}[i%3], 256, 64)
		if i%3 == 2 && RaceEnabled {
			continue
		}
		if i > 2 {
			g = Narrow(g)
		}
		cases = append(cases, ModelCase{G: g, Told: i%2 == 0, Refused: true})
	}
	return cases
}

// SomeExpectation returns a hint that is right, wrong or beyond all measure.
func SomeExpectation(n int) int {
	return []int{0, 1, 100, 3000, 1 << 20, math.MaxInt}[n%6]
}
