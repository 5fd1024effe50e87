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

// What has passed a group is counted by the side of its hash, exactly up to the most that
// the count can say. There it has lost count, and a search never ends there again.
func TestGroup_Passed(t *testing.T) {
	sides := []uint64{0, 1 << slotHashAt}
	for i, h := range sides {
		other := sides[1-i]
		var g group
		for n := 1; n < passedMost; n++ {
			for range n {
				g.pass(h)
			}
			if !g.passed(h) || !g.passedAny() || g.passed(other) {
				t.Fatalf("side %d: %d have passed: control word %x", i, n, g.ctrl)
			}
			g.pass(other)
			for range n {
				g.unpass(h)
			}
			if g.passed(h) || !g.passed(other) {
				t.Fatalf("side %d: none of %d has passed: control word %x", i, n, g.ctrl)
			}
			if g.unpass(other); g.ctrl != 0 {
				t.Fatalf("side %d: nothing has passed: control word %x", i, g.ctrl)
			}
		}
		for range 2 * passedMost {
			g.pass(h)
		}
		for range 2 * passedMost {
			g.unpass(h)
		}
		if !g.passed(h) || g.passed(other) {
			t.Errorf("side %d: too many to count have passed: control word %x", i, g.ctrl)
		}
		g.putAt(groupSlots-1, 1, tagUsed)
		if g.clear(groupSlots - 1); g.passed(other) || g.tagAt(groupSlots-1) != 0 {
			t.Errorf("side %d: a tag and a count meet: control word %x", i, g.ctrl)
		}
	}
}
