package store_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

// The records behind a damaged header are dropped with it, and leave all counts; but
// the namespace of the damaged one is unknown.
func TestStore_DamagedHeaderLeavesNoCounts(t *testing.T) {
	t.Parallel()
	drop := map[string]func(b *store.Store){
		"at a tail": func(b *store.Store) { b.PassTail(policy.Main, 0); b.PassTail(policy.Small, 0) },
		"by Reset":  func(b *store.Store) { left := 1 << 30; b.DropStep(&left) },
	}
	for name, drop := range drop {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := ringtest.MustCache(t, ringtest.Default(32<<20))
			s, n := ringtest.Shared(c), c.Namespace("n")
			largeKeys := func() (sum int) {
				for i := range s.LargeKeys {
					for n := s.LargeKeys[i].Load(); n != 0; n >>= 16 {
						sum += int(n & 0xffff)
					}
				}
				return sum
			}
			const keys = 40
			for i := range keys {
				require.NoError(t, n.Set(ringtest.IDKey(i), make([]byte, 50_000)))
			}
			require.Equal(t, keys, largeKeys())
			lost, damaged := 0, 0
			ringtest.Change(c, s.Buckets, func(b *store.Store) {
				lost = b.Sizes().Entries
				require.Greater(t, lost, 2)
				for _, in := range []policy.Ring{policy.Small, policy.Main} {
					if r := b.Ring(in); r.Size > 0 {
						r.Run(r.Tail)[0] = 0x43 // three deadlines
						damaged++
					}
				}
				drop(b)
				b.EndWrite()
				require.Zero(t, b.Sizes().Entries)
			})
			require.Equal(t, keys-lost, largeKeys())
			require.Equal(t, keys-lost+damaged, n.Len())
			require.Zero(t, c.Len())
			require.EqualValues(t, damaged, ringtest.StatsOf(c).Corruptions)
		})
	}
}

// The keys of the other ring stay counted, those behind another damaged header too: lookups and
// Sets still find them.
func TestStore_DamagedHeadersLeaveTheOtherRing(t *testing.T) {
	t.Parallel()
	c := ringtest.MustCache(t, ringtest.Default(32<<20))
	large := ringtest.Shared(c).Buckets
	var keys [][]byte // of one large bucket
	for i := 0; len(keys) < 20; i++ {
		k := ringtest.IDKey(i)
		if int(ringtest.LargeBucketOf(c, ringtest.HashOf(c, k)).Number) == large {
			keys = append(keys, k)
		}
	}
	ringtest.Change(c, large, func(b *store.Store) {
		b.SizeIndex(len(keys))
		for i, k := range keys {
			w := store.Write{Key: k, Value: make([]byte, 50_000), Hash: ringtest.HashOf(c, k)}
			w.Ring = policy.Ring(i % 2)
			var buf [record.MaxHeader]byte
			header := record.Plain.Put(&buf, record.Value, len(k), len(w.Value), record.Times{})
			added, ok := b.Restore(&w, slices.Concat(header, k, w.Value), true)
			require.True(t, added && ok)
		}
		small, main := b.Ring(policy.Small), b.Ring(policy.Main)
		first, ok := main.Header(main.Tail)
		require.True(t, ok)
		for _, at := range [][]byte{small.Run(small.Tail), main.Run(main.Tail + uint64(first.Total()))} {
			at[0] = 0x43 // three deadlines
		}
		b.PassTail(policy.Small, 0)
		b.EndWrite()
	})
	for i, k := range keys {
		require.Equal(t, i%2 == int(policy.Main) && i/2 != 1, c.Has(k), "key %d", i)
	}
	require.NoError(t, c.Set(keys[5], []byte("small")))
	require.True(t, c.Del(keys[5]))
	require.False(t, c.Has(keys[5]), "its older value")
	c.Reset()
}
