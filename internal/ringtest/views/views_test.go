package views

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// What a cache, a namespace and a typed view have in common is tested here once, for all of them.

// storeOps are calls whose answer says all that they have returned.
var storeOps = []func(s ringtest.Calls, a *storeArgs) any{
	func(s ringtest.Calls, a *storeArgs) any { return s.Get(a.dst, a.k) },
	func(s ringtest.Calls, a *storeArgs) any { return listOf(s.HasGet(a.dst, a.k)) },
	func(s ringtest.Calls, a *storeArgs) any { return s.Has(a.k) },
	func(s ringtest.Calls, a *storeArgs) any { return listOf(s.Peek(a.dst, a.k)) },
	func(s ringtest.Calls, a *storeArgs) any {
		out, ttl, ok := s.GetWithTTL(a.dst, a.k)
		return listOf(out, ttl.Round(time.Hour), ok)
	},
	func(s ringtest.Calls, a *storeArgs) any {
		seen := "nothing"
		ok := ringtest.View(s, a.k, func(v []byte) { seen = string(v) })
		return listOf(seen, ok)
	},
	func(s ringtest.Calls, a *storeArgs) any {
		out, hits := s.GetBatch(a.dst, a.keys, a.vals)
		return listOf(out, a.vals, hits)
	},
	func(s ringtest.Calls, a *storeArgs) any { return s.Set(a.k, a.v) },
	func(s ringtest.Calls, a *storeArgs) any { return s.SetWithTTL(a.k, a.v, a.ttl) },
	func(s ringtest.Calls, a *storeArgs) any { return s.SetBatch(a.keys, a.vals) },
	func(s ringtest.Calls, a *storeArgs) any { return s.SetBatchWithTTL(a.keys, a.vals, a.ttl) },
	func(s ringtest.Calls, a *storeArgs) any {
		return listOf(s.SetIfAbsent(a.dst, a.k, a.v, a.ttl))
	},
	func(s ringtest.Calls, a *storeArgs) any { return listOf(s.SetIfChanged(a.k, a.v)) },
	func(s ringtest.Calls, a *storeArgs) any {
		old := a.v
		if a.keep {
			old, _ = s.Peek(nil, a.k)
		}
		return listOf(s.CompareAndSwap(a.k, old, append(a.v, 's')))
	},
	func(s ringtest.Calls, a *storeArgs) any { return a.update(s) },
	func(s ringtest.Calls, a *storeArgs) any { return a.update(s, a.ttl) },
	func(s ringtest.Calls, a *storeArgs) any { return s.Update(a.k, ringtest.Append(a.v)) },
	func(s ringtest.Calls, a *storeArgs) any { return s.Del(a.k) },
	func(s ringtest.Calls, a *storeArgs) any { return listOf(s.GetAndDel(a.dst, a.k)) },
	func(s ringtest.Calls, a *storeArgs) any { return s.Touch(a.k, a.ttl) },
	func(s ringtest.Calls, a *storeArgs) any {
		left, ok := s.TTL(a.k)
		return listOf(left.Round(time.Hour), ok)
	},
	func(s ringtest.Calls, a *storeArgs) any {
		asked := "nobody"
		out, err := s.GetOrLoad(context.Background(), a.dst, a.k,
			func(_ context.Context, k []byte) ([]byte, time.Duration, error) {
				asked = string(k)
				return a.v, time.Hour, ringtest.AbsentIf(a.absent)
			})
		return listOf(out, err, asked)
	},
	func(s ringtest.Calls, a *storeArgs) any {
		asked := "nobody"
		out, hits, err := s.GetOrLoadBatch(context.Background(), a.dst, a.keys, a.vals,
			func(_ context.Context, keys [][]byte) ([]ringtest.Loaded, error) {
				asked = string(bytes.Join(keys, []byte(",")))
				all := make([]ringtest.Loaded, len(keys))
				for i := range all {
					all[i] = ringtest.Loaded{Value: a.v, TTL: time.Hour,
						Err: ringtest.AbsentIf(a.absent && i%2 > 0)}
				}
				return all, nil
			})
		return listOf(out, a.vals, hits, err, asked)
	},
}

func listOf(all ...any) []any { return all }

// storeArgs are what a call is given.
type storeArgs struct {
	dst, k, v    []byte
	keys, vals   [][]byte
	ttl          time.Duration
	keep, absent bool
}

func newStoreArgs(rnd *rand.Rand) *storeArgs {
	pick := func() []byte { // keys of all lengths, few of them
		n := rnd.IntN(60)
		return append([]byte{byte(n)}, make([]byte, n*n/8)...)
	}
	value := func() []byte { return make([]byte, rnd.IntN(4)*rnd.IntN(200)) }
	a := &storeArgs{
		k: pick(), v: value(), dst: append(make([]byte, 0, rnd.IntN(300)), "dst"...),
		keys: make([][]byte, rnd.IntN(80)),
		ttl:  time.Duration(rnd.IntN(4)-1) * time.Hour,
		keep: rnd.IntN(3) > 0, absent: rnd.IntN(3) == 0,
	}
	for i := range a.keys {
		a.keys[i], a.vals = pick(), append(a.vals, value())
	}
	return a
}

func (a *storeArgs) update(s ringtest.Calls, ttl ...time.Duration) any {
	had := "nothing"
	err := s.Update(a.k, ringtest.Replace(func(old []byte, ok bool) ([]byte, bool) {
		had = fmt.Sprintf("%s %t", old, ok)
		return append(old, 'u'), a.keep
	}, ttl...))
	return listOf(had, err)
}

// storeOp makes a random call and returns its answer.
func storeOp(s ringtest.Calls, rnd *rand.Rand) any {
	op, a := rnd.IntN(len(storeOps)), newStoreArgs(rnd)
	return listOf(op, storeOps[op](s, a))
}

// looped returns the entries that a loop yields.
func looped(t *testing.T, s ringtest.Calls) map[string]string {
	t.Helper()
	m := map[string]string{}
	for k, v := range s.All() {
		m[string(k)] = string(v)
	}
	n := 0
	for k := range s.Keys() {
		require.Contains(t, m, string(k))
		n++
	}
	require.Len(t, m, n)
	return m
}

// Every view answers and counts as a separate cache does, whatever others do in the same cache.
func TestViews_AreLikeACacheOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, view := range ringtest.Views {
		t.Run(view.Name, func(t *testing.T) {
			t.Parallel()
			g := ringtest.Tiny(16, 4096, 100) // from which nothing is evicted
			own, c := ringtest.MustCache(t, g), ringtest.MustCache(t, g)
			s, other := view.Of(c), c.Namespace("other")
			r1, r2 := ringtest.NewRand(1), ringtest.NewRand(1)
			for i := range 10_000 {
				want, got := storeOp(own, r1), storeOp(s, r2)
				if !reflect.DeepEqual(want, got) { // the text is the same for nil and empty values
					require.Equal(t, fmt.Sprint(want), fmt.Sprint(got), "call %d", i)
				}
				if i%10 == 0 && view.Shares {
					storeOp(other, ringtest.NewRand(uint64(i)))
					storeOp(c, ringtest.NewRand(uint64(i)))
				}
			}
			require.Equal(t, looped(t, own), looped(t, s))
			if view.InSpace {
				requireCountsOf(t, own, c.Namespace("n"), uint64(view.Overhead))
			}
		})
	}
}

// requireCountsOf fails unless the namespace has counted what own has, which has had the same
// calls with keys that are shorter by overhead.
func requireCountsOf(t *testing.T, own *ringcache.Cache, n *ringcache.Cache, overhead uint64) {
	t.Helper()
	var s ringcache.Stats
	own.UpdateStats(&s)
	want := ringcache.Stats{
		GetCalls: s.GetCalls, Misses: s.Misses, SetCalls: s.SetCalls, DelCalls: s.DelCalls,
		EntriesCount: s.EntriesCount, BytesSize: n.Stats().BytesSize,
	}
	// A record overwritten in place may keep room for an expiry that it does not need. Whether a
	// longer value fits in place depends on the dead records behind it, which differ between the
	// caches.
	room := record.DeadlineSize * s.EntriesCount
	most := s.BytesSize + (overhead+record.LongHeader-record.ShortHeader)*s.EntriesCount
	require.GreaterOrEqual(t, want.BytesSize+room, s.BytesSize+overhead*s.EntriesCount)
	require.LessOrEqual(t, want.BytesSize, most+room, "a longer key may take a longer header")
	require.Equal(t, want, n.Stats())
	require.Equal(t, s.HitRatio(), n.Stats().HitRatio())
	require.NotZero(t, s.HitRatio())
}
