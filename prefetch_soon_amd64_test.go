//go:build !purego && !ringcache_heap && !race && !asan && !msan

package ringcache

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// What a prefetch does cannot be seen, but what waits for one can.
func TestPrefetchSoon_Waits(t *testing.T) {
	const lane = 1<<laneBits - 1
	s := &soon[lane]
	*s = soonLines{}
	mem := make([]byte, 64*cacheLine)
	p := unsafe.Pointer(&mem[0])
	for n := 1; n <= 20*(soonMost+1); n++ {
		p := unsafe.Add(p, n)
		prefetchSoon(p, n, lane)
		turn := n % (soonMost + 1)
		require.EqualValues(t, turn, s.waiting, "call %d", n)
		if turn > 0 {
			last := s.at[turn-1]
			require.Equal(t, uintptr(p), last.first, "call %d", n)
			require.Equal(t, n, last.n, "call %d", n)
		}
	}
	require.EqualValues(t, 1<<soonShift, unsafe.Sizeof(*s))
	*s = soonLines{}
}

// Addresses of memory that is not there do no harm, nor do lanes that two goroutines share.
func TestPrefetchSoon_Harmless(t *testing.T) {
	const lane, turns = 0, 20_000
	done := make(chan bool)
	for g := range 4 {
		go func() {
			for i := 1; i <= turns; i++ {
				prefetchSoon(unsafe.Add(nil, i<<20|g), 1+i%16, lane)
			}
			done <- true
		}()
	}
	for range 4 {
		<-done
	}
	require.LessOrEqual(t, soon[lane].waiting, uint64(soonMost))
	for n := range uint(1) << laneBits {
		require.LessOrEqual(t, soon[n].waiting, uint64(soonMost))
	}
	soon[lane] = soonLines{}
}
