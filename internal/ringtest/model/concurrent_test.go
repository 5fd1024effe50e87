package model

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

func TestConcurrent_Histories(t *testing.T) {
	t.Parallel()
	for _, g := range ringtest.ConcurrentCases() {
		t.Run(ringtest.Describe(g), func(t *testing.T) {
			for seed := range uint64(ringtest.Rounds()) {
				tr := ringtest.NewTraffic(t, g)
				tr.Clock = new(ringtest.HistoryClock)
				tr.CheckHistories(t, seed, tr.Run(t, seed, ringtest.ConcurrentSteps()))
			}
		})
	}
}

// Where there is room for everything, and nothing is large or expires, a key that was
// set is found until it is removed; and lookups hardly ever take the lock.
func TestConcurrent_HistoriesWhereNothingIsDropped(t *testing.T) {
	for _, buckets := range []int{2, 16} {
		t.Run(fmt.Sprintf("%d buckets", buckets), func(t *testing.T) {
			g := ringtest.Tiny(buckets, 64<<10, 1024/buckets)
			for seed := range uint64(ringtest.Rounds()) {
				tr := ringtest.NewTraffic(t, g)
				tr.Keys, tr.Most, tr.Stays = 300, 2000, true
				tr.Clock = new(ringtest.HistoryClock)
				tr.CheckHistories(t, seed, tr.Run(t, seed, ringtest.ConcurrentSteps()/2))
			}
		})
	}
}

// What comes back from the cold part is what was set last, or a miss where the Compressor fails.
func TestConcurrent_HistoriesOfTheColdPart(t *testing.T) {
	t.Parallel()
	for _, by := range []ringcache.Compressor{ringtest.FlateCompressor{},
		&ringtest.BadCompressor{One: 4}} {
		t.Run(by.ID(), func(t *testing.T) {
			for seed := range uint64(ringtest.Rounds()) {
				counting := &ringtest.CountingCompressor{Compressor: by}
				_, bad := by.(*ringtest.BadCompressor)
				// On a busy machine little is compressed, and one run may prove too little.
				for failed := uint64(0); counting.Unpacked.Load() <= 10 || bad && failed == 0; {
					tr := ringtest.NewTraffic(t, ringtest.WithCold(ringtest.Tiny(4, 512, 64), counting))
					tr.Clock = new(ringtest.HistoryClock)
					tr.CheckHistories(t, seed, tr.Run(t, seed, 2*ringtest.ConcurrentSteps()))
					failed += ringtest.PolicyOf(tr.C).DecompressErrors
					require.True(t, bad || failed == 0)
					t.Logf("%d values came back, %d did not", counting.Unpacked.Load(), failed)
				}
			}
		})
	}
}

// Without a history, the goroutines share nothing but the cache.
func TestConcurrent_Unordered(t *testing.T) {
	t.Parallel()
	for _, g := range ringtest.ConcurrentCases() {
		t.Run(ringtest.Describe(g), func(t *testing.T) {
			for seed := range uint64(ringtest.Rounds()) {
				ringtest.NewTraffic(t, g).Run(t, seed, ringtest.ConcurrentSteps())
			}
		})
	}
}

// Close in the middle of the traffic: no call may fault or hang, and none that
// begins later may find or store anything.
func TestConcurrent_CloseDuringTraffic(t *testing.T) {
	for _, g := range ringtest.ConcurrentCases() {
		t.Run(ringtest.Describe(g), func(t *testing.T) {
			for seed := range uint64(3 * ringtest.Rounds()) {
				tr := ringtest.NewTraffic(t, g)
				var closer sync.WaitGroup
				closer.Add(1)
				go func() {
					defer closer.Done()
					for tr.C.Len() < 50 {
						runtime.Gosched()
					}
					tr.Closing.Store(true)
					ringtest.CloseCache(t, tr.C)
					tr.Closed.Store(true)
				}()
				tr.Run(t, seed, 2000)
				closer.Wait()
				ringtest.RequireNothingHeld(t, tr.C)
			}
		})
	}
}
