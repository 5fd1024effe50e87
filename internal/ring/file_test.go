package ring

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringfile"
)

// ringInFile returns a ring in a file, which is in memory.
func ringInFile(t *testing.T) (*ringfile.Rings, *Ring) {
	heap := heapMemory(t)
	mem := heap
	head, err := heap.Map(ringfile.HeadSize)
	require.NoError(t, err)
	f := ringfile.New(head, 1<<testShift, func(n int64) ([]byte, error) { return heap.Map(int(n)) })
	mem.Rings = &chunk.RingMemory{Map: f.Map}
	r := new(Ring)
	r.Init(chunk.NewPool(mem, 1<<20, 1<<testShift, chunk.Never), testShift, 16)
	f.Ledger(0, 0).SetSpan(0, 0)
	r.InFile(f.Ledger(0, 0), 1)
	return f, r
}

// A process that dies while the tail leaves a chunk to the head that has borrowed it, leaves the
// ring as it was before, or as it was to be.
func TestRing_DeathWhileTheTailLeavesItsChunk(t *testing.T) {
	f, r := ringInFile(t)
	const limit = 4
	turns := 0
	for i := range 1000 {
		value := make([]byte, 10+i*7%200)
		var buf [record.MaxHeader]byte
		header := record.Checked.Put(&buf, record.Value, 0, len(value), record.Times{})
		n := uint64(len(header) + len(value))
		for !r.Fits(int(n), limit) {
			h, ok := r.Header(r.Tail)
			require.True(t, ok)
			next := r.Tail + uint64(h.Total())
			if r.borrowed && next>>testShift > r.Tail>>testShift && next < r.Mask {
				lent, was := *r.entry(r.Tail), r.slotOf(r.Tail)
				own := r.slotOf(r.Tail + uint64(r.mapped-1)<<testShift)
				r.ledger.Hold(lent, own)
				requireRestored(t, f, r.Tail, r.Head())
				r.ledger.Hold(lent, own)
				r.ledger.SetSpan(next, r.Head())
				requireRestored(t, f, next, r.Head())
				r.ledger.Hold(lent, was)
				turns++
			}
			r.Release(uint64(h.Total()))
		}
		require.NoError(t, r.Extend(n, limit))
		r.Append(header, nil, value)
		require.NoError(t, r.ValidateFile())
		requireRestored(t, f, r.Tail, r.Head())
	}
	require.Greater(t, turns, 100)
}

// requireRestored fails unless another process finds the ring whole, from tail to head.
func requireRestored(t *testing.T, f *ringfile.Rings, tail, head uint64) {
	t.Helper()
	held, _ := f.Chunks()
	l := f.Ledger(0, 0)
	var r Ring
	r.Init(nil, testShift, 16)
	r.InFile(l, 1)
	unused, ok := r.Restore(held[l.ID()])
	require.True(t, ok)
	require.Equal(t, [2]uint64{tail, head}, [2]uint64{r.Tail, r.Head()})
	require.NoError(t, r.ValidateFile())
	require.Empty(t, unused)
}
