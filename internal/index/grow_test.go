package index

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// An index loses nothing while it grows. A bucket lets it grow at 12 sixteenths; here it
// is one more, where losses are thousands of times as frequent.
func TestIndex_LosesNothingWhileItGrows(t *testing.T) {
	const at, moves, mostPages = 13, 4, 64
	pool := newPool(t)
	window := Window{Size: PosMask / 2, Mask: PosMask}
	// All that was set is live.
	w := &Windows{&window, &window, &empty, &empty}
	lost, inserts := 0, uint64(0)
	for seed := range uint64(120) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		var x Index
		x.Init(pool.PageSize())
		for x.Pages() < mostPages {
			if x.Growing() {
				x.Move(moves, w, func(uint64) { lost++ })
			} else if int(x.Used[0])*16 >= x.Groups()*GroupSlots*at {
				pages, err := pool.Pages(max(1, x.Pages()/8))
				require.NoError(t, err)
				x.Grow(pages)
			}
			h := rnd.Uint64()
			inserts++
			if _, forced := x.Insert(Slot(h, 0, inserts&PosMask), Tag(h), w); forced {
				lost++
			}
		}
		pool.PutPages(x.Reset())
	}
	require.Greater(t, inserts, uint64(500_000))
	require.Zero(t, lost, "of %d inserts", inserts)
}

// A reader finds a page whatever the index does, also when it gets its first one.
func TestGrow_ReadersFindAPage(t *testing.T) {
	const hash = 1
	pool := newPool(t)
	page, err := pool.Pages(1)
	require.NoError(t, err)
	fresh := func() *Index {
		x := new(Index)
		x.Init(pool.PageSize())
		return x
	}
	var current atomic.Pointer[Index]
	var done atomic.Bool
	current.Store(fresh())
	go func() {
		defer done.Store(true)
		for range 300_000 {
			x := fresh()
			current.Store(x)
			x.Grow(page)
		}
	}()
	for !done.Load() {
		x := current.Load()
		require.NotNil(t, x.Group(x.Geometry(hash).Home(hash)))
	}
}
