package ringcache

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/store"
)

// modelCase is one shape of cache for the model test.
type modelCase struct {
	g     geometry
	wraps bool // the run is long enough to use up all positions twice
	told  bool // by OnRemove

	refused bool // a part of its memory, by the system
}

// modelCases crosses what shapes a cache. The positions are as narrow as they
// may be in every second case.
func modelCases() []modelCase {
	cases := slices.Concat(lifeCases(), coldCases(), refusedCases())
	for _, buckets := range []int{1, 2, 512} {
		for _, chunkSize := range []int{64, 256, 4096} {
			for _, chunks := range []int{8, 64} {
				if buckets*chunkSize*chunks > 16<<20 {
					continue // not filled within the time of a test
				}
				if raceEnabled && buckets*chunkSize*chunks > 1<<20 {
					continue // one goroutine: the detector only makes it slow
				}
				wide := tiny(buckets, chunkSize, chunks)
				wide.expected = someExpectation(len(cases) / 4)
				zero := narrow(tiny(buckets, chunkSize, chunks))
				zero.seed = [2]uint64{}
				fifo := narrow(wide)
				fifo.policy = PolicyFIFO
				cases = append(cases,
					modelCase{g: wide},
					modelCase{g: narrow(wide), wraps: buckets <= 2, told: true},
					modelCase{g: zero, told: true},
					modelCase{g: fifo, wraps: buckets <= 2})
			}
		}
	}
	return cases
}

// lifeCases crosses policy, time to live and callback.
func lifeCases() []modelCase {
	var cases []modelCase
	for i := range 8 {
		g := tiny(2, 256, 64)
		if i&1 != 0 {
			g = narrow(g)
			g.policy = PolicyFIFO
		}
		if i&2 != 0 {
			g.ttl = 20 * time.Second
		}
		cases = append(cases, modelCase{g: g, told: i&4 != 0})
	}
	return cases
}

// coldCases are those with a cold part.
func coldCases() []modelCase {
	var cases []modelCase
	for i := range 16 {
		if raceEnabled && i%3 != 0 {
			continue // those without a goroutine
		}
		g := tiny([]int{1, 2}[i&1], []int{128, 256, 1024, 4096}[i>>1&3], 64)
		by := Compressor(flateCompressor{})
		switch i % 5 {
		case 1:
			g = narrow(g)
		case 2:
			g.policy = PolicyFIFO
		case 3:
			g.ttl = 20 * time.Second
		case 4:
			by = &badCompressor{one: 3}
		}
		g = withCold(g, by)
		g.byHand = i%3 != 0
		// OnRemove is not told of what cannot be decompressed.
		cases = append(cases, modelCase{g: g, told: i&4 != 0 && i%5 != 4})
	}
	return cases
}

// refusedCases are of caches that the system refuses a part of their memory: up to half of
// it is given, and then now and then a little.
func refusedCases() []modelCase {
	var cases []modelCase
	for i := range 6 {
		g := tiny([]int{1, 2, 512}[i%3], 256, 64)
		if i%3 == 2 && raceEnabled {
			continue
		}
		if i > 2 {
			g = narrow(g)
		}
		cases = append(cases, modelCase{g: g, told: i%2 == 0, refused: true})
	}
	return cases
}

// refusingMemory is memory for one of refusedCases. It counts how often it refuses.
func refusingMemory(maxBytes int, seed uint64, refusals *atomic.Int64) chunk.Memory {
	mem, rnd, given := osMemory(), newRand(seed), 0
	mem.Headroom = 0
	mem.Map = func(n int) ([]byte, error) {
		if given+n > maxBytes/2 && rnd.IntN(200) > 0 {
			refusals.Add(1)
			return nil, errRefused
		}
		given += n
		return osMemory().Map(n)
	}
	return mem
}

// someExpectation returns a hint that is right, wrong or beyond all measure.
func someExpectation(n int) int {
	return []int{0, 1, 100, 3000, 1 << 20, math.MaxInt}[n%6]
}

func TestModel(t *testing.T) {
	for _, mc := range modelCases() {
		t.Run(fmt.Sprintf("%s/ttl=%v/told=%v", describe(mc.g), mc.g.ttl, mc.told), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(rounds()) {
				runModel(t, mc, seed)
			}
		})
	}
}

// runModel runs one random stream and checks that it went through what it is
// meant to go through: a run without evictions would prove little.
func runModel(t *testing.T, mc modelCase, seed uint64) {
	var refusals atomic.Int64
	if mc.refused {
		mc.g.mem = refusingMemory(mc.g.maxBytes, seed, &refusals)
	}
	r := newRunner(t, mc.g, mc.told)
	c := r.c
	rnd := newRand(seed)
	data := make([]byte, opSize*500)
	refuses := mc.refused && !*inFile
	enough := func() bool {
		return r.exercised(mc.wraps) == nil && (!refuses || refusals.Load() > 5)
	}
	for n := 0; n < 6000 || (n < 60_000 && !enough()); n += len(data) / opSize {
		fillRandom(rnd, data)
		if err := r.run(data); err != nil {
			require.NoError(t, err, "seed %d:\n%s", seed, r.trail())
		}
		if err := c.validate(); err != nil {
			require.NoError(t, err, "seed %d, after %d operations:\n%s", seed, r.steps, r.trail())
		}
	}
	if err := r.finish(); err != nil {
		require.NoError(t, err, "seed %d:\n%s", seed, r.trail())
	}
	if refuses {
		assert.Greater(t, refusals.Load(), int64(5), "seed %d: the run proves too little", seed)
	}
	assert.NoError(t, r.exercised(mc.wraps), "seed %d: the run proves too little", seed)
}

// fillRandom makes b random bytes.
func fillRandom(rnd *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
}

// exercised returns an error if the runner's cache was not brought to hit,
// miss and evict, and to use every position more than once if wraps.
func (r *runner) exercised(wraps bool) error {
	var s Stats
	r.c.UpdateStats(&s)
	if r.hits < 100 || r.misses < 100 {
		return fmt.Errorf("%d hits and %d misses", r.hits, r.misses)
	}
	if r.g.seed == ([2]uint64{}) {
		if s.Collisions == 0 {
			return fmt.Errorf("no collisions although all hashes are equal")
		}
		return nil
	}
	if r.lockFree < 100 {
		return fmt.Errorf("%d lookups without the lock", r.lockFree)
	}
	if r.g.byHand && (s.Compression.ColdHits < 10 || s.Compression.Compressed < 10) {
		return fmt.Errorf("%d hits in the cold part, %d compressed",
			s.Compression.ColdHits, s.Compression.Compressed)
	}
	if s.EvictedEntries < 100 {
		return fmt.Errorf("%d entries evicted", s.EvictedEntries)
	}
	// Counted over all buckets, so that at least one has wrapped.
	want := uint64(2*(r.g.buckets+store.LargeBuckets)) << r.g.posBits
	if wraps && s.EvictedBytes < want {
		return fmt.Errorf("%d bytes evicted, want %d: positions did not wrap twice", s.EvictedBytes, want)
	}
	if s.Loads.Started < 100 || r.negativeHits < 10 && !r.told {
		return fmt.Errorf("%d loads, and %d negative entries found", s.Loads.Started, r.negativeHits)
	}
	if s.ExpiredEntries < 100 {
		return fmt.Errorf("%d entries expired", s.ExpiredEntries)
	}
	for reason := RemovedEvicted; r.told && reason <= RemovedReset; reason++ {
		if r.reasons[reason] == 0 {
			return fmt.Errorf("no entry left with the reason %s", reason)
		}
	}
	return nil
}

// An entry of empty key and value is a header only. It may be the last thing in
// its chunk, with no chunk after it, and nothing may look there.
func TestModel_EmptyEntryEndsItsChunk(t *testing.T) {
	g := tiny(1, 64, 64)
	for pad := range g.chunkSize {
		c := mustCache(t, g)
		if err := c.Set([]byte("pad."), make([]byte, pad)); err != nil {
			require.NoError(t, err)
		}
		for range 2 {
			if err := c.Set(nil, nil); err != nil {
				require.NoError(t, err)
			}
			require.True(t, c.View(nil, func(v []byte) { require.Empty(t, v) }), "pad %d", pad)
			require.NoError(t, c.validate(), "pad %d", pad)
			require.True(t, c.Del(nil), "pad %d", pad)
		}
		if err := c.Set(nil, nil); err != nil {
			require.NoError(t, err)
		}
		for id := range uint32(1000) { // until all of it is evicted
			if err := c.Set(trafficKey(nil, id), nil); err != nil {
				require.NoError(t, err)
			}
		}
	}
}
