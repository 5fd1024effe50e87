package near_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var errTest = errors.New("test")

func requireMiss(t *testing.T, s *store, key, cmd string, now time.Time) {
	t.Helper()
	msg, entry := s.Flight(key, cmd, hour, now)
	require.Zero(t, msg)
	require.Nil(t, entry)
}

func requireHit(t *testing.T, s *store, key, cmd, want string) {
	t.Helper()
	msg, entry := s.Flight(key, cmd, hour, time.Now())
	require.Nil(t, entry)
	got, err := msg.ToString()
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.True(t, msg.IsCacheHit())
}

// requireJoin expects a flight that is under way.
func requireJoin(t *testing.T, s *store, key, cmd string) entry {
	t.Helper()
	msg, entry := s.Flight(key, cmd, hour, time.Now())
	require.Zero(t, msg)
	require.NotNil(t, entry)
	return entry
}

// wait waits for the end of a flight, but not for ever.
func wait(entry entry) (message, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return entry.Wait(ctx)
}

// fetch caches a value.
func fetch(t *testing.T, s *store, key, cmd, value string) {
	t.Helper()
	requireMiss(t, s, key, cmd, time.Now())
	require.NotZero(t, s.Update(key, cmd, text(value)))
	requireHit(t, s, key, cmd, value)
}

func TestFlight_MissJoinHit(t *testing.T) {
	s := newStore(newCache(t))
	requireMiss(t, s, "k", "GET", time.Now())
	first := requireJoin(t, s, "k", "GET")
	require.Same(t, first, requireJoin(t, s, "k", "GET"))
	requireMiss(t, s, "k", "STRLEN", time.Now())
	requireMiss(t, s, "k2", "GET", time.Now())

	s.Update("k", "GET", text("v"))
	msg, err := wait(first)
	require.NoError(t, err)
	require.True(t, msg.IsCacheHit())
	got, err := msg.ToString()
	require.NoError(t, err)
	require.Equal(t, "v", got)
	requireHit(t, s, "k", "GET", "v")
	requireJoin(t, s, "k", "STRLEN")
	requireJoin(t, s, "k2", "GET")
}

func TestFlight_WaitEndsWithItsContext(t *testing.T) {
	s := newStore(newCache(t))
	requireMiss(t, s, "k", "GET", time.Now())
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, err := requireJoin(t, s, "k", "GET").Wait(canceled)
	require.ErrorIs(t, err, context.Canceled)
}

// What one reader got is not changed by later writes.
func TestFlight_RepliesAreCopies(t *testing.T) {
	s := newStore(newCache(t))
	fetch(t, s, "k", "GET", "old")
	msg, _ := s.Flight("k", "GET", hour, time.Now())
	s.Delete([]message{text("k")})
	fetch(t, s, "k", "GET", "new")
	got, _ := msg.ToString()
	require.Equal(t, "old", got)
}

func TestUpdate_ExpiresWithTheServersKey(t *testing.T) {
	s := newStore(newCache(t))
	start := time.Now()
	requireMiss(t, s, "k", "GET", start)
	// As rueidis does: the time to live is added to the time of the reply.
	const left = time.Minute
	at := s.Update("k", "GET", reply('$', "v", time.Now().Add(left).UnixMilli()))
	end := start.Add(left).UnixMilli()
	require.InDelta(t, end, at, 2)
	msg, _ := s.Flight("k", "GET", hour, start)
	require.Equal(t, at, msg.CachePXAT())
	msg, _ = s.Flight("k", "GET", hour, time.UnixMilli(at-1))
	require.NotZero(t, msg)
	requireMiss(t, s, "k", "GET", time.UnixMilli(at))
}

// The reply may have been under way for long: then less is left of its time.
func TestUpdate_ExpiryCountsFromTheRequest(t *testing.T) {
	s := newStore(newCache(t))
	start := time.Now().Add(-10 * time.Second)
	requireMiss(t, s, "k", "GET", start)
	at := s.Update("k", "GET", reply('$', "v", time.Now().Add(time.Minute).UnixMilli()))
	require.InDelta(t, start.Add(time.Minute).UnixMilli(), at, 2)
}

func TestUpdate_ExpiresWithTheCallersTTL(t *testing.T) {
	now := time.Now()
	for name, pxat := range map[string]int64{"no TTL": 0, "longer": now.Add(hour).UnixMilli()} {
		t.Run(name, func(t *testing.T) {
			s := newStore(newCache(t))
			s.Flight("k", "GET", time.Minute, now)
			entry := requireJoin(t, s, "k", "GET")
			at := s.Update("k", "GET", reply('$', "v", pxat))
			require.Equal(t, now.Add(time.Minute).UnixMilli(), at)
			msg, err := wait(entry)
			require.NoError(t, err)
			require.Equal(t, at, msg.CachePXAT())
			msg, _ = s.Flight("k", "GET", hour, now)
			require.Equal(t, at, msg.CachePXAT())
			requireMiss(t, s, "k", "GET", now.Add(time.Minute))
		})
	}
}

func TestUpdate_LongestTTL(t *testing.T) {
	s := newStore(newCache(t))
	for _, cmd := range []string{"GET", "STRLEN"} { // in the main record, and in a side record
		s.Flight("k", cmd, math.MaxInt64, time.Now())
		s.Update("k", cmd, text("v"))
		requireHit(t, s, "k", cmd, "v")
	}
}

func TestUpdate_ExpiredReplyIsNotKept(t *testing.T) {
	cache := newCache(t)
	s := newStore(cache)
	requireMiss(t, s, "k", "GET", time.Now())
	s.Update("k", "GET", reply('$', "v", time.Now().Add(-time.Second).UnixMilli()))
	require.Zero(t, cache.Len())
}

func TestUpdate_ErrorsAreHandedOnAndNotKept(t *testing.T) {
	s := newStore(newCache(t))
	requireMiss(t, s, "k", "GET", time.Now())
	entry := requireJoin(t, s, "k", "GET")
	s.Update("k", "GET", reply('-', "WRONGTYPE", 0))
	msg, err := wait(entry)
	require.NoError(t, err)
	require.ErrorContains(t, msg.Error(), "WRONGTYPE")
	requireMiss(t, s, "k", "GET", time.Now())
}

func TestUpdate_OfNoFlightIsIgnored(t *testing.T) {
	cache := newCache(t)
	s := newStore(cache)
	require.Zero(t, s.Update("k", "GET", text("v")))
	require.Zero(t, cache.Len())
}

// A value that the cache refuses is read from the server each time.
func TestUpdate_TooLarge(t *testing.T) {
	s := newStore(newCache(t))
	fetch(t, s, "k", "GET", "small")
	s.Delete([]message{text("k")})
	for range 2 {
		requireMiss(t, s, "k", "GET", time.Now())
		s.Update("k", "GET", text(strings.Repeat("v", cacheSize/16)))
	}
	long := strings.Repeat("k", 70_000)
	for range 2 {
		requireMiss(t, s, long, "GET", time.Now())
		s.Update(long, "GET", text("v"))
	}
	s.Delete([]message{text(long)})
}

func TestCancel(t *testing.T) {
	s := newStore(newCache(t))
	requireMiss(t, s, "k", "GET", time.Now())
	requireMiss(t, s, "k", "STRLEN", time.Now())
	requireMiss(t, s, "k", "TYPE", time.Now())
	entry := requireJoin(t, s, "k", "STRLEN")
	s.Cancel("k", "STRLEN", errTest)
	_, err := wait(entry)
	require.ErrorIs(t, err, errTest)
	s.Cancel("k", "STRLEN", errTest)
	s.Cancel("none", "GET", errTest)

	requireJoin(t, s, "k", "GET")
	requireJoin(t, s, "k", "TYPE")
	fetch(t, s, "k", "STRLEN", "1")
	for _, cmd := range []string{"GET", "TYPE"} {
		s.Update("k", cmd, text(cmd))
		requireHit(t, s, "k", cmd, cmd)
	}
}

func TestDelete_ForgetsAllCommandsOfTheKey(t *testing.T) {
	for name, keys := range map[string][]message{
		"the key":     {text("other"), text("k")},
		"all":         nil,
		"what it was": {reply(':', "", 0)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(newCache(t))
			for _, cmd := range []string{"GET", "STRLEN", "TYPE"} {
				fetch(t, s, "k", cmd, cmd)
			}
			fetch(t, s, "k2", "GET", "v")
			s.Delete(keys)
			if name == "the key" {
				requireHit(t, s, "k2", "GET", "v")
			} else {
				requireMiss(t, s, "k2", "GET", time.Now())
			}
			// In another order: the record that was a side one is now the main one.
			for _, cmd := range []string{"STRLEN", "GET", "TYPE"} {
				fetch(t, s, "k", cmd, "new "+cmd)
			}
		})
	}
}

func TestDelete_OfNothing(t *testing.T) {
	s := newStore(newCache(t))
	fetch(t, s, "k", "GET", "v")
	s.Delete([]message{})
	requireHit(t, s, "k", "GET", "v")
}

// The reply to a request that an invalidation overtook reaches those who wait, and is not
// kept.
func TestDelete_WhileInFlight(t *testing.T) {
	for name, keys := range map[string][]message{"the key": {text("k")}, "all": nil} {
		t.Run(name, func(t *testing.T) {
			s := newStore(newCache(t))
			requireMiss(t, s, "k", "GET", time.Now())
			requireMiss(t, s, "k", "STRLEN", time.Now())
			entry := requireJoin(t, s, "k", "GET")
			s.Delete(keys)
			require.Same(t, entry, requireJoin(t, s, "k", "GET"))
			s.Update("k", "GET", text("old"))
			s.Update("k", "STRLEN", text("3"))
			msg, err := wait(entry)
			require.NoError(t, err)
			got, _ := msg.ToString()
			require.Equal(t, "old", got)
			requireMiss(t, s, "k", "GET", time.Now())
			requireMiss(t, s, "k", "STRLEN", time.Now())
			s.Update("k", "GET", text("new"))
			requireHit(t, s, "k", "GET", "new")
		})
	}
}

func TestClose_ForgetsAllAndKeepsNothing(t *testing.T) {
	cache := newCache(t)
	s := newStore(cache)
	fetch(t, s, "k", "GET", "v")
	fetch(t, s, "k", "STRLEN", "1")
	requireMiss(t, s, "k2", "GET", time.Now())
	entry := requireJoin(t, s, "k2", "GET")

	s.Close(errTest)
	_, err := wait(entry)
	require.ErrorIs(t, err, errTest)
	for range 2 {
		requireMiss(t, s, "k", "GET", time.Now())
		requireMiss(t, s, "k", "STRLEN", time.Now())
		requireMiss(t, s, "k2", "GET", time.Now())
	}
	s.Update("k2", "GET", text("v"))
	s.Cancel("k", "GET", errTest)
	s.Delete([]message{text("k")})
	s.Delete(nil)
	requireMiss(t, s, "k2", "GET", time.Now())
	s.Close(errTest)

	next := newStore(cache)
	requireMiss(t, next, "k", "GET", time.Now())
	requireMiss(t, next, "k", "STRLEN", time.Now())
}

func TestStores_DoNotSeeEachOther(t *testing.T) {
	cache := newCache(t)
	a, b := newStore(cache), newStore(cache)
	fetch(t, a, "k", "GET", "a")
	fetch(t, b, "k", "GET", "b")
	a.Delete(nil)
	requireMiss(t, a, "k", "GET", time.Now())
	requireHit(t, b, "k", "GET", "b")
}

func TestStore_OnAClosedCache(t *testing.T) {
	cache := newCache(t)
	s := newStore(cache)
	fetch(t, s, "k", "GET", "v")
	require.NoError(t, cache.Close())
	for range 2 {
		requireMiss(t, s, "k", "GET", time.Now())
		s.Update("k", "GET", text("v"))
	}
}

// Many want the same: one asks, all get the reply, however closely the end of the request
// and the questions follow each other.
func TestFlight_Concurrent(t *testing.T) {
	s := newStore(newCache(t))
	const keys, readers = 20_000, 4
	asked := make([]atomic.Int32, keys)
	var wg sync.WaitGroup
	wg.Add(readers)
	for range readers {
		go func() {
			defer wg.Done()
			for i := range asked {
				k := strconv.Itoa(i)
				msg, entry := s.Flight(k, "GET", hour, time.Now())
				if entry != nil {
					msg, _ = wait(entry)
				} else if msg.CachePXAT() < 0 {
					asked[i].Add(1)
					s.Update(k, "GET", text(k))
					continue
				}
				if got, err := msg.ToString(); got != k || err != nil {
					t.Errorf("%s: got %q, %v", k, got, err)
				}
			}
		}()
	}
	wg.Wait()
	for i := range asked {
		require.EqualValues(t, 1, asked[i].Load(), "key %d", i)
	}
}

// The cache's hit ratio is that of the reads, of which each is one lookup.
func TestFlight_HitRatioIsThatOfReads(t *testing.T) {
	cache := newCache(t)
	s := newStore(cache)
	const reads = 20_000
	hits, keys := 0, rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.2, 1, 5000)
	for range reads {
		key := strconv.FormatUint(keys.Uint64(), 10)
		msg, entry := s.Flight(key, "GET", hour, time.Now())
		require.Nil(t, entry)
		if msg.IsCacheHit() {
			hits++
		} else {
			s.Update(key, "GET", text("value of "+key))
		}
	}
	stats := cache.Stats()
	require.EqualValues(t, reads, stats.GetCalls)
	require.InDelta(t, float64(hits)/reads, stats.HitRatio(), 0.001)
	require.InDelta(t, 0.9, stats.HitRatio(), 0.08, "the reads prove little: %+v", stats)
}
