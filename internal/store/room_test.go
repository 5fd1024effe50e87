package store_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

// While a bucket may take more chunks, new keys drop nobody.
func TestPolicy_FillsUp(t *testing.T) {
	for _, p := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		g := ringtest.Tiny(1, 1024, 64)
		g.Policy = p
		c := ringtest.MustCache(t, g)
		b := ringtest.Nth(c, 0)
		var known int
		for id := range uint64(300) {
			if b.IsKnownToFit() {
				known++
			}
			if err := c.Set(binary.LittleEndian.AppendUint64(nil, id), make([]byte, 100)); err != nil {
				require.NoError(t, err)
			}
			require.Zero(t, b.Evicted, "%v: key %d", p, id)
			require.Equal(t, int(id)+1, b.Sizes().Entries, "%v", p)
		}
		require.GreaterOrEqual(t, known, 100, "%v: new keys of 300 that were known to have a place", p)
	}
}

// In a full cache a new key drops one other of its length, and setting what is
// there none.
func TestPolicy_NewKeyDropsOne(t *testing.T) {
	for _, p := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		g := ringtest.Tiny(1, 1024, 16)
		g.Policy = p
		c := ringtest.MustCache(t, g)
		var next uint64
		evicted := func() uint64 {
			return ringtest.Nth(c, 0).Evicted
		}
		set := func(id uint64) {
			t.Helper()
			k := binary.LittleEndian.AppendUint64(nil, id)
			v := binary.LittleEndian.AppendUint64(make([]byte, 92), id)
			if err := c.Set(k, v); err != nil {
				require.NoError(t, err)
			}
			require.Equal(t, string(v), string(c.Get(nil, k)), "%v: key %d", p, id)
		}
		for ; evicted() < 500; next++ {
			set(next)
		}
		for range 100 {
			before := evicted()
			set(next)
			next++
			require.EqualValues(t, 1, evicted()-before, "%v: others that a new key has dropped", p)
		}
		require.True(t, ringtest.Nth(c, 0).IsKnownFull(), "%v", p)
		before := evicted()
		for range 100 {
			set(next - 1)
		}
		require.LessOrEqual(t, evicted()-before, uint64(1), "%v: others that went for what is there", p)
		for id := range next { // each is at a tail at some time
			set(id)
		}
	}
}

// No bucket is locked for long: a step drops or moves so many bytes or records
// and no more.
func TestResize_StepsAreSmall(t *testing.T) {
	for _, size := range []int{0, 100, 1000, 60_000} {
		g := ringtest.Default(1 << 30)
		g.Seed = ringtest.TestSeed
		c := ringtest.MustCache(t, g)
		*ringtest.Mask(c) = 0 // all in one bucket
		b := ringtest.Nth(c, 0)
		n := 2 << 20 / (size + 20)
		ringtest.FillCache(t, c, 0, n, size)
		var key [8]byte
		for id := range n {
			if id%3 > 0 {
				binary.LittleEndian.PutUint64(key[:], uint64(id))
				c.Has(key[:])
			}
		}
		ringtest.Shared(c).Total.Store(128 << 20)
		ringtest.Shared(c).SetBound(128 << 20)
		total := func() (records, bytes int) {
			return int(b.Evicted + b.Promotions + b.Reinsertions), b.Bytes()
		}
		steps := 0
		for f := (store.Fit{}); !f.Done || b.Sizes().Held > b.Sizes().Quota; steps++ {
			if f.Done {
				f = store.Fit{Evicts: true, Loss: store.StepBytes}
			}
			records, bytes := total()
			ringtest.Change(c, 0, func(s *store.Store) { f.Step(s) })
			r, by := total()
			// The last record of a step, and what a promotion makes room for.
			most := store.StepBytes + size + 2*store.ShrinkStep
			require.LessOrEqual(t, r-records, store.StepRecords+most/(size+11),
				"records of %d bytes in a step", size)
			require.LessOrEqual(t, bytes-by, most, "bytes in a step, values of %d bytes", size)
		}
		require.GreaterOrEqual(t, steps, 10, "values of %d bytes", size)
		require.LessOrEqual(t, b.Sizes().Held, b.Sizes().Quota, "values of %d bytes", size)
		*ringtest.Mask(c) = store.BucketCount - 1
		c.Reset()
	}
}

// A bucket takes no more records of a snapshot than a quarter of its positions, however much memory
// is free.
func TestRestore_KeepsWithinThePositions(t *testing.T) {
	g := ringtest.Tiny(1, 256, 64)
	g.PosBits = 13
	c := ringtest.MustCache(t, g)
	b := ringtest.Nth(c, 0)
	if b.Form != record.Plain {
		t.Skip("the records of a file are set")
	}
	require.NoError(t, c.Set([]byte("the first"), nil)) // which makes the index
	for id, done := uint64(0), false; !done; id++ {
		w := store.Write{Ring: policy.Main, Restored: true}
		w.Key = binary.LittleEndian.AppendUint64(nil, id)
		w.Hash = ringtest.HashOf(c, w.Key)
		var buf [record.MaxHeader]byte
		rec := record.Plain.Put(&buf, record.Value, len(w.Key), 40, record.Times{})
		rec = append(append(rec, w.Key...), make([]byte, 40)...)
		ringtest.Change(c, 0, func(s *store.Store) {
			_, ok := s.Restore(&w, rec, true)
			done = !ok
		})
		require.LessOrEqual(t, b.Bytes(), 1<<g.PosBits/4)
	}
	require.Greater(t, b.Sizes().Entries, 20)
}

// For a large record its bucket asks for all of its quota, also where an int of 32 bits hardly
// holds the bound.
func TestDemand_ReachesTheQuota(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(1900<<20))
	s, b := ringtest.Shared(c), ringtest.LargeBucketOf(c, 0)
	n := s.MaxValue()
	s.CountArrival(store.Arrival{Records: 1, Bytes: n}, true)
	m := b.Sizes()
	require.Greater(t, m.Quota, 3*n)
	want, must := b.Demand(n)
	require.GreaterOrEqual(t, want, m.Quota-m.Held)
	require.Less(t, must, want)
}

// The index of a bucket may have most of its quota, also where an int of 32 bits does not hold
// three times that.
func TestIndex_MayHaveMostOfTheQuota(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(ringtest.LeastMaxBytes))
	require.True(t, ringtest.Resize(c, 1900<<20))
	b := ringtest.Nth(c, 0)
	quota := b.Sizes().Quota
	require.Greater(t, quota, 900<<20)
	require.InDelta(t, quota/4*3, b.MaxPages()*b.Shared.Pool.PageSize(), float64(quota/100))
}
