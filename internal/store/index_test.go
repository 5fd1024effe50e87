package store_test

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

// An index that waits for pages in a full cache gets them, though new keys alone never
// need what main holds: else each Set would ask again.
func TestBucketIndex_GrowsInAFullCache(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	for _, p := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		step := 10
		if *ringtest.LongRun {
			step = 4
		}
		for chunks := 40; chunks <= 60; chunks += step {
			g := ringtest.Tiny(16, 4096, chunks)
			g.Policy = p
			t.Run(ringtest.Describe(g), func(t *testing.T) {
				c := ringtest.MustCache(t, g)
				requireNoWaits(t, c, g.MaxBytes)
				for i := range ringtest.Shared(c).Buckets {
					b := ringtest.Nth(c, i)
					require.True(t, b.GrowsAsIfFull(), "bucket %d is full", i)
					require.False(t, b.IsCrowded(), "bucket %d has %d entries in %d slots",
						i, b.Sizes().Entries, b.Index.Groups()*index.GroupSlots)
				}
			})
		}
	}
}

// requireNoWaits fills c several times. In the second half no index may wait for pages.
func requireNoWaits(t *testing.T, c *ringcache.Cache, maxBytes int) {
	t.Helper()
	value := make([]byte, 100)
	waits := 0
	sets := uint64(8 * maxBytes / len(value))
	for id := range sets {
		k := binary.LittleEndian.AppendUint64(nil, id)
		if err := c.Set(k, value); err != nil {
			require.NoError(t, err)
		}
		if id > sets/2 && ringtest.BucketOf(c, ringtest.HashOf(c, k)).WaitsForPages() {
			waits++
		}
	}
	require.Zero(t, waits, "Sets of the last %d that found an index waiting for pages", sets/2)
}

// What there is room for stays: no index loses an entry while it grows, and no ring drops
// one because it has to become smaller. A fifth of the memory is left, as some buckets get
// more entries than others.
func TestBucketIndex_KeepsAllThatThereIsRoomFor(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	var shapes []ringtest.Shape
	for chunks := 24; chunks < 100; chunks += 4 {
		shapes = append(shapes, ringtest.Tiny(1, 8<<10, chunks))
	}
	shapes = append(shapes, ringtest.Tiny(1, 64<<10, 128))
	requireAllKept(t, ringtest.Default(32<<20), 8, 8)
	if *ringtest.LongRun && math.MaxInt > math.MaxInt32 { // 180 million inserts
		shapes = append(shapes, ringtest.Default(128<<20), ringtest.Default(1<<30))
		most := int64(4 << 30)
		requireAllKept(t, ringtest.Default(int(most)), 8, 100)
	}
	for _, g := range shapes {
		for _, g.Policy = range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
			requireAllKept(t, g, 8, 8)
			requireAllKept(t, g, 8, 100)
			requireAllKept(t, g, 100, 100)
		}
	}
}

// requireAllKept fills four fifths of a cache with entries of least to most bytes.
func requireAllKept(t *testing.T, g ringtest.Shape, least, most int) {
	t.Helper()
	const firstID = 27 << 32 // with paths of 16 groups, a cache of 32 MB lost four
	g.Seed = ringtest.TestSeed
	c := ringtest.NewCache(g)
	defer ringtest.CloseCache(t, c)
	value := make([]byte, most)
	sets := uint64(g.MaxBytes / ((least+most)/2 + record.ShortHeader + store.SlotBytes) * 4 / 5)
	for id := range sets {
		k := binary.LittleEndian.AppendUint64(nil, firstID+id)
		if err := c.Set(k, value[:least-len(k)+int(id)%(most-least+1)]); err != nil {
			require.NoError(t, err)
		}
	}
	var s ringcache.Stats
	c.UpdateStats(&s)
	shape := ringtest.Describe(g)
	assert.Zero(t, s.EvictedEntries, "%s, %d to %d bytes: %v", shape, least, most, &s)
	assert.Equal(t, sets, s.EntriesCount, "%s, %d to %d bytes", shape, least, most)
}

// Where there is no memory for all first pages, one has to do.
func TestBucketIndex_StartsWithOnePageIfThereIsNotMore(t *testing.T) {
	var m ringtest.Meter
	m.Allowed.Store(1)
	for _, bound := range []int{0, 1 << 20} { // refused by the bound; by the operating system
		m.Maps.Store(0)
		g := ringtest.Tiny(1, 1024, 64)
		g.Memory = m.Memory()
		g.ExpectedEntries = 500
		c := ringtest.MustCache(t, g)
		b, p := ringtest.Nth(c, 0), ringtest.Shared(c).Pool
		want := b.FirstPages()
		require.GreaterOrEqual(t, want, 3, "the test proves little")
		for p.Used() < g.MaxBytes-p.ChunkSize() {
			_, err := p.Chunk()
			require.NoError(t, err)
		}
		p.SetBound(g.MaxBytes + bound)
		require.NoError(t, b.StartIndex(0))
		require.Equal(t, 1, b.Index.Pages(), "bound and %d: %d expected", bound, want)
	}
}

// The length of a value has 32 bits in a header, whatever a sixteenth of the bound is.
func TestShared_LongestValueHasRoomInAHeader(t *testing.T) {
	if math.MaxInt == math.MaxInt32 {
		t.Skip("no value is that long here")
	}
	var s store.Shared
	for bound, want := range map[int64]int64{
		32 << 20: 2 << 20, 64 << 30: 1<<32 - 1, 64<<30 - 16: 1<<32 - 1, 4 << 40: 1<<32 - 1,
	} {
		s.MaxBytes.Store(bound)
		require.EqualValues(t, want, s.MaxValue())
	}
}

// An entry that is written again, in another form, has not left, even where a crowd of
// equal hashes makes an index that grows lose entries: if it loses this one, that is told,
// and there is nothing to write again.
func TestTouch_InACrowd(t *testing.T) {
	for _, large := range []bool{false, true} {
		kept, lost := 0, 0
		for round := range uint32(60) {
			left := map[uint32]bool{}
			g := ringtest.Tiny(32, 64, 256)
			g.Seed = [2]uint64{} // all hashes are equal
			g.OnRemove = func(gone ringcache.Removal) {
				left[binary.LittleEndian.Uint32(gone.Key)] = true
			}
			c := ringtest.MustCache(t, g)
			b, size := ringtest.BucketOf(c, ringtest.HashOf(c, nil)), 1
			if large {
				b, size = ringtest.LargeBucketOf(c, ringtest.HashOf(c, nil)),
					g.MaxBytes/g.Buckets/store.LargeShare+1
			}
			for id := range uint32(60) {
				if err := c.Set(ringtest.TrafficKey(nil, id), make([]byte, size)); err != nil {
					require.NoError(t, err)
				}
				if id == 0 {
					growTo(t, b, 8) // a path goes by all of 8 groups, but by 4 of 9
				}
				if !b.Index.Growing() || b.Index.Groups() != 9 {
					continue
				}
				for n := range id { // with each, some homes move
					clear(left)
					of := (n + round) % id
					there := c.Touch(ringtest.TrafficKey(nil, of), time.Hour)
					switch {
					case there && left[of]:
						require.Fail(t, "it has left, and is there", "large %v, round %d: key %d", large, round, of)
					case there:
						kept++
					case left[of]:
						lost++
					}
				}
			}
		}
		require.GreaterOrEqual(t, kept, 100, "large %v: it proves too little", large)
		require.GreaterOrEqual(t, lost, 10, "large %v: it proves too little", large)
	}
}

// growTo gives a bucket's index, which has one group, so many.
func growTo(t *testing.T, b ringtest.Bucket, groups int) {
	t.Helper()
	b.Lock()
	defer b.Unlock()
	require.NoError(t, b.GrowIndex(groups-1))
}
