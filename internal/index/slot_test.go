package index

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// What stale finds without a branch is what live says of each slot, in rings of
// every size, over the end of the position space, and in an empty ring.
func TestGroup_Stale(t *testing.T) {
	const mask = 1<<10 - 1
	rnd := rand.New(rand.NewPCG(1, 2))
	both := [2]int{}
	for range 10_000 {
		window := func(of uint64) Window {
			return Window{
				Tail: rnd.Uint64() & mask,
				Size: rnd.Uint64N(mask/4+1) * of,
				Mask: mask,
			}
		}
		small, main := window(1), window(rnd.Uint64N(2))
		queue, cold := window(1), window(rnd.Uint64N(2))
		w := Windows{&small, &main, &queue, &cold}
		var g Group
		want := uint64(0)
		for i := range g.Slots {
			g.ctrl |= tagUsed << (8 * i)
			of := w.Of(rnd.Uint64())
			// Near the ends of a window, inside and outside of it.
			pos := (of.Tail + [...]uint64{0, of.Size}[rnd.IntN(2)] + rnd.Uint64N(9) - 4) & mask
			ring := rnd.Uint64N(4) << PosBits
			s := rnd.Uint64()&^(PosMask|ringMask) | ring | pos
			g.Slots[i].Store(s)
			if !w.Of(s).Live(s) {
				want |= 0x80 << (8 * i)
				both[0]++
			} else {
				both[1]++
			}
		}
		require.Equal(t, want, g.free(&w), "small %+v, main %+v", small, main)
	}
	require.Greater(t, both[0], 1000)
	require.Greater(t, both[1], 1000)
}

// Matches finds equal tags and no others, whatever their neighbors are. A Set could take the slot
// of a false match for its key's ghost, and no search for the key would find that slot again.
func TestGroup_MatchesOnlyEqualTags(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		h, want := rnd.Uint64(), uint64(0)
		g := Group{ctrl: rnd.Uint64() &^ (1<<overflowAt0 - 1)}
		for i := range GroupSlots {
			tag := [...]uint64{0, Tag(h), Tag(h) ^ 1, rnd.Uint64()&0x7f | tagUsed}[rnd.IntN(4)]
			g.put(i, rnd.Uint64(), tag)
			if tag == Tag(h) {
				want |= 0x80 << (8 * i)
			}
		}
		require.Equal(t, want, g.Matches(h), "control word %x, tag %x", g.ctrl, Tag(h))
	}
}

// What has passed a group is counted by the side of its hash, exactly up to the most that
// the count can say. There it has lost count, and a search never ends there again.
func TestGroup_OverflowCounts(t *testing.T) {
	sides := []uint64{0, 1 << hashAt}
	for i, h := range sides {
		other := sides[1-i]
		x, g := twoGroups(t)
		add := func(h uint64, by int) { x.addOverflow(Geometry(2).Path(0), 1, h, by) }
		for n := 1; n < overflowMost; n++ {
			for range n {
				add(h, 1)
			}
			require.NotZero(t, g.Overflow(h), "side %d: %d have passed", i, n)
			require.True(t, g.anyOverflow(), "side %d: %d have passed", i, n)
			require.Zero(t, g.Overflow(other), "side %d: %d have passed", i, n)
			add(other, 1)
			for range n {
				add(h, -1)
			}
			require.Zero(t, g.Overflow(h), "side %d: none of %d has passed", i, n)
			require.NotZero(t, g.Overflow(other), "side %d", i)
			add(other, -1)
			require.Zero(t, g.ctrl, "side %d: nothing has passed", i)
		}
		for range 2 * overflowMost {
			add(h, 1)
		}
		for range 2 * overflowMost {
			add(h, -1)
		}
		require.NotZero(t, g.Overflow(h), "side %d: too many to count have passed", i)
		require.Zero(t, g.Overflow(other), "side %d", i)
		g.put(GroupSlots-1, 1, tagUsed)
		require.EqualValues(t, tagUsed, g.take(GroupSlots-1), "side %d: a tag and a count meet", i)
		require.Zero(t, g.Overflow(other), "side %d: a tag and a count meet", i)
		require.Zero(t, g.take(GroupSlots-1), "side %d: a tag and a count meet", i)
	}
}

// twoGroups returns an index with groups, and the first of them.
func twoGroups(t *testing.T) (*Index, *Group) {
	pool, x := newPool(t), new(Index)
	x.Init(pool.PageSize())
	pages, err := pool.Pages(1)
	require.NoError(t, err)
	x.Grow(pages)
	return x, x.Group(0)
}

// empty is the window of a ring that has nothing.
var empty Window
