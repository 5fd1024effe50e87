package entries

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// What Update decides, by one goroutine and by several.

// The last call of the function counts, and without one nothing changes.
func TestUpdate_LastDecisionCounts(t *testing.T) {
	c, _ := ringtest.TimedCache(t, ringtest.Tiny(2, 1024, 64))
	k := []byte("k")
	update := func(fn func(e *ringtest.Entry)) {
		t.Helper()
		require.NoError(t, c.Update(k, fn))
	}
	requireIs := func(want string, left time.Duration) {
		t.Helper()
		v, ttl, ok := c.GetWithTTL(nil, k)
		require.True(t, ok)
		require.Equal(t, want, string(v))
		require.Equal(t, left, ttl)
	}
	update(func(e *ringtest.Entry) { require.False(t, e.Present) })
	require.False(t, c.Has(k))
	update(func(e *ringtest.Entry) { e.Del(); e.SetWithTTL([]byte("a"), time.Hour) })
	requireIs("a", time.Hour)
	update(func(e *ringtest.Entry) {
		require.True(t, e.Present)
		require.Equal(t, "a", string(e.Value))
		require.Equal(t, time.Hour, e.TTL)
		clear(e.Value) // it is a copy
	})
	requireIs("a", time.Hour)
	update(func(e *ringtest.Entry) { e.Del(); e.Set([]byte("b")) })
	requireIs("b", time.Hour)
	update(func(e *ringtest.Entry) { e.Set([]byte("c")); e.SetWithTTL(e.Value, 0) })
	requireIs("b", 0)
	update(func(e *ringtest.Entry) { e.SetWithTTL([]byte("d"), time.Minute); e.Del() })
	require.False(t, c.Has(k))
}

// An expiry that another call has changed is seen before the decision takes effect, like a value.
func TestUpdate_RunsAgainIfTheExpiryChanged(t *testing.T) {
	for name, decide := range map[string]func(e *ringtest.Entry){
		"Set":        func(e *ringtest.Entry) { e.Set(e.Value) },
		"SetWithTTL": func(e *ringtest.Entry) { e.SetWithTTL(e.Value, time.Minute) },
		"Del":        func(e *ringtest.Entry) { e.Del() },
	} {
		c, _ := ringtest.TimedCache(t, ringtest.Tiny(2, 1024, 64))
		k := []byte("k")
		require.NoError(t, c.SetWithTTL(k, []byte("v"), time.Second))
		var seen []time.Duration
		require.NoError(t, c.Update(k, func(e *ringtest.Entry) {
			if seen = append(seen, e.TTL); len(seen) == 1 {
				require.True(t, c.Touch(k, time.Hour)) // as another goroutine would
			}
			if e.TTL < time.Minute { // else somebody has renewed it
				decide(e)
			}
		}))
		require.Equal(t, []time.Duration{time.Second, time.Hour}, seen, name)
		left, ok := c.TTL(k)
		require.True(t, ok, name)
		require.Equal(t, time.Hour, left, name)
	}
}

// A limiter allows as many calls as it may, and a lease has one owner, however many ask at once.
func TestUpdate_DecidesForAllGoroutines(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(2, 1024, 64))
	const clients, rounds, limit = 8, 300, 1000
	var allowed, owners, wrong atomic.Int32
	lease := []byte("lease")
	var wg sync.WaitGroup
	for id := range byte(clients) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range rounds {
				ok := false
				assert.NoError(t, c.Update([]byte("window"), func(e *ringtest.Entry) {
					if ok = !e.Present; ok {
						e.SetWithTTL(binary.LittleEndian.AppendUint64(nil, 1), time.Hour)
						return
					}
					n := binary.LittleEndian.Uint64(e.Value)
					if ok = n < limit; ok {
						e.Set(binary.LittleEndian.AppendUint64(e.Value[:0], n+1))
					}
				}))
				if ok {
					allowed.Add(1)
				}
				if _, mine, _ := c.SetIfAbsent(nil, lease, []byte{id}, time.Hour); !mine {
					continue
				}
				if owners.Add(1) != 1 {
					wrong.Add(1)
				}
				mine := false
				assert.NoError(t, c.Update(lease, func(e *ringtest.Entry) { // renewed
					if mine = e.Present && e.Value[0] == id; mine {
						e.SetWithTTL(e.Value, 2*time.Hour)
					}
				}))
				owners.Add(-1)
				assert.True(t, mine)
				assert.NoError(t, c.Update(lease, func(e *ringtest.Entry) {
					if e.Present && e.Value[0] == id {
						e.Del()
					}
				}))
			}
		}()
	}
	wg.Wait()
	require.EqualValues(t, limit, allowed.Load())
	require.Zero(t, wrong.Load())
	left, ok := c.TTL([]byte("window"))
	require.True(t, ok)
	require.Greater(t, left, 59*time.Minute, "of the window that was begun")
}

// Update counts as what the last call of its function has decided, not as those before.
func TestUpdate_CountsAsWhatItDid(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(2, 1024, 64))
	for name, c := range map[string]*ringcache.Cache{"whole": c, "namespace": c.Namespace("n")} {
		k, calls := []byte("k"), 0
		require.NoError(t, c.Set(k, []byte("v")))
		before := ringtest.StatsOf(c)
		require.NoError(t, c.Update(k, func(e *ringtest.Entry) {
			if calls++; calls > 1 {
				e.Set([]byte("x"))
				return
			}
			require.NoError(t, c.Set(k, []byte("w"))) // as another goroutine would
			e.Del()
		}))
		require.Equal(t, 2, calls)
		require.Equal(t, before.SetCalls+2, ringtest.StatsOf(c).SetCalls, name)
		require.Equal(t, before.DelCalls, ringtest.StatsOf(c).DelCalls, name)
	}
}

// Update of a large value is counted once, as what it ends with, even if OnRemove sets the key
// while other buckets make room.
func TestUpdate_CountsWhatItEndsWith(t *testing.T) {
	var c *ringcache.Cache
	k, armed, runs := []byte("k"), false, 0
	g := ringtest.Default(ringtest.MinBytes)
	g.OnRemove = func(ringcache.Removal) {
		if armed {
			armed = false
			_ = c.Set(k, []byte("other"))
		}
	}
	c = ringtest.MustCache(t, g)
	ringtest.FillCache(t, c, 0, ringtest.MinBytes/100, 100)
	before := c.Stats()
	armed = true
	require.NoError(t, c.Update(k, func(e *ringcache.Entry[[]byte]) {
		if runs++; e.Present {
			e.Del()
		} else {
			e.Set(make([]byte, 1<<20))
		}
	}))
	require.Equal(t, 2, runs)
	s := c.Stats().Sub(before)
	require.EqualValues(t, []uint64{1, 1}, []uint64{s.SetCalls, s.DelCalls}, "one Set is OnRemove's")
}
