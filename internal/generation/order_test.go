package generation

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The order is that of a slice, however it grows and shrinks.
func TestOrder_IsThatOfASlice(t *testing.T) {
	var o Order
	var want []uint64
	rnd := rand.New(rand.NewPCG(1, 2))
	for grows := range 6 {
		for range 1000 {
			if rnd.IntN(10) < 7-4*(grows&1) {
				h := rnd.Uint64()
				o.Push(h)
				want = append(want, h)
			} else {
				h, ok := o.Pop()
				require.Equal(t, len(want) > 0, ok)
				if ok {
					require.Equal(t, want[0], h)
					want = want[1:]
				}
			}
			require.Equal(t, len(want), o.Len())
			require.LessOrEqual(t, len(o.hashes), max(leastOrder, 4*o.n+4), "words for %d", o.n)
		}
	}
	o.Push(1)
	o.Reset()
	_, ok := o.Pop()
	require.False(t, ok)
	require.Zero(t, o.Len())
}
