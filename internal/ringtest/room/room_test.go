package room

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// A live entry leaves only when live entries fill the bound: under any mix of writes, a key
// that was set and not removed is found as long as the live bytes of its bucket are below a
// stated share of what the bucket may hold.

// roomShare is that share. The rest is the index, dead bytes that are not worth compacting, and
// chunks that records do not fill.
const roomShare = 0.7

// roomCase is a cache, and what is done to it.
type roomCase struct {
	name string
	g    ringtest.Shape
	most int  // bytes of a value
	life bool // with times to live
	file bool // in a file, which is opened again now and then
}

func roomCases() []roomCase {
	fifo := func(g ringtest.Shape) ringtest.Shape { g.Policy = ringcache.PolicyFIFO; return g }
	return []roomCase{
		{"one bucket", ringtest.Tiny(1, 256, 256), 200, false, false},
		{"two buckets", ringtest.Tiny(2, 256, 256), 200, true, false},
		{"narrow positions", ringtest.Narrow(ringtest.Tiny(2, 256, 256)), 200, true, false},
		{"large chunks", ringtest.Tiny(2, 4096, 64), 1500, false, false},
		{"FIFO", fifo(ringtest.Tiny(2, 256, 256)), 200, true, false},
		{"large records", ringtest.Tiny(4, 1024, 128), 8000, true, false},
		{"large records, FIFO", fifo(ringtest.Tiny(4, 1024, 128)), 8000, false, false},
		{"small", ringtest.Default(ringtest.LeastMaxBytes), 600, true, false},
		{"small with large records", ringtest.Default(700_000), 9000, true, false},
		{"in a file", ringtest.Tiny(2, 256, 256), 200, false, true},
		{"FIFO in a file", fifo(ringtest.Tiny(2, 1024, 128)), 900, false, true},
		{"compressed", ringtest.WithCold(ringtest.Tiny(2, 1024, 128), ringtest.FlateCompressor{}), 900,
			true, false},
	}
}

// room is a cache, and what it must hold.
type room struct {
	t      *testing.T
	rnd    *rand.Rand
	g      ringtest.Shape
	path   string // of the file, if there is one
	c      *ringcache.Cache
	spaces []*ringcache.Cache
	now    *time.Duration
	most   int
	life   bool
	live   map[uint64]roomEntry
	bytes  map[ringtest.Bucket]int // of the live records of each bucket, the large ones together
	oldest int                     // namespace that is invalidated next

	written, counted, moved uint64 // Sets, those of this cache, and bytes
}

type roomEntry struct {
	version  uint64
	size     int
	space    int
	deadline time.Duration // 0: none
	counted  ringtest.Bucket
	record   int
}

func newRoom(t *testing.T, rc roomCase, seed uint64) *room {
	r := &room{t: t, rnd: ringtest.NewRand(seed), most: rc.most, life: rc.life,
		now:  new(time.Duration),
		live: map[uint64]roomEntry{}, bytes: map[ringtest.Bucket]int{}}
	r.g = rc.g
	r.g.Elapsed = func() time.Duration { return *r.now }
	if rc.file {
		r.path = filepath.Join(ringtest.DirInMemory(t), "cache")
	}
	r.open()
	return r
}

// open opens the cache, be it again.
func (r *room) open() {
	if r.path == "" {
		r.c = ringtest.MustCache(r.t, r.g)
	} else {
		r.c = ringtest.MustOpen(r.t, r.g, r.path)
	}
	r.spaces = []*ringcache.Cache{r.c}
	for i := range 3 {
		r.spaces = append(r.spaces, r.c.Namespace(fmt.Sprint(i)))
	}
	byBucket := map[ringtest.Bucket]int{}
	for id, e := range r.live {
		e.counted, _ = r.roomFor(r.spaces[e.space], r.key(id), e.record)
		r.live[id] = e
		byBucket[e.counted] += e.record
	}
	r.bytes = byBucket
}

// reopen opens the file of the cache again.
func (r *room) reopen() {
	if r.path != "" {
		r.counted = 0
		if r.rnd.IntN(2) == 0 {
			require.NoError(r.t, r.c.Close())
		} else {
			ringtest.Abandon(r.c)
		}
		r.open()
	}
}

// key returns the key of id in its namespace.
func (r *room) key(id uint64) []byte {
	return append([]byte("key of room"), binary.LittleEndian.AppendUint64(nil, id)...)
}

// roomFor returns the bucket that a record counts in, and whether it may be added.
func (r *room) roomFor(in *ringcache.Cache, k []byte, record int) (ringtest.Bucket, bool) {
	c := r.c
	if ringtest.Shared(c).IsLarge(record) {
		lb := ringtest.Nth(c, ringtest.Shared(c).Buckets)
		return lb, r.bytes[lb]+record < ringtest.Shared(c).Bound()/8
	}
	_, h := ringtest.KeyOf(in, k)
	b := ringtest.BucketOf(c, h)
	share := ringtest.Shared(c).Bound() / ringtest.Shared(c).Buckets
	switch {
	case r.most > share/8: // large records take a part of it
		share /= 4
	case ringtest.Shared(c).IsLarge(r.most): // they take what is allowed above
		share -= share / 8
	}
	return b, r.bytes[b]+record < int(roomShare*float64(share))
}

// drop notes that a key has gone.
func (r *room) drop(id uint64) {
	if e, ok := r.live[id]; ok {
		r.bytes[e.counted] -= e.record
		delete(r.live, id)
	}
}

// set writes a key if the model has room for it, else removes it.
func (r *room) set(id, version uint64, size int, ttl time.Duration) {
	old, there := r.live[id]
	space := int(id % uint64(len(r.spaces)))
	in, k := r.spaces[space], r.key(id)
	r.drop(id)
	record := size + len(k) + 20
	b, ok := r.roomFor(in, k, record)
	if !ok {
		require.Equal(r.t, there && (old.deadline == 0 || old.deadline > *r.now), in.Del(k))
		return
	}
	v := roomValue(id, version, size)
	e := roomEntry{version, size, space, 0, b, record}
	if ttl > 0 {
		require.NoError(r.t, in.SetWithTTL(k, v, ttl))
		e.deadline = (*r.now + ttl).Truncate(clock.Tick)
	} else {
		require.NoError(r.t, in.Set(k, v))
	}
	r.live[id] = e
	r.bytes[b] += record
}

func roomValue(id, version uint64, size int) []byte {
	v := make([]byte, size)
	rnd, bits := rand.New(rand.NewPCG(id, version)), uint64(0)
	for i := range v {
		if i%8 == 0 {
			bits = rnd.Uint64()
		}
		v[i] = byte(bits>>(i%8*8)) % 5 // it can be compressed
	}
	return v
}

// check looks for a key.
func (r *room) check(id uint64) {
	space := int(id % uint64(len(r.spaces)))
	got, ok := r.spaces[space].HasGet(nil, r.key(id))
	e, live := r.live[id]
	if live && e.deadline != 0 && e.deadline <= *r.now {
		r.drop(id)
		live = false
	}
	require.Equal(r.t, live, ok, "key %d of namespace %d, %d bytes", id, space, e.size)
	if live {
		require.Equal(r.t, string(roomValue(id, e.version, e.size)), string(got))
	}
}

func (r *room) sizeOf() int {
	if r.rnd.IntN(20) == 0 {
		return r.rnd.IntN(r.most)
	}
	return r.rnd.IntN(r.most / 4)
}

// step does something to one of n keys.
func (r *room) step(n int, version uint64) {
	id := uint64(r.rnd.IntN(n))
	in, k := r.spaces[id%uint64(len(r.spaces))], r.key(id)
	switch x := r.rnd.IntN(100); {
	case x < 45:
		r.set(id, version, r.sizeOf(), 0)
	case x < 50 && r.life:
		r.set(id, version, r.sizeOf(), time.Duration(1+r.rnd.IntN(50))*time.Second)
	case x < 58:
		r.drop(id)
		in.Del(k)
	case x < 60:
		r.drop(id)
		in.GetAndDel(nil, k)
	case x < 62: // a Set that fails removes the older value
		r.drop(id)
		require.ErrorIs(r.t, in.Set(k, make([]byte, ringtest.Shared(r.c).MaxValue()+1)),
			ringcache.ErrTooLarge)
	case x < 63 && r.life:
		*r.now += time.Duration(r.rnd.IntN(1000)) * time.Millisecond
	case x == 63 && r.rnd.IntN(50) == 0:
		r.oldest = r.oldest%3 + 1
		r.spaces[r.oldest].Reset()
		for id, e := range r.live {
			if e.space == r.oldest {
				r.drop(id)
			}
		}
	default:
		r.check(id)
	}
}

// all looks for all keys, and for the counts of the namespaces.
func (r *room) all(n int) {
	for id := range uint64(n) {
		r.check(id)
	}
	require.NoError(r.t, ringtest.Validate(r.c))
	s := r.c.Stats()
	require.Zero(r.t, s.EvictedEntries, "evicted while there was room: %v", s)
	r.written += s.SetCalls - r.counted
	r.counted = s.SetCalls
	r.moved = max(r.moved, ringtest.PolicyOf(r.c).MovedBytes)
	r.c.DeleteExpired()
	want := make([]uint64, len(r.spaces))
	for _, e := range r.live {
		want[e.space]++
	}
	for i, n := range r.spaces[1:] {
		require.Equal(r.t, want[i+1], n.Stats().EntriesCount, "entries of namespace %d", i+1)
	}
}

func TestRoom_LiveEntriesStay(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	steps := 40_000 * ringtest.Rounds()
	for _, rc := range roomCases() {
		t.Run(rc.name, func(t *testing.T) {
			r := newRoom(t, rc, 1)
			const keys = 400
			for version := range uint64(steps) {
				r.step(keys, version)
				if version%(uint64(steps)/8) == 0 {
					r.all(keys)
					r.reopen()
				}
			}
			r.all(keys)
			written := float64(r.written) * float64(rc.most) / 8
			require.Greater(t, written, 3*float64(rc.g.MaxBytes), "the rings have not turned")
			require.NotZero(t, r.moved, "nothing was compacted")
		})
	}
}

// A large bucket gets at its dead bytes before small buckets have to give up memory for it.
func TestRoom_DeadLargeRecordsMakeRoomFirst(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(64<<20))
	k := []byte("large")
	lb := ringtest.LargeBucketOf(c, ringtest.HashOf(c, k))
	const n = 100_000
	for i := 0; lb.Sizes().DeadBytes < 4*n; i++ {
		require.NoError(t, c.Set(k, make([]byte, n+i%3)), "too like the old one to be put in its place")
		require.Less(t, i, 1000)
	}
	want, _ := lb.Demand(n)
	require.LessOrEqual(t, want, ringtest.Shared(c).Pool.PagesSize(1+lb.Index.Pages()))
}

// The balance of small and large buckets must not push out live entries while there are dead ones.
func TestRoom_BalanceKeepsLiveEntries(t *testing.T) {
	const bound, large = 32 << 20, 100_000
	small := func(rnd *rand.Rand) int { return 100 + rnd.IntN(1500) }
	for _, tc := range []struct {
		name        string
		small       int   // keys of small values
		large       []int // keys of large values
		rewriteRare int   // one Set in so many is of a large value
		writes      int
	}{
		{"large entries at rest", 8000, upTo(80), 0, 100_000},
		{"small entries at rest", 20_000, upTo(40), 1, 3000},
		{"few large entries are set", 12_000, upTo(60), 500, 100_000},
		{"all large entries in one bucket", 8000, nil, 20, 20_000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := ringtest.Default(bound)
			g.Seed = ringtest.TestSeed
			c := ringtest.MustCache(t, g)
			rnd := ringtest.NewRand(1)
			first := ringtest.Nth(c, ringtest.Shared(c).Buckets)
			keyOf := func(kind string, i int) []byte { return fmt.Appendf(nil, "%s %d", kind, i) }
			if tc.large == nil {
				for i := 0; len(tc.large) < 60; i++ {
					if ringtest.LargeBucketOf(c, ringtest.HashOf(c, keyOf("large", i))) == first {
						tc.large = append(tc.large, i)
					}
				}
			}
			setLarge := func(i int) {
				v := make([]byte, large+rnd.IntN(large/10))
				require.NoError(t, c.Set(keyOf("large", tc.large[i]), v))
			}
			setSmall := func(i int) {
				require.NoError(t, c.Set(keyOf("small", i), make([]byte, small(rnd))))
			}
			for i := range tc.small {
				setSmall(i)
			}
			for i := range tc.large {
				setLarge(i)
			}
			for range tc.writes {
				if tc.rewriteRare > 0 && rnd.IntN(tc.rewriteRare) == 0 {
					setLarge(rnd.IntN(len(tc.large)))
				} else {
					setSmall(rnd.IntN(tc.small))
				}
			}
			require.NoError(t, ringtest.Validate(c))
			s := c.Stats()
			require.Less(t, float64(s.BytesSize), roomShare*bound)
			require.Zero(t, s.EvictedEntries, "%+v", s)
		})
	}
}

func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// Small buckets must not give up live entries for what is dead in large ones: large entries that
// are set often and deleted again have filled these.
func TestRoom_DeadLargeRecordsTakeLittleFromSmall(t *testing.T) {
	const bound, small, large = 64 << 20, 18_000, 120
	g := ringtest.Default(bound)
	g.Seed = ringtest.TestSeed // which buckets fill most is drawn from it
	c := ringtest.MustCache(t, g)
	rnd, value := ringtest.NewRand(1), make([]byte, 150_000)
	for range 4 {
		for range 100_000 {
			k, n := fmt.Appendf(nil, "small %d", rnd.IntN(small)), 10+rnd.IntN(2500)
			if rnd.IntN(100) == 0 {
				k, n = fmt.Appendf(nil, "large %d", rnd.IntN(large)), 50_000+rnd.IntN(100_000)
			}
			require.NoError(t, c.Set(k, value[:n]))
		}
		for i := range large {
			c.Del(fmt.Appendf(nil, "large %d", i))
		}
	}
	require.NoError(t, ringtest.Validate(c))
	s := c.Stats()
	require.Less(t, float64(s.BytesSize), roomShare*bound)
	// Buckets fill unequally, so now and then one evicts.
	require.Less(t, s.EvictedEntries, uint64(100), "%+v", s)
}

// Buckets that were rewritten first keep no memory for dead bytes that later ones need for live
// entries, even where a bucket has a few chunks only.
func TestRoom_EarlyBucketsLeaveMemoryToLaterOnes(t *testing.T) {
	const mean, entries = 100, 65 // of each bucket: half of its memory
	c := ringtest.MustCache(t, ringtest.Default(16<<20))
	ringtest.MustResize(t, c, 2<<20)
	keys := make([][][]byte, ringtest.Shared(c).Buckets)
	for id, full := 0, 0; full < len(keys); id++ {
		k := ringtest.IDKey(id)
		b := ringtest.BucketOf(c, ringtest.HashOf(c, k)).Number
		if n := len(keys[b]); n < entries {
			if keys[b] = append(keys[b], k); n+1 == entries {
				full++
			}
		}
	}
	rnd := ringtest.NewRand(1)
	rewrite := func(buckets [][][]byte) {
		for _, of := range buckets {
			for _, k := range of {
				require.NoError(t, c.Set(k, make([]byte, mean)))
			}
		}
		for range 6 * entries * len(buckets) {
			k := buckets[rnd.IntN(len(buckets))][rnd.IntN(entries)]
			require.NoError(t, c.Set(k, make([]byte, mean/3+rnd.IntN(2*mean-mean*2/3))))
		}
	}
	rewrite(keys[:len(keys)/2])
	rewrite(keys)
	require.Zero(t, ringtest.StatsOf(c).EvictedEntries)
}
