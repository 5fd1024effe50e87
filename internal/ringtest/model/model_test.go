package model

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/ringtest"
)

func TestModel(t *testing.T) {
	for _, mc := range ringtest.ModelCases() {
		name := fmt.Sprintf("%s/ttl=%v/idle=%v/told=%v",
			ringtest.Describe(mc.G), mc.G.TTL, mc.G.ExpireAfterAccess, mc.Told)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(ringtest.Rounds()) {
				runModel(t, mc, seed)
			}
		})
	}
}

// runModel runs one random stream, and checks that it did what it is meant to do: a run without
// evictions would prove little.
func runModel(t *testing.T, mc ringtest.ModelCase, seed uint64) {
	var refusals atomic.Int64
	if mc.Refused {
		mc.G.Memory = ringtest.RefusingMemory(mc.G.MaxBytes, seed, &refusals)
	}
	r := ringtest.NewRunner(t, mc.G, mc.Told)
	c := r.C
	rnd := ringtest.NewRand(seed)
	data := make([]byte, ringtest.OpSize*500)
	refuses := mc.Refused && !*ringtest.InFile
	enough := func() bool {
		return r.Exercised(mc.Wraps) == nil && (!refuses || refusals.Load() > 5)
	}
	least := 3000
	if *ringtest.LongRun {
		least = 6000
	}
	for n := 0; n < least || (n < 60_000 && !enough()); n += len(data) / ringtest.OpSize {
		ringtest.FillRandom(rnd, data)
		if err := r.Run(data); err != nil {
			require.NoError(t, err, "seed %d:\n%s", seed, r.Trail())
		}
		if err := ringtest.Validate(c); err != nil {
			require.NoError(t, err, "seed %d, after %d operations:\n%s", seed, r.Steps, r.Trail())
		}
	}
	if err := r.Finish(); err != nil {
		require.NoError(t, err, "seed %d:\n%s", seed, r.Trail())
	}
	if refuses {
		assert.Greater(t, refusals.Load(), int64(5), "seed %d: the run proves too little", seed)
	}
	assert.NoError(t, r.Exercised(mc.Wraps), "seed %d: the run proves too little", seed)
}

// An entry of empty key and value is a header only. It may be the last thing in
// its chunk, with no chunk after it, and nothing may look there.
func TestModel_EmptyEntryEndsItsChunk(t *testing.T) {
	g := ringtest.Tiny(1, 64, 64)
	for pad := range g.ChunkSize {
		c := ringtest.MustCache(t, g)
		if err := c.Set([]byte("pad."), make([]byte, pad)); err != nil {
			require.NoError(t, err)
		}
		for range 2 {
			if err := c.Set(nil, nil); err != nil {
				require.NoError(t, err)
			}
			require.True(t, ringtest.View(c, nil, func(v []byte) { require.Empty(t, v) }), "pad %d", pad)
			require.NoError(t, ringtest.Validate(c), "pad %d", pad)
			require.True(t, c.Del(nil), "pad %d", pad)
		}
		if err := c.Set(nil, nil); err != nil {
			require.NoError(t, err)
		}
		for id := range uint32(1000) { // until all of it is evicted
			if err := c.Set(ringtest.TrafficKey(nil, id), nil); err != nil {
				require.NoError(t, err)
			}
		}
	}
}
