package ringcache

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// questing is a cache whose batches are looked at: what getKeys says of it has to be what
// one HasGet after the other says.
type questing struct {
	*Cache
	t           *testing.T
	asked, said int // keys
}

// get looks up keys, with room for their values, and returns how many it was told of.
func (c *questing) get(keys [][]byte, room int) (n, entered int) {
	c.t.Helper()
	var hashes [batchSize]uint64
	var lens [batchSize]int
	var quests [batchSize]quest
	c.askBlock(&hashes, keys)
	var before, after Stats
	c.UpdateStats(&before)
	dst := append(make([]byte, 0, 4+room), "held"...)
	n, entered, end := getKeys(c.Cache, dst, keys, &hashes[0], &lens[0], laneHere(), &quests[0])
	c.UpdateStats(&after)
	require.LessOrEqual(c.t, n, entered)
	require.LessOrEqual(c.t, entered, len(keys))
	c.each(func(b *bucket) {
		for lane := range uint(1 << laneBits) {
			require.Zero(c.t, b.mu.lanes.at(lane, 0).state.Load()&laneBusy, "all lanes have been left")
		}
	})
	want, misses := []byte("held"), uint64(0)
	for i, k := range keys[:n] {
		v, ok := c.HasGet(nil, k)
		want = append(want, v...)
		if !ok {
			misses++
			require.Equal(c.t, glanceMiss, lens[i], "key %x", k)
		} else {
			require.Equal(c.t, len(v), lens[i], "key %x", k)
		}
	}
	require.True(c.t, bytes.Equal(want, dst[:end]))
	require.Equal(c.t, uint64(n), after.GetCalls-before.GetCalls)
	require.Equal(c.t, misses, after.Misses-before.Misses)
	c.asked += len(keys)
	c.said += n
	return n, entered
}

// All keys of a batch are found, or not, wherever on their path they are, several in one
// bucket or twice in the batch, at all counts of keys, while the index grows and entries are
// evicted.
func TestQuest_Paths(t *testing.T) {
	has := glances(t)
	for _, tt := range []struct{ buckets, chunkSize, chunks, passed, tenths int }{
		{1, 16384, 64, 100, 8},
		{4, 16384, 64, 100, 8},
		{64, 16384, 64, 50, 8},
		{4, 1024, 64, 50, 3},
		{2, 1024, 16, 0, 3},
	} {
		g := tiny(tt.buckets, tt.chunkSize, tt.chunks)
		g.asideFrom = 1 << 20
		c := &questing{Cache: mustCache(t, g), t: t}
		const entries = 7000
		rnd := rand.New(rand.NewPCG(1, uint64(tt.buckets)))
		for id := range uint32(entries) {
			require.NoError(t, c.Set(questKey(id), stamp{id: id, size: int(id) % 90}.value([]byte{})))
			if id%16 > 0 {
				continue
			}
			keys := make([][]byte, int(id)/16%(batchSize+1))
			for i := range keys {
				keys[i] = questKey(id*5/4 - rnd.Uint32N(min(id*5/4, 2000)+1))
				if i > 0 && rnd.IntN(8) == 0 {
					keys[i] = keys[rnd.IntN(i)]
				}
			}
			openLanes(c.Cache)
			_, entered := c.get(keys, 100*batchSize)
			require.True(t, !has || entered == len(keys))
		}
		passed := 0
		for i := range c.shared.buckets {
			x := &c.buckets[i].index
			for at := range x.cur.groups {
				if x.group(at).passedAny() {
					passed++
				}
			}
		}
		require.GreaterOrEqual(t, passed, tt.passed)
		if !has {
			require.Zero(t, c.said)
			continue
		}
		// The others come behind the first record of a batch in which a chunk ends.
		require.Greater(t, c.said, c.asked*tt.tenths/10)
	}
}

// questKey returns the key of an entry, of 4 to 31 bytes.
func questKey(id uint32) []byte {
	return append([]byte{byte(id), byte(id >> 8), byte(id >> 16), 0xff}, bytes.Repeat([]byte{byte(id)}, int(id)%28)...)
}

// A batch stops at what a glance cannot do, having said all before it.
func TestQuest_Stops(t *testing.T) {
	has := glances(t)
	keys := make([][]byte, 9)
	for i := range keys {
		keys[i] = questKey(uint32(i))
	}
	const at = 5
	for name, tt := range map[string]struct {
		do      func(t *testing.T, c *Cache)
		room    int
		entered int
		n       int
	}{
		"nothing": {func(*testing.T, *Cache) {}, 90, 9, 9},
		"no room": {func(*testing.T, *Cache) {}, 59, 9, at},
		"room":    {func(*testing.T, *Cache) {}, 60, 9, at + 1},
		"closed":  {func(_ *testing.T, c *Cache) { c.bucket(c.shared.hash(keys[at])).mu.open.Store(0) }, 90, at, at},
		"another's": {func(_ *testing.T, c *Cache) {
			c.lanes.at(laneHere(), c.shared.hash(keys[at])&c.mask).state.Store(laneBusy)
		}, 90, at, at},
		"full": {func(_ *testing.T, c *Cache) {
			c.lanes.at(laneHere(), c.shared.hash(keys[at])&c.mask).state.Store(laneFull)
		}, 90, at, at},
		"long key": {func(t *testing.T, c *Cache) { keys[at] = bytes.Repeat([]byte{1}, maxShortKey+1) }, 90, at, at},
		"expiry":   {func(t *testing.T, c *Cache) { mustSet(t, c, string(keys[at]), "0123456789", time.Hour); openLanes(c) }, 90, 9, at},
		"long record": {func(t *testing.T, c *Cache) {
			require.NoError(t, c.Set(keys[at], make([]byte, maxShortValue+1)))
			openLanes(c)
		}, 90, 9, at},
		"aside": {func(t *testing.T, c *Cache) {
			b := c.bucket(c.shared.hash(keys[at]))
			b.index.patient, b.asideTag = true, uint8(tagOf(c.shared.hash(keys[at])))
			t.Cleanup(func() { b.index.patient, b.asideTag = false, 0 })
		}, 90, 9, at},
		"stray": {func(t *testing.T, c *Cache) {
			require.True(t, c.Del(keys[at]))
			openLanes(c)
			c.shared.strays(c.shared.hash(keys[at])).Add(1)
			t.Cleanup(func() { c.shared.strays(c.shared.hash(keys[at])).Add(-1) })
		}, 90, 9, at},
		"no pages": {func(t *testing.T, c *Cache) {
			b := c.bucket(c.shared.hash(keys[at]))
			pages := b.index.pages
			b.index.pages = nil
			t.Cleanup(func() { b.index.pages = pages })
		}, 90, 9, at},
	} {
		t.Run(name, func(t *testing.T) {
			keys[at] = questKey(at)
			g := tiny(64, 16384, 64)
			g.asideFrom = 1 << 20
			c := mustCache(t, g)
			used := map[uint64]bool{}
			for i, k := range keys {
				for ; used[c.shared.hash(k)&c.mask]; k = append(k, 7) {
				}
				keys[i] = k
				used[c.shared.hash(k)&c.mask] = true
				require.NoError(t, c.Set(k, []byte("0123456789")))
			}
			require.Equal(t, len(keys), c.Len())
			openLanes(c)
			var hashes [batchSize]uint64
			var lens [batchSize]int
			var quests [batchSize]quest // as another batch has left them
			c.askBlock(&hashes, keys)
			lane := laneHere()
			var before, after [9]uint64
			n, _, _ := getKeys(c, make([]byte, 0, 90), keys, &hashes[0], &lens[0], lane, &quests[0])
			require.Equal(t, has, n == len(keys))
			tt.do(t, c)
			c.askBlock(&hashes, keys)
			for i, k := range keys {
				before[i] = c.lanes.at(lane, c.shared.hash(k)&c.mask).state.Load()
			}
			n, entered, end := getKeys(c, make([]byte, 0, tt.room), keys, &hashes[0], &lens[0], lane, &quests[0])
			for i, k := range keys {
				state := &c.lanes.at(lane, c.shared.hash(k)&c.mask).state
				after[i] = state.Load()
				state.Store(0) // some tests take one
				if i < n {
					before[i] += laneOnce
				}
			}
			require.Equal(t, before, after, "all lanes are left, with what was looked up counted")
			if !has {
				tt.n, tt.entered = 0, 0
			}
			require.Equal(t, [3]int{tt.n, tt.entered, 10 * tt.n}, [3]int{n, entered, end})
		})
	}
}

// What a batch copies while it holds lanes is bounded: writers wait for it.
func TestQuest_Bytes(t *testing.T) {
	has := glances(t)
	c := &questing{Cache: mustCache(t, tiny(4, 65536, 32)), t: t}
	var keys [][]byte
	for i := range batchSize {
		keys = append(keys, questKey(uint32(i)))
		require.NoError(t, c.Set(keys[i], stamp{id: uint32(i), size: 3000}.value([]byte{})))
	}
	require.Equal(t, batchSize, c.Len())
	openLanes(c.Cache)
	most := batchBytes/3000 + 1
	require.Less(t, most, batchSize)
	n, _ := c.get(keys, 3000*batchSize)
	require.LessOrEqual(t, n, most)
	vals := make([][]byte, len(keys))
	_, hits := c.GetBatch(nil, keys, vals)
	require.Equal(t, batchSize, hits)
	for i, k := range keys {
		require.Equal(t, c.Get(nil, k), vals[i])
	}
	if !has {
		return
	}
	for n = 0; n < most; { // chunks end in some records
		got, _ := c.get(keys[n:], 3000*batchSize)
		n += got + 1
	}
}

// A batch raises frequencies as so many Gets do.
func TestQuest_Touches(t *testing.T) {
	has := glances(t)
	for _, policy := range []Policy{PolicyS3FIFO, PolicyFIFO} {
		g := tiny(4, 16384, 64)
		g.policy = policy
		c := &questing{Cache: mustCache(t, g), t: t}
		var keys [][]byte
		for i := range batchSize {
			keys = append(keys, questKey(uint32(i)))
			require.NoError(t, c.Set(keys[i], []byte("value")))
		}
		require.Equal(t, batchSize, c.Len())
		for round := range uint64(5) {
			openLanes(c.Cache)
			var hashes [batchSize]uint64
			var lens [batchSize]int
			var quests [batchSize]quest
			c.askBlock(&hashes, keys)
			n, _, _ := getKeys(c.Cache, make([]byte, 0, 1000), keys, &hashes[0], &lens[0], laneHere(), &quests[0])
			require.Equal(t, has, n == batchSize)
			for i, k := range keys[:n] {
				slot, ok := c.bucket(hashes[i]).likely(hashes[i])
				require.True(t, ok)
				want := min(round+1, 3)
				if policy == PolicyFIFO {
					want = 0
				}
				require.Equal(t, want, slot&slotFreqMask/slotFreqOne, "key %x", k)
			}
		}
	}
}

// Batches and writers that meet in few buckets never mix values, count every lookup once, and
// never wait for each other in a circle.
func TestQuest_BesideOthers(t *testing.T) {
	g := tiny(4, 4096, 64)
	g.asideFrom = 0
	c := mustCache(t, g)
	var keys [][]byte
	for i := range 3 * batchSize {
		keys = append(keys, questKey(uint32(i)))
		require.NoError(t, c.Set(keys[i], stamp{id: uint32(i), size: 200}.value([]byte{})))
	}
	var before, after Stats
	c.UpdateStats(&before)
	var asked atomic.Uint64
	var over atomic.Bool
	var readers, writers sync.WaitGroup
	for range 2 {
		writers.Add(1)
		go func() {
			defer writers.Done()
			for i := uint32(0); !over.Load(); i++ {
				id := i % uint32(len(keys))
				if err := c.Set(keys[id], stamp{id: id, version: uint64(i), size: 200}.value(nil)); err != nil {
					t.Error(err)
				}
				if i%8 == 0 {
					b := c.bucket(c.shared.hash(keys[id]))
					b.hold()
					b.mu.open.Store(1<<(1<<laneBits) - 1)
					b.mu.release()
				}
				runtime.Gosched()
			}
		}()
	}
	for g := range 4 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			rnd := rand.New(rand.NewPCG(5, uint64(g)))
			var ids [2 * batchSize]uint32
			batch, vals := make([][]byte, len(ids)), make([][]byte, len(ids))
			dst := make([]byte, 0, 200*len(ids))
			for range 2000 * rounds() {
				for i := range ids {
					ids[i] = rnd.Uint32N(uint32(len(keys)))
					batch[i] = keys[ids[i]]
				}
				dst, _ = c.GetBatch(dst[:0], batch, vals)
				asked.Add(uint64(len(batch)))
				for i, v := range vals {
					if s, err := readStamp(v); v != nil && (err != nil || s.id != ids[i]) {
						t.Errorf("key %d has a value of %d", ids[i], s.id)
						return
					}
				}
			}
		}()
	}
	readers.Wait()
	over.Store(true)
	writers.Wait()
	c.UpdateStats(&after)
	require.Equal(t, asked.Load(), after.GetCalls-before.GetCalls)
}

// The keys of a batch have the same hashes, however long they are.
func TestGlance_BatchHashes(t *testing.T) {
	c := mustCache(t, tiny(4, 1024, 16))
	var keys [][]byte
	for i := range batchSize {
		keys = append(keys, bytes.Repeat([]byte{byte(i)}, i*7%40))
	}
	for n := range batchSize + 1 {
		var hashes [batchSize]uint64
		c.askBlock(&hashes, keys[:n])
		for i, h := range hashes {
			want := uint64(0)
			if i < n {
				want = c.shared.hash(keys[i])
			}
			require.Equal(t, want, h, "key %d of %d", i, n)
		}
	}
}

// A batch is what so many Gets would be, with keys and values of all lengths, some
// missing, and whatever room dst has.
func TestGlance_Batch(t *testing.T) {
	g := tiny(8, 4096, 64)
	g.asideFrom = 0
	c := mustCache(t, g)
	var keys [][]byte
	for i := range 2 * batchSize {
		k := bytes.Repeat([]byte{byte(i)}, i*7%70+1)
		keys = append(keys, k)
		if i%5 > 0 {
			require.NoError(t, c.Set(k, stamp{id: uint32(i), size: i * 3}.value([]byte{})))
		}
	}
	require.NoError(t, c.Set(keys[7], nil))
	for room := 0; room < 20_000; room += 501 {
		openLanes(c)
		dst := append(make([]byte, 0, 4+room), "held"...)
		vals := make([][]byte, len(keys))
		dst, hits := c.GetBatch(dst, keys, vals)
		want := []byte("held")
		for i, k := range keys {
			v, ok := c.HasGet([]byte{}, k)
			if !ok {
				require.Nil(t, vals[i])
				continue
			}
			hits--
			want = append(want, v...)
			require.Equal(t, v, vals[i])
			require.NotNil(t, vals[i])
			require.Equal(t, len(v), cap(vals[i]))
		}
		require.Zero(t, hits)
		require.Equal(t, want, dst)
	}
}

// A batch finds the same lines of records as the lock of each bucket would let it find.
func TestGlance_Records(t *testing.T) {
	has := glances(t)
	c := mustCache(t, tiny(8, 4096, 64))
	fillCache(t, c, 0, 2000, 40)
	var hashes [batchSize]uint64
	for from := 0; from < 3000; from += batchSize {
		for i := range hashes {
			hashes[i] = c.shared.hash(trafficKey(nil, uint32(from+i)))
		}
		for i, n := range []int{1, 2, batchSize} {
			var records, want [batchSize]lines
			if i > 0 {
				openLanes(c)
			}
			noteRecords(c, &hashes[0], &records, n, laneHere())
			for j, h := range hashes[:n] {
				if records[j].n == linesUnknown {
					require.False(t, has && i > 0 && c.bucket(h).asideTag != uint8(tagOf(h)))
					continue
				}
				if !c.recordLines(&want[j], h, laneHere()) {
					require.Zero(t, records[j].n)
					continue
				}
				require.Equal(t, want[j], records[j])
			}
			for j := n; j < batchSize; j++ {
				require.Zero(t, records[j])
			}
		}
	}
}
