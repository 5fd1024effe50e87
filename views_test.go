package ringcache

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/internal/record"
)

// What a cache, a namespace and a typed view have in common is tested here once, for all of them.

// calls are what they have in common.
type calls interface {
	Get(dst, k []byte) []byte
	HasGet(dst, k []byte) ([]byte, bool)
	HasGetUncounted(dst, k []byte) ([]byte, bool)
	Has(k []byte) bool
	Peek(dst, k []byte) ([]byte, bool)
	GetWithTTL(dst, k []byte) ([]byte, time.Duration, bool)
	View(k []byte, fn func(v []byte)) bool
	GetBatch(dst []byte, keys, vals [][]byte) ([]byte, int)
	Set(k, v []byte) error
	SetWithTTL(k, v []byte, ttl time.Duration) error
	SetBatch(keys, vals [][]byte) error
	SetBatchWithTTL(keys, vals [][]byte, ttl time.Duration) error
	SetIfAbsent(k, v []byte) (bool, error)
	SetIfAbsentWithTTL(dst, k, v []byte, ttl time.Duration) ([]byte, bool, error)
	SetIfChanged(k, v []byte) (bool, error)
	CompareAndSwap(k, old, new []byte) (bool, error)
	Update(k []byte, fn func([]byte, bool) ([]byte, bool)) error
	UpdateWithTTL(k []byte, ttl time.Duration, fn func([]byte, bool) ([]byte, bool)) error
	Append(k, suffix []byte) error
	Del(k []byte) bool
	GetAndDel(dst, k []byte) ([]byte, bool)
	Touch(k []byte, ttl time.Duration) bool
	TTL(k []byte) (time.Duration, bool)
	GetOrLoad(ctx context.Context, dst, k []byte, load loadFunc) ([]byte, error)
	GetOrLoadBatch(
		ctx context.Context, dst []byte, keys, vals [][]byte, load batchLoadFunc,
	) ([]byte, int, error)
	All() iter.Seq2[[]byte, []byte]
	Keys() iter.Seq[[]byte]
}

// typedStore is a typed view of byte slices as a store. What a view lacks it does with what a
// view has in its place.
type typedStore struct{ *Typed[string, []byte] }

// newTypedStore returns a typed view as a store.
func newTypedStore[Of *Cache | *Namespace](of Of, prefix string) calls {
	return typedStore{NewTyped[string](of, codec.Bytes[[]byte](), TypedOptions{Prefix: prefix})}
}

func (s typedStore) Get(dst, k []byte) []byte {
	out, _ := s.HasGet(dst, k)
	return out
}

func (s typedStore) HasGet(dst, k []byte) ([]byte, bool) {
	v, ok, err := s.Typed.Get(string(k))
	return append(dst, v...), ok && err == nil
}

func (s typedStore) HasGetUncounted(dst, k []byte) ([]byte, bool) { return s.Peek(dst, k) }

func (s typedStore) Has(k []byte) bool { return s.Typed.Has(string(k)) }

func (s typedStore) Peek(dst, k []byte) ([]byte, bool) {
	v, ok, err := s.Typed.Peek(string(k))
	return append(dst, v...), ok && err == nil
}

func (s typedStore) GetWithTTL(dst, k []byte) ([]byte, time.Duration, bool) {
	v, ttl, ok, err := s.Typed.GetWithTTL(string(k))
	return append(dst, v...), ttl, ok && err == nil
}

func (s typedStore) View(k []byte, fn func(v []byte)) bool {
	v, ok := s.HasGet(nil, k)
	if ok {
		fn(v)
	}
	return ok
}

func (s typedStore) GetBatch(dst []byte, keys, vals [][]byte) ([]byte, int) {
	found := make([]bool, len(keys))
	hits, _ := s.Typed.GetBatch(texts(keys), vals, found)
	for i := range keys {
		dst = append(dst, vals[i]...)
	}
	return dst, hits
}

func (s typedStore) Set(k, v []byte) error { return s.Typed.Set(string(k), v) }

func (s typedStore) SetWithTTL(k, v []byte, ttl time.Duration) error {
	return s.Typed.SetWithTTL(string(k), v, ttl)
}

func (s typedStore) SetBatch(keys, vals [][]byte) error {
	return s.Typed.SetBatch(texts(keys), vals)
}

func (s typedStore) SetBatchWithTTL(keys, vals [][]byte, ttl time.Duration) error {
	return s.Typed.SetBatchWithTTL(texts(keys), vals, ttl)
}

func (s typedStore) SetIfAbsent(k, v []byte) (bool, error) {
	return s.Typed.SetIfAbsent(string(k), v)
}

func (s typedStore) SetIfAbsentWithTTL(
	dst, k, v []byte, ttl time.Duration,
) ([]byte, bool, error) {
	was, stored, err := s.Typed.SetIfAbsentWithTTL(string(k), v, ttl)
	return append(dst, was...), stored, err
}

func (s typedStore) SetIfChanged(k, v []byte) (bool, error) {
	return s.Typed.SetIfChanged(string(k), v)
}

func (s typedStore) CompareAndSwap(k, old, new []byte) (bool, error) {
	return s.Typed.CompareAndSwap(string(k), old, new)
}

func (s typedStore) Update(k []byte, fn func([]byte, bool) ([]byte, bool)) error {
	return s.Typed.Update(string(k), fn)
}

func (s typedStore) UpdateWithTTL(
	k []byte, ttl time.Duration, fn func([]byte, bool) ([]byte, bool),
) error {
	return s.Typed.UpdateWithTTL(string(k), ttl, fn)
}

func (s typedStore) Append(k, suffix []byte) error {
	return s.Typed.Update(string(k), func(old []byte, _ bool) ([]byte, bool) {
		return append(old, suffix...), true
	})
}

func (s typedStore) Del(k []byte) bool { return s.Typed.Del(string(k)) }

func (s typedStore) GetAndDel(dst, k []byte) ([]byte, bool) {
	v, ok, err := s.Typed.GetAndDel(string(k))
	return append(dst, v...), ok && err == nil
}

func (s typedStore) Touch(k []byte, ttl time.Duration) bool { return s.Typed.Touch(string(k), ttl) }

func (s typedStore) TTL(k []byte) (time.Duration, bool) { return s.Typed.TTL(string(k)) }

func (s typedStore) GetOrLoad(
	ctx context.Context, dst, k []byte, load loadFunc,
) ([]byte, error) {
	v, err := s.Typed.GetOrLoad(ctx, string(k),
		func(ctx context.Context, k string) ([]byte, time.Duration, error) {
			return load(ctx, []byte(k))
		})
	return append(dst, v...), err
}

func (s typedStore) GetOrLoadBatch(
	ctx context.Context, dst []byte, keys, vals [][]byte, load batchLoadFunc,
) ([]byte, int, error) {
	found := make([]bool, len(keys))
	hits, err := s.Typed.GetOrLoadBatch(ctx, texts(keys), vals, found,
		func(ctx context.Context, keys []string) ([]loaded, error) {
			raw := make([][]byte, len(keys))
			for i, k := range keys {
				raw[i] = []byte(k)
			}
			return load(ctx, raw)
		})
	for i := range keys {
		dst = append(dst, vals[i]...)
	}
	return dst, hits, err
}

func (s typedStore) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		s.Typed.All()(func(k string, v []byte) bool { return yield([]byte(k), v) })
	}
}

func (s typedStore) Keys() iter.Seq[[]byte] {
	return func(yield func(k []byte) bool) {
		s.Typed.Keys()(func(k string) bool { return yield([]byte(k)) })
	}
}

// texts returns keys as strings.
func texts(keys [][]byte) []string {
	all := make([]string, len(keys))
	for i, k := range keys {
		all[i] = string(k)
	}
	return all
}

// views are the ways to use a cache.
var views = []struct {
	name     string
	of       func(c *Cache) calls
	shares   bool // the cache has other entries
	inSpace  bool // of the namespace n
	overhead int  // what precedes a key
}{
	{"Cache", func(c *Cache) calls { return c }, false, false, 0},
	{"Namespace", func(c *Cache) calls { return c.Namespace("n") }, true, true, generationSize},
	{"Typed", func(c *Cache) calls { return newTypedStore(c, "") }, false, false, 0},
	{"Typed with a prefix", func(c *Cache) calls { return newTypedStore(c, "p:") }, true, false, 2},
	{"Typed of a Namespace", func(c *Cache) calls {
		return newTypedStore(c.Namespace("n"), "p:")
	}, true, true, generationSize + 2},
}

// storeOps are calls whose answer says all that they have returned.
var storeOps = []func(s calls, a *storeArgs) any{
	func(s calls, a *storeArgs) any { return s.Get(a.dst, a.k) },
	func(s calls, a *storeArgs) any { return list(s.HasGet(a.dst, a.k)) },
	func(s calls, a *storeArgs) any { return list(s.HasGetUncounted(a.dst, a.k)) },
	func(s calls, a *storeArgs) any { return s.Has(a.k) },
	func(s calls, a *storeArgs) any { return list(s.Peek(a.dst, a.k)) },
	func(s calls, a *storeArgs) any {
		out, ttl, ok := s.GetWithTTL(a.dst, a.k)
		return list(out, ttl.Round(time.Hour), ok)
	},
	func(s calls, a *storeArgs) any {
		seen := "nothing"
		ok := s.View(a.k, func(v []byte) { seen = fmt.Sprint(v) })
		return list(seen, ok)
	},
	func(s calls, a *storeArgs) any {
		out, hits := s.GetBatch(a.dst, a.keys, a.vals)
		return list(out, a.vals, hits)
	},
	func(s calls, a *storeArgs) any { return s.Set(a.k, a.v) },
	func(s calls, a *storeArgs) any { return s.SetWithTTL(a.k, a.v, a.ttl) },
	func(s calls, a *storeArgs) any { return s.SetBatch(a.keys, a.vals) },
	func(s calls, a *storeArgs) any { return s.SetBatchWithTTL(a.keys, a.vals, a.ttl) },
	func(s calls, a *storeArgs) any { return list(s.SetIfAbsent(a.k, a.v)) },
	func(s calls, a *storeArgs) any { return list(s.SetIfAbsentWithTTL(a.dst, a.k, a.v, a.ttl)) },
	func(s calls, a *storeArgs) any { return list(s.SetIfChanged(a.k, a.v)) },
	func(s calls, a *storeArgs) any {
		old := a.v
		if a.keep {
			old, _ = s.Peek(nil, a.k)
		}
		return list(s.CompareAndSwap(a.k, old, append(a.v, 's')))
	},
	func(s calls, a *storeArgs) any { return a.update(s.Update) },
	func(s calls, a *storeArgs) any {
		return a.update(func(k []byte, fn func([]byte, bool) ([]byte, bool)) error {
			return s.UpdateWithTTL(k, a.ttl, fn)
		})
	},
	func(s calls, a *storeArgs) any { return s.Append(a.k, a.v) },
	func(s calls, a *storeArgs) any { return s.Del(a.k) },
	func(s calls, a *storeArgs) any { return list(s.GetAndDel(a.dst, a.k)) },
	func(s calls, a *storeArgs) any { return s.Touch(a.k, a.ttl) },
	func(s calls, a *storeArgs) any {
		left, ok := s.TTL(a.k)
		return list(left.Round(time.Hour), ok)
	},
	func(s calls, a *storeArgs) any {
		asked := "nobody"
		out, err := s.GetOrLoad(context.Background(), a.dst, a.k,
			func(_ context.Context, k []byte) ([]byte, time.Duration, error) {
				asked = fmt.Sprint(k)
				return a.v, time.Hour, absentIf(a.absent)
			})
		return list(out, err, asked)
	},
	func(s calls, a *storeArgs) any {
		asked := "nobody"
		out, hits, err := s.GetOrLoadBatch(context.Background(), a.dst, a.keys, a.vals,
			func(_ context.Context, keys [][]byte) ([]loaded, error) {
				asked = fmt.Sprint(keys)
				all := make([]loaded, len(keys))
				for i := range all {
					all[i] = loaded{Value: a.v, TTL: time.Hour, Err: absentIf(a.absent && i%2 > 0)}
				}
				return all, nil
			})
		return list(out, a.vals, hits, err, asked)
	},
}

func list(all ...any) []any { return all }

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

func (a *storeArgs) update(
	update func(k []byte, fn func([]byte, bool) ([]byte, bool)) error,
) any {
	had := "nothing"
	err := update(a.k, func(old []byte, ok bool) ([]byte, bool) {
		had = fmt.Sprint(old, ok)
		return append(old, 'u'), a.keep
	})
	return list(had, err)
}

// storeOp makes a random call and returns what it answered.
func storeOp(s calls, rnd *rand.Rand) string {
	op, a := rnd.IntN(len(storeOps)), newStoreArgs(rnd)
	return fmt.Sprint(op, storeOps[op](s, a))
}

// looped returns the entries that a loop yields.
func looped(t *testing.T, s calls) map[string]string {
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
	for _, view := range views {
		t.Run(view.name, func(t *testing.T) {
			t.Parallel()
			g := tiny(16, 4096, 100) // from which nothing is evicted
			own, c := mustCache(t, g), mustCache(t, g)
			s, other := view.of(c), c.Namespace("other")
			r1, r2 := newRand(1), newRand(1)
			for i := range 10_000 {
				want, got := storeOp(own, r1), storeOp(s, r2)
				if want != got {
					require.Equal(t, want, got, "call %d", i)
				}
				if i%10 == 0 && view.shares {
					storeOp(other, newRand(uint64(i)))
					storeOp(c, newRand(uint64(i)))
				}
			}
			require.Equal(t, looped(t, own), looped(t, s))
			if view.inSpace {
				requireCountsOf(t, own, c.Namespace("n"), uint64(view.overhead))
			}
		})
	}
}

// requireCountsOf fails unless the namespace has counted what own has, which has had the same
// calls with keys that are shorter by overhead.
func requireCountsOf(t *testing.T, own *Cache, n *Namespace, overhead uint64) {
	t.Helper()
	var s Stats
	own.UpdateStats(&s)
	want := NamespaceStats{
		GetCalls: s.GetCalls, Misses: s.Misses, SetCalls: s.SetCalls, DelCalls: s.DelCalls,
		Entries: s.EntriesCount, Bytes: n.Stats().Bytes,
	}
	most := s.BytesSize + (overhead+record.LongHeader-record.ShortHeader)*s.EntriesCount
	require.GreaterOrEqual(t, want.Bytes, s.BytesSize+overhead*s.EntriesCount)
	require.LessOrEqual(t, want.Bytes, most, "a longer key may take a longer header")
	require.Equal(t, want, n.Stats())
	require.Equal(t, s.HitRatio(), n.Stats().HitRatio())
	require.NotZero(t, s.HitRatio())
}
