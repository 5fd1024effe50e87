package room

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// skewed draws from n ids, low ones often, in integers alone: the sequence is
// the same on every platform.
func skewed(seed, n uint64) func() uint64 {
	rnd := ringtest.NewRand(seed)
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
func replay(t *testing.T, p ringcache.Policy, requests int, next func() uint64) (hits int) {
	t.Helper()
	g := ringtest.Tiny(16, 1024, 32)
	g.Policy = p
	c := ringtest.MustCache(t, g)
	key, value, dst := make([]byte, 8), make([]byte, 100), make([]byte, 0, 100)
	for range requests {
		id := next()
		binary.LittleEndian.PutUint64(key, id)
		if v, ok := c.HasGet(dst, key); ok {
			if got := binary.LittleEndian.Uint64(v); got != id {
				require.Equal(t, id, got, "the value of another key")
			}
			hits++
			continue
		}
		binary.LittleEndian.PutUint64(value, id)
		if err := c.Set(key, value); err != nil {
			require.NoError(t, err)
		}
	}
	return hits
}

// A change of the policy, or of anything that it depends on, shows in these
// counts. Whoever changes them on purpose says by how much the hit ratios of
// bench/cmd/hitratio change with them.
func TestPolicy_GoldenHits(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	const requests = 200_000
	for _, c := range []struct {
		name         string
		next         func() func() uint64
		s3fifo, fifo int
	}{
		{"skewed", func() func() uint64 { return skewed(1, 60_000) }, 133_274, 101_873},
		{"skewed with scans", func() func() uint64 {
			return withScans(skewed(2, 60_000))
		}, 57_947, 30_801},
	} {
		s3fifo := replay(t, ringcache.PolicyS3FIFO, requests, c.next())
		fifo := replay(t, ringcache.PolicyFIFO, requests, c.next())
		assert.Equal(t, c.s3fifo, s3fifo, "%s: hits of %d with S3-FIFO", c.name, requests)
		assert.Equal(t, c.fifo, fifo, "%s: hits of %d with FIFO", c.name, requests)
	}
	for p, want := range map[ringcache.Policy][4]string{
		ringcache.PolicyS3FIFO: {"0.9990 0.0000", "1.0000 0.9928", "0.8077 0.0000", "0.9694 0.9872"},
		ringcache.PolicyFIFO:   {"1.0000 0.0000", "1.0000 0.9692", "1.0000 0.0000", "1.0000 0.9692"},
	} {
		for i, lag := range []float64{0.2, 0.7} {
			for j, hot := range []bool{false, true} {
				g := ringtest.Tiny(16, 1024, 32)
				g.Policy = p
				late, beside := lateReads(t, ringtest.MustCache(t, g), lag, hot)
				got := fmt.Sprintf("%.4f %.4f", late, beside)
				assert.Equal(t, want[2*i+j], got, "%v, lag %v, hot %t", p, lag, hot)
			}
		}
	}
}

// lateReads sets keys one after the other and reads each once, when so large a share of
// what the cache holds was set since; with hot, two reads of a few other keys come with
// each. It returns the hits of each kind after three turns of the cache, as shares.
func lateReads(t *testing.T, c *ringcache.Cache, lag float64, hot bool) (late, beside float64) {
	t.Helper()
	value, dst := make([]byte, 100), make([]byte, 0, 100)
	key := func(id uint64) []byte { return binary.LittleEndian.AppendUint64(nil, id) }
	held := uint64(0)
	for id := range uint64(20_000) { // more than fit
		require.NoError(t, c.Set(key(1<<50+id), value))
		held = max(held, uint64(c.Len()))
	}
	behind, next := uint64(lag*float64(held)), skewed(4, held/8)
	reads, found, asked, hits := 0, 0, 0, 0
	for id := range 8 * held {
		require.NoError(t, c.Set(key(1<<40+id), value))
		counts := id >= 3*held
		if _, ok := c.HasGet(dst, key(1<<40+id-behind)); counts {
			reads++
			if ok {
				found++
			}
		}
		for range 2 {
			k := key(next())
			if !hot {
				break
			}
			_, ok := c.HasGet(dst, k)
			if !ok {
				require.NoError(t, c.Set(k, value))
			}
			if counts {
				asked++
				if ok {
					hits++
				}
			}
		}
	}
	return float64(found) / float64(reads), float64(hits) / float64(max(asked, 1))
}

// What was written lately is found, though nobody has read it in between, and though
// main was full of what nobody has ever read. What is popular beside it stays.
func TestPolicy_FindsWhatWasSetLately(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	for _, lag := range []float64{0.05, 0.1, 0.2, 0.4, 0.6} {
		late, _ := lateReads(t, ringtest.MustCache(t, ringtest.Tiny(32, 1024, 32)), lag, false)
		assert.GreaterOrEqual(t, late, 0.95, "lag %v", lag)
		late, hot := lateReads(t, ringtest.MustCache(t, ringtest.Tiny(32, 1024, 32)), lag, true)
		assert.GreaterOrEqual(t, late, 0.9, "lag %v, beside hot keys", lag)
		assert.GreaterOrEqual(t, hot, 0.97, "hot keys beside lag %v", lag)
	}
}

// Nothing stays for ever that nobody reads: a full cache turns over, slowly.
func TestPolicy_FullCacheTurnsOverWithoutReads(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(4, 1024, 32))
	set := func(id uint64) {
		require.NoError(t, c.Set(binary.LittleEndian.AppendUint64(nil, id), make([]byte, 100)))
	}
	const first = 1000 // they fit
	for id := range uint64(first) {
		set(id)
	}
	held := c.Len()
	for id := range uint64(100 * held) {
		set(first + id)
	}
	left := 0
	for k := range c.Keys() {
		if binary.LittleEndian.Uint64(k) < first {
			left++
		}
	}
	require.Zero(t, left, "of %d entries that nobody read, 100 turns later", held)
	require.GreaterOrEqual(t, c.Len(), held*3/4)
}

// What is peeked at leaves as what nobody has read does, and its ghost is not found.
func TestPeek_LeavesThePolicyAlone(t *testing.T) {
	counts := func(peek bool) (s ringcache.Stats, hits int) {
		c := ringtest.MustCache(t, ringtest.Tiny(16, 1024, 32))
		next, key, dst := skewed(3, 60_000), make([]byte, 8), make([]byte, 0, 100)
		for id := range uint64(60_000) {
			if peek {
				binary.LittleEndian.PutUint64(key, next())
				if _, ok := c.Peek(dst, key); ok {
					hits++
				}
			}
			binary.LittleEndian.PutUint64(key, id)
			require.NoError(t, c.Set(key, make([]byte, 100)))
		}
		return c.Stats(), hits
	}
	want, _ := counts(false)
	got, hits := counts(true)
	require.NotZero(t, hits, "it found nothing: the test proves little")
	require.Equal(t, want, got)
}

// The counters of causes add up, and tell a policy by its traces.
func TestPolicy_Stats(t *testing.T) {
	for _, p := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		g := ringtest.Tiny(16, 1024, 32)
		g.Policy = p
		c := ringtest.MustCache(t, g)
		next := skewed(3, 60_000)
		key := make([]byte, 8)
		for range 60_000 {
			binary.LittleEndian.PutUint64(key, next())
			if !c.Has(key) {
				if err := c.Set(key, make([]byte, 100)); err != nil {
					require.NoError(t, err)
				}
			}
		}
		var s ringcache.Stats
		c.UpdateStats(&s)
		require.NotZero(t, s.EvictedEntries)
		did := ringtest.PolicyOf(c)
		require.Equal(t, s.SetCalls, s.EntriesCount+s.EvictedEntries, "%v", p)
		moves := did.Promotions + did.Reinsertions
		require.Equal(t, p == ringcache.PolicyS3FIFO, moves > 0, "%v: %v", p, s)
	}
}

// A loop that is longer than the cache hits what was kept, and goes on doing so:
// ghosts are not trusted, and main stays as it is. LRU and FIFO hit nothing.
func TestPolicy_KeepsPartOfALoop(t *testing.T) {
	ringtest.SkipUnderRace(t)
	const ids, rounds = 6000, 40 // about half as many entries fit
	at := uint64(0)
	hits := replay(t, ringcache.PolicyS3FIFO, ids*rounds, func() uint64 { at++; return at % ids })
	require.GreaterOrEqual(t, hits, ids*rounds/3)
	at = 0
	hits = replay(t, ringcache.PolicyFIFO, ids*rounds, func() uint64 { at++; return at % ids })
	require.Zero(t, hits, "it fits into the cache")
}

// Where everything is read once more, a while after it came, and never again,
// small grows until it holds most of it for as long.
func TestPolicy_SmallGrowsForRecency(t *testing.T) {
	ringtest.SkipUnderRace(t)
	const requests, gap = 400_000, 1500 // half of what fits into the cache
	fresh, again := uint64(0), false
	next := func() uint64 {
		if again = !again; again || fresh < gap {
			fresh++
			return fresh
		}
		return fresh - gap
	}
	hits := replay(t, ringcache.PolicyS3FIFO, requests, next)
	require.GreaterOrEqual(t, hits, requests*3/10, "want a third")
}

// An Update that decides nothing is a read to the policy, and none to the statistics.
func TestUpdate_OfNothingIsAReadToThePolicyAlone(t *testing.T) {
	counts := func(get func(c *ringcache.Cache, k []byte)) (ringcache.Stats, ringtest.Policy) {
		c := ringtest.MustCache(t, ringtest.Tiny(16, 1024, 32))
		next, key := skewed(3, 60_000), make([]byte, 8)
		for id := range uint64(60_000) {
			binary.LittleEndian.PutUint64(key, next())
			get(c, key)
			binary.LittleEndian.PutUint64(key, id)
			require.NoError(t, c.Set(key, make([]byte, 100)))
		}
		return c.Stats(), ringtest.PolicyOf(c)
	}
	got, did := counts(func(c *ringcache.Cache, k []byte) { ringtest.View(c, k, func([]byte) {}) })
	require.EqualValues(t, 60_000, got.SetCalls)
	require.Zero(t, got.DelCalls+got.GetCalls+got.Misses+got.EvictedMisses)
	_, unread := counts(func(*ringcache.Cache, []byte) {})
	require.Greater(t, did.Promotions, unread.Promotions)
}
