package ringcache

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/ringcache/ringcache/internal/workload"
)

// skewed draws from n ids, low ones often, in integers alone: the sequence is
// the same on every platform.
func skewed(seed, n uint64) func() uint64 {
	rnd := workload.NewRand(seed)
	return func() uint64 {
		id := rnd.Uint64N(n)
		for range 3 {
			id = id * rnd.Uint64N(n) / n
		}
		return id
	}
}

// withScans puts a run of ids that never come back after every few requests.
func withScans(next func() uint64) func() uint64 {
	i, scan := 0, uint64(1)<<40
	return func() uint64 {
		if i++; i%2000 < 1000 {
			scan++
			return scan
		}
		return next()
	}
}

// replay reads through the cache, and returns the hits.
func replay(t *testing.T, p Policy, requests int, next func() uint64) (hits int) {
	t.Helper()
	g := tiny(16, 1024, 32)
	g.policy = p
	c := mustCache(t, g)
	key, value, dst := make([]byte, 8), make([]byte, 100), make([]byte, 0, 100)
	for range requests {
		id := next()
		binary.LittleEndian.PutUint64(key, id)
		if v, ok := c.HasGet(dst, key); ok {
			if binary.LittleEndian.Uint64(v) != id {
				t.Fatalf("key %d has the value of %d", id, binary.LittleEndian.Uint64(v))
			}
			hits++
			continue
		}
		binary.LittleEndian.PutUint64(value, id)
		if err := c.Set(key, value); err != nil {
			t.Fatal(err)
		}
	}
	return hits
}

// A change of the policy, or of anything that it depends on, shows in these
// counts. Whoever changes them on purpose says by how much the hit ratios of
// bench/cmd/hitratio change with them.
func TestPolicy_GoldenHits(t *testing.T) {
	const requests = 200_000
	for _, c := range []struct {
		name         string
		next         func() func() uint64
		s3fifo, fifo int
	}{
		{"skewed", func() func() uint64 { return skewed(1, 60_000) }, 131_648, 101_871},
		{"skewed with scans", func() func() uint64 { return withScans(skewed(2, 60_000)) }, 58_504, 30_801},
	} {
		s3fifo, fifo := replay(t, PolicyS3FIFO, requests, c.next()), replay(t, PolicyFIFO, requests, c.next())
		if s3fifo != c.s3fifo || fifo != c.fifo {
			t.Errorf("%s: %d hits of %d with S3-FIFO and %d with FIFO, want %d and %d", c.name, s3fifo, requests, fifo, c.s3fifo, c.fifo)
		}
	}
}

// The counters of causes add up, and tell a policy by its traces.
func TestPolicy_Stats(t *testing.T) {
	for _, p := range []Policy{PolicyS3FIFO, PolicyFIFO} {
		g := tiny(16, 1024, 32)
		g.policy = p
		c := mustCache(t, g)
		next := skewed(3, 60_000)
		key := make([]byte, 8)
		for range 60_000 {
			binary.LittleEndian.PutUint64(key, next())
			if !c.Has(key) {
				if err := c.Set(key, make([]byte, 100)); err != nil {
					t.Fatal(err)
				}
			}
		}
		var s Stats
		c.UpdateStats(&s)
		if s.EvictedEntries == 0 || s.EvictedEntries != s.EvictedSmall+s.EvictedMain+s.EvictedCrowd {
			t.Errorf("%v: %d evicted: %d + %d + %d", p, s.EvictedEntries, s.EvictedSmall, s.EvictedMain, s.EvictedCrowd)
		}
		if s.SetCalls != s.EntriesCount+s.EvictedEntries {
			t.Errorf("%v: %d set, %d are there and %d evicted", p, s.SetCalls, s.EntriesCount, s.EvictedEntries)
		}
		moves := s.Promotions + s.Reinsertions + s.GhostHits + s.EvictedSmall
		if (moves > 0) != (p == PolicyS3FIFO) {
			t.Errorf("%v: promotions %d, reinsertions %d, ghost hits %d, evicted from small %d",
				p, s.Promotions, s.Reinsertions, s.GhostHits, s.EvictedSmall)
		}
	}
}

// A loop that is longer than the cache hits what was kept, and goes on doing so:
// ghosts are not trusted, and main stays as it is. LRU and FIFO hit nothing.
func TestPolicy_KeepsPartOfALoop(t *testing.T) {
	const ids, rounds = 6000, 40 // about half as many entries fit
	at := uint64(0)
	hits := replay(t, PolicyS3FIFO, ids*rounds, func() uint64 { at++; return at % ids })
	if hits < ids*rounds/3 {
		t.Errorf("%d hits of %d in a loop", hits, ids*rounds)
	}
	at = 0
	if hits := replay(t, PolicyFIFO, ids*rounds, func() uint64 { at++; return at % ids }); hits > 0 {
		t.Errorf("%d hits of %d in a loop with FIFO: it fits into the cache", hits, ids*rounds)
	}
}

// Where everything is read once more, a while after it came, and never again,
// small grows until it holds most of it for as long.
func TestPolicy_SmallGrowsForRecency(t *testing.T) {
	const requests, gap = 400_000, 1500 // half of what fits into the cache
	fresh, again := uint64(0), false
	next := func() uint64 {
		if again = !again; again || fresh < gap {
			fresh++
			return fresh
		}
		return fresh - gap
	}
	if hits := replay(t, PolicyS3FIFO, requests, next); hits < requests*3/10 {
		t.Errorf("%d hits of %d, want a third", hits, requests)
	}
}

// While a bucket may take more chunks, new keys drop nobody, whether it asks how many or knows that there is a place.
func TestPolicy_FillsUp(t *testing.T) {
	for _, p := range []Policy{PolicyS3FIFO, PolicyFIFO} {
		g := tiny(1, 1024, 64)
		g.policy = p
		c := mustCache(t, g)
		b := &c.buckets[0]
		var known int
		for id := range uint64(300) {
			if b.outlook == open {
				known++
			}
			if err := c.Set(binary.LittleEndian.AppendUint64(nil, id), make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
			if n := b.evictedSmall + b.evictedMain; n != 0 || b.liveLocked() != int(id)+1 {
				t.Fatalf("%v: %d of %d keys are there, and %d were evicted", p, b.liveLocked(), id+1, n)
			}
		}
		if known < 100 {
			t.Errorf("%v: %d of 300 new keys were known to have a place", p, known)
		}
	}
}

// Room for the next record is made before it is known whether that is new. Setting
// what is there drops no more than that, and the Set of a key whose own record
// has just been dropped for it is a new one.
func TestPolicy_Ready(t *testing.T) {
	for _, p := range []Policy{PolicyS3FIFO, PolicyFIFO} {
		g := tiny(1, 1024, 16)
		g.policy = p
		c := mustCache(t, g)
		var next uint64
		evicted := func() uint64 { return c.buckets[0].evictedSmall + c.buckets[0].evictedMain }
		set := func(id uint64) {
			t.Helper()
			k, v := binary.LittleEndian.AppendUint64(nil, id), binary.LittleEndian.AppendUint64(make([]byte, 92), id)
			if err := c.Set(k, v); err != nil {
				t.Fatal(err)
			}
			if got := c.Get(nil, k); string(got) != string(v) {
				t.Fatalf("%v: the value of %d is %x", p, id, got)
			}
		}
		for ; evicted() < 500; next++ {
			set(next)
		}
		for range 100 {
			before := evicted()
			set(next)
			next++
			if n := evicted() - before; n != 1 {
				t.Fatalf("%v: a new key has dropped %d others", p, n)
			}
		}
		if b := &c.buckets[0]; b.outlook != tight {
			t.Errorf("%v: a full bucket makes no room beforehand", p)
		}
		before := evicted()
		for range 100 {
			set(next - 1)
		}
		if n := evicted() - before; n > 1 {
			t.Errorf("%v: setting what is there has dropped %d others", p, n)
		}
		for id := range next { // each is at a tail at some time
			set(id)
		}
		// From now on what has expired goes first, and that is not looked for beforehand.
		if c.buckets[0].outlook != tight {
			t.Errorf("%v: a full bucket makes no room beforehand", p)
		}
		if err := c.SetWithTTL(binary.LittleEndian.AppendUint64(nil, next), make([]byte, 100), time.Hour); err != nil {
			t.Fatal(err)
		}
		if c.buckets[0].outlook == tight {
			t.Errorf("%v: a bucket with an entry that expires makes room before it looks for it", p)
		}
	}
}
