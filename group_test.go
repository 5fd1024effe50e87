package ringcache

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// What stale finds without a branch is what alive says of each slot, in rings of
// every size, over the end of the position space, and in an empty ring.
func TestGroup_Stale(t *testing.T) {
	const mask = 1<<10 - 1
	rnd := rand.New(rand.NewPCG(1, 2))
	both := [2]int{}
	for range 10_000 {
		small := window{tail: rnd.Uint64() & mask, size: rnd.Uint64N(mask/4 + 1), mask: mask}
		main := window{tail: rnd.Uint64() & mask, size: rnd.Uint64N(mask/4+1) * rnd.Uint64N(2), mask: mask}
		w := windows{small: &small, main: &main}
		var g group
		want := uint64(0)
		for i := range g.slots {
			g.ctrl |= tagUsed << (8 * i)
			of := w.of(rnd.Uint64())
			// Near the ends of a window, inside and outside of it.
			pos := (of.tail + [...]uint64{0, of.size}[rnd.IntN(2)] + rnd.Uint64N(9) - 4) & mask
			ring := rnd.Uint64N(2) * slotRingBit
			g.slots[i] = rnd.Uint64()&^(slotPosMask|slotRingBit) | ring | pos
			if alive := w.alive(g.slots[i]); !alive {
				want |= 0x80 << (8 * i)
				both[0]++
			} else {
				both[1]++
			}
		}
		require.Equal(t, want, g.stale(w), "small %+v, main %+v, slots %x", small, main, g.slots)
	}
	require.Greater(t, both[0], 1000)
	require.Greater(t, both[1], 1000)
}
