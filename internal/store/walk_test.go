package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

// Each place in a growing index: the loop begins and goes on while any number
// of homes have moved.
func TestIterate_WhileHomesMove(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(1, 4096, 2000))
	w := ringtest.Watch(t, c, 2000, func(uint32) int { return ringtest.SelfSize })
	b := ringtest.Nth(c, 0)
	x := &b.Index
	next := uint32(1 << 20)
	growths := 0
	for growths < 3 {
		if err := c.Set(ringtest.TrafficKey(nil, next), nil); err != nil {
			require.NoError(t, err)
		}
		next++
		for x.Growing() {
			growths++
			n := 0
			w.Loop(t, func() {
				if n++; n%40 == 0 {
					b.Lock()
					x.Move(1, b.Windows(), b.Crowd)
					b.Unlock()
				}
			})
		}
	}
}

// An index that is made anew, smaller, does not disturb a loop either.
func TestIterate_WhileIndexShrinks(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(1, 4096, 2000))
	w := ringtest.Watch(t, c, 1500, func(uint32) int { return ringtest.SelfSize })
	b := ringtest.Nth(c, 0)
	require.NoError(t, b.GrowIndex(40))
	pages, n := b.Index.Pages(), 0
	w.Loop(t, func() {
		if n++; n == 700 {
			b.Lock()
			s, least := ringtest.Shared(c), 24*ringtest.Shared(c).Pool.PageSize()
			bound := s.Bound()
			s.SetBound(least) // as Resize does
			s.SwapQuota(int64(least))
			b.ShrinkIndex()
			s.SetBound(bound)
			b.Unlock()
		}
	})
	require.Less(t, b.Index.Pages(), pages, "the index was not made anew")
}

// A panic of OnRemove ends DeleteExpired, and the next call does the rest.
func TestDeleteExpired_EndsIfOnRemovePanics(t *testing.T) {
	g := ringtest.Tiny(1, 4096, 2000)
	panics := true
	g.OnRemove = func(ringcache.Removal) {
		if panics {
			panic("of OnRemove")
		}
	}
	c, age := ringtest.TimedCache(t, g)
	const n = 2 * store.StepRecords
	for i := range uint32(n) {
		require.NoError(t, c.SetWithTTL(ringtest.TrafficKey(nil, i), nil, time.Second))
	}
	*age = 2 * time.Second
	require.PanicsWithValue(t, "of OnRemove", func() { c.DeleteExpired() })
	require.Positive(t, c.Len(), "it ended before it was done")
	panics = false
	require.Equal(t, c.Len(), c.DeleteExpired())
}
