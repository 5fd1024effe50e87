package ringcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/testhook"
)

// packedKey and packedValue are of the entry that the tests look at.
var (
	packedKey   = []byte("the key")
	packedValue = text(1<<20, 500)
)

// A read of a packed entry finds the value as it was set, counts as one, and moves it to
// main; one of which nobody is to know leaves it.
func TestColdPart_Reads(t *testing.T) {
	t.Parallel()
	k, v := packedKey, packedValue
	for _, tt := range []struct {
		name    string
		counted bool // in Stats, and promoted
		read    func(t *testing.T, c *Cache) []byte
	}{
		{"Get", true, func(_ *testing.T, c *Cache) []byte { return c.Get(nil, k) }},
		{"Get behind others", true, func(t *testing.T, c *Cache) []byte {
			got := c.Get([]byte("before"), k)
			require.Equal(t, "before", string(got[:6]))
			return got[6:]
		}},
		{"Get of a key in dst", true, func(_ *testing.T, c *Cache) []byte {
			dst := append(make([]byte, 0, 1000), k...)
			return c.Get(dst[:0], dst)
		}},
		{"HasGet", true, func(t *testing.T, c *Cache) []byte {
			got, ok := c.HasGet(nil, k)
			require.True(t, ok)
			return got
		}},
		{"Has", true, func(t *testing.T, c *Cache) []byte {
			require.True(t, c.Has(k))
			return v
		}},
		{"View", true, func(t *testing.T, c *Cache) (got []byte) {
			require.True(t, c.View(k, func(v []byte) { got = bytes.Clone(v); clear(v) }))
			return got
		}},
		{"GetBatch", true, func(t *testing.T, c *Cache) []byte {
			vals := make([][]byte, 1)
			_, hits := c.GetBatch(nil, [][]byte{k}, vals)
			require.Equal(t, 1, hits)
			return vals[0]
		}},
		{"GetWithTTL", true, func(t *testing.T, c *Cache) []byte {
			got, ttl, ok := c.GetWithTTL(nil, k)
			require.True(t, ok)
			require.Zero(t, ttl)
			return got
		}},
		{"GetOrLoad", true, func(t *testing.T, c *Cache) []byte {
			got, err := c.GetOrLoad(context.Background(), nil, k, neverLoad(t))
			require.NoError(t, err)
			return got
		}},
		{"GetOrLoadBatch", true, func(t *testing.T, c *Cache) []byte {
			vals := make([][]byte, 1)
			_, _, err := c.GetOrLoadBatch(context.Background(), nil, [][]byte{k}, vals,
				func(context.Context, [][]byte) ([]loaded, error) {
					return nil, errors.New("it is there")
				})
			require.NoError(t, err)
			return vals[0]
		}},
		{"Typed", true, func(t *testing.T, c *Cache) []byte {
			got, ok, err := bytesView(c).Get(k)
			require.NoError(t, err)
			require.True(t, ok)
			return got
		}},
		{"Peek", false, func(t *testing.T, c *Cache) []byte {
			got, ok := c.Peek(nil, k)
			require.True(t, ok)
			return got
		}},
		{"All", false, func(_ *testing.T, c *Cache) (got []byte) {
			for key, value := range c.All() {
				if bytes.Equal(key, k) {
					got = bytes.Clone(value)
				}
			}
			return got
		}},
		{"Keys", false, func(_ *testing.T, c *Cache) (got []byte) {
			for key := range c.Keys() {
				if bytes.Equal(key, k) {
					got = v
				}
			}
			return got
		}},
		{"TTL", false, func(t *testing.T, c *Cache) []byte {
			ttl, ok := c.TTL(k)
			require.True(t, ok)
			require.Zero(t, ttl)
			return v
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPackedCache(t, flateCompressor{}, nil)
			p.setPacked(t, k, func() error { return p.Set(k, v) })
			before := p.Stats()
			require.Equal(t, string(v), string(tt.read(t, p.Cache)))
			after := p.Stats()
			require.Equal(t, before.SetCalls, after.SetCalls)
			kind, in := p.stored(k)
			assert.Equal(t, [2]any{record.Packed, policy.Cold}, [2]any{kind, in})
			assert.Equal(t, before.Misses, after.Misses)
			require.Equal(t, string(v), string(tt.read(t, p.Cache)), "again")
			kind, in = p.stored(k)
			if tt.counted {
				assert.Equal(t, uint64(1), after.GetCalls-before.GetCalls)
				assert.Equal(t, uint64(1), after.Compression.ColdHits-before.Compression.ColdHits)
				assert.Equal(t, [2]any{record.Value, policy.Main}, [2]any{kind, in})
			} else {
				assert.Equal(t, before.GetCalls, after.GetCalls)
				assert.Equal(t, before.Compression.ColdHits, after.Compression.ColdHits)
				assert.Equal(t, [2]any{record.Packed, policy.Cold}, [2]any{kind, in})
			}
			assert.NoError(t, p.validate())
			require.Equal(t, string(v), string(p.Get(nil, k)), "once more")
		})
	}
}

func neverLoad(t *testing.T) loadFunc {
	return func(context.Context, []byte) ([]byte, time.Duration, error) {
		assert.Fail(t, "it is there, and is not to be loaded")
		return nil, 0, errors.New("it is there")
	}
}

// A write of a packed entry does what it does to any other.
func TestColdPart_Writes(t *testing.T) {
	t.Parallel()
	k, v, other := packedKey, packedValue, text(1<<21, 500)
	longer := append(bytes.Clone(v), "more"...)
	for _, tt := range []struct {
		name string
		call func(c *Cache) (bool, error)
		ok   bool
		want []byte        // nil: it is gone
		told RemovalReason // of v; untold: nothing was told
	}{
		{"Set", func(c *Cache) (bool, error) { return true, c.Set(k, other) },
			true, other, RemovedReplaced},
		{"Set of other length", func(c *Cache) (bool, error) { return true, c.Set(k, longer) },
			true, longer, RemovedReplaced},
		{"Set of a large value", func(c *Cache) (bool, error) {
			return true, c.Set(k, text(3, 10_000))
		}, true, text(3, 10_000), RemovedReplaced},
		{"Set of one too large", func(c *Cache) (bool, error) {
			return errors.Is(c.Set(k, make([]byte, 1<<20)), ErrTooLarge), nil
		}, true, nil, RemovedReplaced},
		{"SetWithTTL", func(c *Cache) (bool, error) {
			return true, c.SetWithTTL(k, other, time.Hour)
		}, true, other, RemovedReplaced},
		{"SetWithTTL of the past", func(c *Cache) (bool, error) {
			return true, c.SetWithTTL(k, other, -1)
		}, true, nil, RemovedDeleted},
		{"SetBatch", func(c *Cache) (bool, error) {
			return true, c.SetBatch([][]byte{k}, [][]byte{other})
		}, true, other, RemovedReplaced},
		{"SetIfAbsent", func(c *Cache) (bool, error) { return c.SetIfAbsent(k, other) },
			false, v, untold},
		{"SetIfChanged, same", func(c *Cache) (bool, error) { return c.SetIfChanged(k, v) },
			false, v, untold},
		{"SetIfChanged, other", func(c *Cache) (bool, error) { return c.SetIfChanged(k, other) },
			true, other, RemovedReplaced},
		{"SetIfChanged, large", func(c *Cache) (bool, error) {
			return c.SetIfChanged(k, text(3, 10_000))
		}, true, text(3, 10_000), RemovedReplaced},
		{"CompareAndSwap", func(c *Cache) (bool, error) { return c.CompareAndSwap(k, v, other) },
			true, other, RemovedReplaced},
		{"CompareAndSwap to large", func(c *Cache) (bool, error) {
			return c.CompareAndSwap(k, v, text(3, 10_000))
		}, true, text(3, 10_000), RemovedReplaced},
		{"CompareAndSwap of another", func(c *Cache) (bool, error) {
			return c.CompareAndSwap(k, other, other)
		}, false, v, untold},
		{"Update", func(c *Cache) (seen bool, err error) {
			err = c.Update(k, func(old []byte, ok bool) ([]byte, bool) {
				seen = ok && bytes.Equal(old, v)
				return other, true
			})
			return seen, err
		}, true, other, RemovedReplaced},
		{"Update that removes", func(c *Cache) (seen bool, err error) {
			err = c.Update(k, func(old []byte, ok bool) ([]byte, bool) {
				seen = ok && bytes.Equal(old, v)
				return nil, false
			})
			return seen, err
		}, true, nil, RemovedDeleted},
		{"Append", func(c *Cache) (bool, error) { return true, c.Append(k, []byte("more")) },
			true, longer, RemovedReplaced},
		{"Touch without room", func(c *Cache) (bool, error) { return c.Touch(k, time.Hour), nil },
			true, v, untold},
		{"Touch for ever", func(c *Cache) (bool, error) { return c.Touch(k, 0), nil },
			true, v, untold},
		{"Touch of the past", func(c *Cache) (bool, error) { return c.Touch(k, -1), nil },
			true, nil, RemovedDeleted},
		{"Del", func(c *Cache) (bool, error) { return c.Del(k), nil }, true, nil, RemovedDeleted},
		{"GetAndDel", func(c *Cache) (bool, error) {
			got, ok := c.GetAndDel(nil, k)
			return ok && bytes.Equal(got, v), nil
		}, true, nil, RemovedDeleted},
		{"Reset", func(c *Cache) (bool, error) { c.Reset(); return true, nil },
			true, nil, RemovedReset},
		{"Close", func(c *Cache) (bool, error) { return true, c.Close() }, true, nil, untold},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPackedCache(t, flateCompressor{}, nil)
			p.setPacked(t, k, func() error { return p.Set(k, v) })
			require.Empty(t, p.told(k), "it was dropped by the policy only")
			before := p.Stats()
			ok, err := tt.call(p.Cache)
			require.NoError(t, err)
			require.Equal(t, tt.ok, ok)
			var want []departure
			if tt.told != untold {
				want = []departure{{string(k), string(v), tt.told}}
			}
			require.Equal(t, want, p.told(k))
			after := p.Stats()
			require.LessOrEqual(t, after.SetCalls-before.SetCalls+after.DelCalls-before.DelCalls, uint64(1))
			require.Equal(t, before.GetCalls, after.GetCalls)
			require.Equal(t, before.Compression.ColdHits, after.Compression.ColdHits)
			got, ok := p.HasGet(nil, k)
			require.Equal(t, tt.want != nil, ok)
			require.Equal(t, string(tt.want), string(got))
		})
	}
}

// told returns what OnRemove was told of a key.
func (p *packedCache) told(k []byte) (all []departure) {
	for _, d := range p.left {
		if d.k == string(k) {
			all = append(all, d)
		}
	}
	return all
}

// OnRemove is called once for each entry removed from the cold part, with its value as it was
// set, and for none that is moved there or back.
func TestColdPart_OnRemoveIsToldOfEachOnce(t *testing.T) {
	p := newPackedCache(t, flateCompressor{}, nil)
	const n = 6000
	set := map[string]string{}
	for k, v := range p.All() {
		set[string(k)] = string(v)
	}
	p.left = nil
	dropped := p.Stats().EvictedEntries
	for p.fillers < n {
		p.fill(t)
		k := fmt.Sprintf("filler %d", p.fillers)
		set[k] = string(text(p.fillers, 300))
		if p.fillers%10 == 0 {
			p.compressAll()
		}
		if p.fillers%20 == 10 { // some come back
			p.Get(nil, fmt.Appendf(nil, "filler %d", p.fillers-600))
		}
	}
	for _, d := range p.left {
		require.Equal(t, RemovedEvicted, d.reason)
		require.Equal(t, set[d.k], d.v, "%s has another value, or was told of twice", d.k)
		delete(set, d.k)
	}
	require.Equal(t, p.Len(), len(set), "all others are there")
	for k, v := range set {
		got, ok := p.Peek(nil, []byte(k))
		require.True(t, ok, k)
		require.Equal(t, v, string(got))
	}
	s := p.Stats()
	require.Greater(t, s.Compression.Compressed, uint64(n/2))
	require.Greater(t, s.Compression.ColdHits, uint64(10))
	require.Equal(t, s.EvictedEntries-dropped, uint64(len(p.left)))
}

// A packed entry expires as others do, and its expiry can be renewed.
func TestColdPart_Expires(t *testing.T) {
	k, v := packedKey, packedValue
	packed := func(t *testing.T, stale time.Duration) *packedCache {
		p := newPackedCache(t, flateCompressor{}, func(g *geometry) { g.stale = stale })
		p.setPacked(t, k, func() error { return p.SetWithTTL(k, v, time.Hour) })
		p.now += 59 * time.Minute
		ttl, ok := p.TTL(k)
		require.True(t, ok)
		require.InDelta(t, time.Minute, ttl, float64(time.Second))
		return p
	}
	t.Run("served while it lives", func(t *testing.T) {
		p := packed(t, 0)
		got, ttl, ok := p.GetWithTTL(nil, k)
		require.True(t, ok)
		require.Equal(t, string(v), string(got))
		require.InDelta(t, time.Minute, ttl, float64(time.Second))
		p.now += time.Minute
		require.False(t, p.Has(k), "it has taken its expiry along")
	})
	t.Run("never late", func(t *testing.T) {
		p := packed(t, 0)
		p.now += time.Minute
		for _, c := range everyCall() {
			switch c.name {
			case "Get", "HasGet", "Has", "Peek", "View", "TTL", "GetWithTTL":
				c.do(p.Cache, k, v)
			}
		}
		_, ok := p.Peek(nil, k)
		require.False(t, ok)
		require.False(t, p.Has(k))
		require.False(t, p.Touch(k, time.Hour))
		_, ok = p.GetAndDel(nil, k)
		require.False(t, ok)
		swapped, err := p.CompareAndSwap(k, v, v)
		require.NoError(t, err)
		require.False(t, swapped)
		require.Zero(t, p.Stats().Compression.ColdHits)
	})
	t.Run("DeleteExpired", func(t *testing.T) {
		p := packed(t, 0)
		require.Zero(t, p.DeleteExpired())
		p.now += time.Minute
		require.Equal(t, 1, p.DeleteExpired())
		_, in := p.stored(k)
		require.Equal(t, policy.Ring(noRing), in)
		require.Equal(t, uint64(1), p.Stats().ExpiredEntries)
	})
	t.Run("Touch", func(t *testing.T) {
		p := packed(t, 0)
		require.True(t, p.Touch(k, 2*time.Hour))
		kind, _ := p.stored(k)
		require.Equal(t, record.Packed, kind, "there is room for the expiry")
		p.now += time.Hour
		require.Equal(t, string(v), string(p.Get(nil, k)))
	})
	t.Run("StaleIfError", func(t *testing.T) {
		p := packed(t, time.Hour)
		p.now += 2 * time.Minute
		require.False(t, p.Has(k))
		got, err := p.GetOrLoad(context.Background(), nil, k, fails)
		require.NoError(t, err)
		require.Equal(t, string(v), string(got))
		require.Equal(t, uint64(1), p.Stats().Loads.StaleHits)
		p.now += time.Hour
		_, err = p.GetOrLoad(context.Background(), nil, k, fails)
		require.Error(t, err)
	})
}

// Entries of a namespace are packed as others are, and go with it.
func TestColdPart_Namespace(t *testing.T) {
	p := newPackedCache(t, flateCompressor{}, nil)
	space := p.Namespace("space")
	require.NoError(t, space.Set(packedKey, packedValue))
	k := testhook.OfNamespace(space).AppendKey(nil, packedKey)
	p.sink(t, k)
	kind, _ := p.stored(k)
	require.Equal(t, record.Packed, kind)
	got, ok := space.HasGet(nil, packedKey)
	require.True(t, ok)
	require.Equal(t, string(packedValue), string(got))
	require.NoError(t, space.Invalidate())
	require.False(t, space.Has(packedKey))
}

// A snapshot has values as they were set, with the time that they have left.
func TestColdPart_Snapshot(t *testing.T) {
	p := newPackedCache(t, flateCompressor{}, nil)
	p.setPacked(t, packedKey, func() error { return p.SetWithTTL(packedKey, packedValue, time.Hour) })
	for range 1000 {
		p.fill(t)
		p.compressAll()
	}
	want := map[string]string{}
	packed := 0
	for k, v := range p.All() {
		want[string(k)] = string(v)
		if kind, _ := p.stored(k); kind == record.Packed {
			packed++
		}
	}
	require.Greater(t, packed, 100)
	var b bytes.Buffer
	_, err := p.WriteSnapshot(&b)
	require.NoError(t, err)
	other := mustCache(t, defaultGeometry(8<<20))
	_, err = other.ReadSnapshot(&b)
	require.NoError(t, err)
	got := map[string]string{}
	for k, v := range other.All() {
		got[string(k)] = string(v)
	}
	require.Equal(t, want, got)
	if _, there := want[string(packedKey)]; there {
		ttl, ok := other.TTL(packedKey)
		require.True(t, ok)
		require.InDelta(t, time.Hour, ttl, float64(time.Minute))
	}
}

// Resize makes the cold part smaller as all else, and no entry another one.
func TestColdPart_Resize(t *testing.T) {
	t.Parallel()
	skipUnderRace(t)
	g := withCold(defaultGeometry(64<<20), flateCompressor{})
	g.byHand = true
	c := mustCache(t, g)
	p := &packedCache{Cache: c, size: 3000}
	check := func() {
		t.Helper()
		require.NoError(t, c.validate())
		n := 0
		for k, v := range c.All() {
			var id int
			_, err := fmt.Sscanf(string(k), "filler %d", &id)
			require.NoError(t, err)
			require.Equal(t, string(text(id, 3000)), string(v), "%s", k)
			n++
		}
		require.Equal(t, c.Len(), n)
	}
	fill := func(n int) {
		for i := range n {
			p.fill(t)
			if i%500 == 0 {
				c.compressAll()
			}
		}
		c.compressAll()
	}
	fill(30_000)
	require.Greater(t, c.Stats().Compression.Compressed, uint64(1000))
	for _, size := range []int{40 << 20, 32 << 20, 64 << 20, 33 << 20} {
		require.NoError(t, c.Resize(size))
		check()
		require.LessOrEqual(t, c.Stats().BytesSize, uint64(size))
		fill(6000)
		check()
	}
}

// A record that the goroutine moves while DeleteExpired is under way is not overlooked.
func TestColdPart_DeleteExpiredFindsWhatMoves(t *testing.T) {
	p := newPackedCache(t, flateCompressor{}, nil)
	require.NoError(t, p.SetWithTTL(packedKey, packedValue, time.Hour))
	p.queue(t, packedKey)
	p.now += time.Hour
	b := p.bucket(p.shared.Hash(packedKey))
	b.mu.Lock()
	var s store.Sweep
	s.Begun, s.Walk = true, b.Walk() // as DeleteStep begins
	b.mu.Unlock()
	p.compressAll()
	_, in := p.stored(packedKey)
	require.Equal(t, policy.Cold, in, "it has moved, expired as it is")
	dropped := 0
	for !s.Done {
		testhook.Change(p.Cache, 0, func(b *store.Store) { dropped += b.DeleteStep(&s) })
	}
	require.Equal(t, 1, dropped)
	require.Less(t, b.Expirer.Soonest, uint32(math.MaxUint32))
}
