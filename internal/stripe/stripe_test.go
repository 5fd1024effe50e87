package stripe

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Nothing is lost, however many goroutines share a stripe.
func TestCounters_SumsAreExact(t *testing.T) {
	const goroutines, each = 200, 1000
	var c Counters
	var wg sync.WaitGroup
	for range goroutines {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range uint64(each) {
				n := c.Here()
				n.Hits.Add(1)
				n.Misses.Add(i % 2)
				n.Locked.Add(i % 4 / 3)
				n.Sets.Add(i % 5 / 4)
				n.Dels.Add(i % 10 / 9)
				n.FalseHits.Add(i % 20 / 19)
			}
		}()
	}
	wg.Wait()
	require.Equal(t, Sums{
		Lookups: goroutines * each * 3 / 2,
		Misses:  goroutines * each * 11 / 20,
		Locked:  goroutines * each / 4,
		Sets:    goroutines * each / 5,
		Dels:    goroutines * each / 10,
	}, c.Sum())
}

// A goroutine counts in the same stripe as long as its stack stays where it is.
func TestCounters_HereIsSteady(t *testing.T) {
	var c Counters
	first, changed := c.Here(), 0
	for range 100 { // nothing here makes the stack grow, which would move it
		if c.Here() != first {
			changed++
		}
	}
	require.Zero(t, changed)
}
