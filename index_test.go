package ringcache

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The homes of a table share the hashes: each begins where the one before ends,
// and what lies between is its own.
func TestTable_Homes(t *testing.T) {
	for _, groups := range []uint32{1, 2, 3, 7, 64, 100, 12_345} {
		x := table{groups: groups}
		require.Zero(t, x.start(0))
		require.EqualValues(t, 1<<slotHashBits, x.end(groups-1))
		for home := range groups {
			first, behind := x.start(home), x.end(home)
			require.Less(t, first, behind)
			require.Equal(t, home, x.home(first<<slotHashAt))
			require.Equal(t, home, x.home((behind-1)<<slotHashAt))
			if home > 0 {
				require.Equal(t, x.end(home-1), first)
			}
		}
	}
}

// All homes have moved before the index is crowded again, whatever it has grown by. Meanwhile new keys go to those that have
// not moved, too: at 80 % entries are lost that find no place.
func TestIndex_MoveRun(t *testing.T) {
	if full := crowdedFilling/16. + 1./groupSlots/moveRun; full > 0.79 {
		t.Errorf("homes that have not moved become %.3f full", full)
	}
	for pages := 1; pages <= 200; pages++ {
		for _, at := range []uint8{crowdedFilling, crowdedFull, crowdedFIFO, crowdedRoomy} {
			const groups = 16
			b := bucket{crowdedAt: at}
			fill := func() (sets int) {
				for ; !b.crowded(); sets++ {
					b.rings[0].live++
				}
				return sets
			}
			b.index.cur.groups = uint32(pages * groups)
			fill()
			b.index.old = b.index.cur
			b.index.cur.groups += uint32(max(1, pages/growthPart) * groups)
			sets := fill()
			if moveRun*sets < pages*groups {
				t.Errorf("%d pages, crowded at %d: %d Sets move less than %d homes", pages, at, sets, pages*groups)
			}
		}
	}
}
