package cold_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// A read of a packed entry finds the value as it was set, counts as one, and moves it to
// main; one of which nobody is to know leaves it.
func TestColdPart_Reads(t *testing.T) {
	t.Parallel()
	k, v := ringtest.PackedKey, ringtest.PackedValue
	for _, tt := range []struct {
		name    string
		counted bool // in Stats, and promoted
		read    func(t *testing.T, c *ringcache.Cache) []byte
	}{
		{"Get", true, func(_ *testing.T, c *ringcache.Cache) []byte { return c.Get(nil, k) }},
		{"Get behind others", true, func(t *testing.T, c *ringcache.Cache) []byte {
			got := c.Get([]byte("before"), k)
			require.Equal(t, "before", string(got[:6]))
			return got[6:]
		}},
		{"Get of a key in dst", true, func(_ *testing.T, c *ringcache.Cache) []byte {
			dst := append(make([]byte, 0, 1000), k...)
			return c.Get(dst[:0], dst)
		}},
		{"HasGet", true, func(t *testing.T, c *ringcache.Cache) []byte {
			got, ok := c.HasGet(nil, k)
			require.True(t, ok)
			return got
		}},
		{"Has", true, func(t *testing.T, c *ringcache.Cache) []byte {
			require.True(t, c.Has(k))
			return v
		}},
		{"GetBatch", true, func(t *testing.T, c *ringcache.Cache) []byte {
			vals := make([][]byte, 1)
			_, hits := c.GetBatch(nil, [][]byte{k}, vals)
			require.Equal(t, 1, hits)
			return vals[0]
		}},
		{"GetWithTTL", true, func(t *testing.T, c *ringcache.Cache) []byte {
			got, ttl, ok := c.GetWithTTL(nil, k)
			require.True(t, ok)
			require.Zero(t, ttl)
			return got
		}},
		{"GetOrLoad", true, func(t *testing.T, c *ringcache.Cache) []byte {
			got, err := c.GetOrLoad(context.Background(), nil, k, neverLoad(t))
			require.NoError(t, err)
			return got
		}},
		{"GetOrLoadBatch", true, func(t *testing.T, c *ringcache.Cache) []byte {
			vals := make([][]byte, 1)
			_, _, err := c.GetOrLoadBatch(context.Background(), nil, [][]byte{k}, vals,
				func(context.Context, [][]byte) ([]ringtest.Loaded, error) {
					return nil, errors.New("it is there")
				})
			require.NoError(t, err)
			return vals[0]
		}},
		{"Typed", true, func(t *testing.T, c *ringcache.Cache) []byte {
			got, ok, err := ringtest.BytesView(c).Get(k)
			require.NoError(t, err)
			require.True(t, ok)
			return got
		}},
		{"Peek", false, func(t *testing.T, c *ringcache.Cache) []byte {
			got, ok := c.Peek(nil, k)
			require.True(t, ok)
			return got
		}},
		{"All", false, func(_ *testing.T, c *ringcache.Cache) (got []byte) {
			for key, value := range c.All() {
				if bytes.Equal(key, k) {
					got = bytes.Clone(value)
				}
			}
			return got
		}},
		{"Keys", false, func(_ *testing.T, c *ringcache.Cache) (got []byte) {
			for key := range c.Keys() {
				if bytes.Equal(key, k) {
					got = v
				}
			}
			return got
		}},
		{"TTL", false, func(t *testing.T, c *ringcache.Cache) []byte {
			ttl, ok := c.TTL(k)
			require.True(t, ok)
			require.Zero(t, ttl)
			return v
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := ringtest.NewPackedCache(t, ringtest.FlateCompressor{}, nil)
			p.SetPacked(t, k, func() error { return p.Set(k, v) })
			before := p.Stats()
			require.Equal(t, string(v), string(tt.read(t, p.Cache)))
			after := p.Stats()
			require.Equal(t, before.SetCalls, after.SetCalls)
			kind, in := ringtest.Stored(p.Cache, k)
			assert.Equal(t, [2]any{record.Packed, policy.Cold}, [2]any{kind, in})
			assert.Equal(t, before.Misses, after.Misses)
			require.Equal(t, string(v), string(tt.read(t, p.Cache)), "again")
			kind, in = ringtest.Stored(p.Cache, k)
			if tt.counted {
				assert.Equal(t, uint64(1), after.GetCalls-before.GetCalls)
				assert.Equal(t, uint64(1), after.Compression.ColdHits-before.Compression.ColdHits)
				assert.Equal(t, [2]any{record.Value, policy.Main}, [2]any{kind, in})
			} else {
				assert.Equal(t, before.GetCalls, after.GetCalls)
				assert.Equal(t, before.Compression.ColdHits, after.Compression.ColdHits)
				assert.Equal(t, [2]any{record.Packed, policy.Cold}, [2]any{kind, in})
			}
			assert.NoError(t, ringtest.Validate(p.Cache))
			require.Equal(t, string(v), string(p.Get(nil, k)), "once more")
		})
	}
}

func neverLoad(t *testing.T) ringtest.LoadFunc {
	return func(context.Context, []byte) ([]byte, time.Duration, error) {
		assert.Fail(t, "it is there, and is not to be loaded")
		return nil, 0, errors.New("it is there")
	}
}

// A write of a packed entry does what it does to any other.
func TestColdPart_Writes(t *testing.T) {
	t.Parallel()
	k, v, other := ringtest.PackedKey, ringtest.PackedValue, ringtest.Text(1<<21, 500)
	longer := append(bytes.Clone(v), "more"...)
	for _, tt := range []struct {
		name string
		call func(c *ringcache.Cache) (bool, error)
		ok   bool
		want []byte                  // nil: it is gone
		told ringcache.RemovalReason // of v; untold: nothing was told
	}{
		{"Set", func(c *ringcache.Cache) (bool, error) { return true, c.Set(k, other) },
			true, other, ringcache.RemovedReplaced},
		{"Set of other length", func(c *ringcache.Cache) (bool, error) { return true, c.Set(k, longer) },
			true, longer, ringcache.RemovedReplaced},
		{"Set of a large value", func(c *ringcache.Cache) (bool, error) {
			return true, c.Set(k, ringtest.Text(3, 10_000))
		}, true, ringtest.Text(3, 10_000), ringcache.RemovedReplaced},
		{"Set of one too large", func(c *ringcache.Cache) (bool, error) {
			return errors.Is(c.Set(k, make([]byte, 1<<20)), ringcache.ErrTooLarge), nil
		}, true, nil, ringcache.RemovedReplaced},
		{"SetWithTTL", func(c *ringcache.Cache) (bool, error) {
			return true, c.SetWithTTL(k, other, time.Hour)
		}, true, other, ringcache.RemovedReplaced},
		{"SetWithTTL of the past", func(c *ringcache.Cache) (bool, error) {
			return true, c.SetWithTTL(k, other, -1)
		}, true, nil, ringcache.RemovedDeleted},
		{"SetBatch", func(c *ringcache.Cache) (bool, error) {
			return true, c.SetBatch([][]byte{k}, [][]byte{other})
		}, true, other, ringcache.RemovedReplaced},
		{"SetIfAbsent", func(c *ringcache.Cache) (bool, error) {
			return ringtest.SetIfAbsent(c, k, other)
		},
			false, v, ringtest.Untold},
		{"SetIfChanged, same", func(c *ringcache.Cache) (bool, error) { return c.SetIfChanged(k, v) },
			false, v, ringtest.Untold},
		{"SetIfChanged, other", func(c *ringcache.Cache) (bool, error) {
			return c.SetIfChanged(k, other)
		},
			true, other, ringcache.RemovedReplaced},
		{"SetIfChanged, large", func(c *ringcache.Cache) (bool, error) {
			return c.SetIfChanged(k, ringtest.Text(3, 10_000))
		}, true, ringtest.Text(3, 10_000), ringcache.RemovedReplaced},
		{"CompareAndSwap", func(c *ringcache.Cache) (bool, error) {
			return c.CompareAndSwap(k, v, other)
		},
			true, other, ringcache.RemovedReplaced},
		{"CompareAndSwap to large", func(c *ringcache.Cache) (bool, error) {
			return c.CompareAndSwap(k, v, ringtest.Text(3, 10_000))
		}, true, ringtest.Text(3, 10_000), ringcache.RemovedReplaced},
		{"CompareAndSwap of another", func(c *ringcache.Cache) (bool, error) {
			return c.CompareAndSwap(k, other, other)
		}, false, v, ringtest.Untold},
		{"Update", func(c *ringcache.Cache) (seen bool, err error) {
			err = c.Update(k, ringtest.Replace(func(old []byte, ok bool) ([]byte, bool) {
				seen = ok && bytes.Equal(old, v)
				return other, true
			}))
			return seen, err
		}, true, other, ringcache.RemovedReplaced},
		{"Update that removes", func(c *ringcache.Cache) (seen bool, err error) {
			err = c.Update(k, ringtest.Replace(func(old []byte, ok bool) ([]byte, bool) {
				seen = ok && bytes.Equal(old, v)
				return nil, false
			}))
			return seen, err
		}, true, nil, ringcache.RemovedDeleted},
		{"Append", func(c *ringcache.Cache) (bool, error) {
			return true, c.Update(k, ringtest.Append([]byte("more")))
		},
			true, longer, ringcache.RemovedReplaced},
		{"Touch without room", func(c *ringcache.Cache) (bool, error) {
			return c.Touch(k, time.Hour), nil
		},
			true, v, ringtest.Untold},
		{"Touch for ever", func(c *ringcache.Cache) (bool, error) { return c.Touch(k, 0), nil },
			true, v, ringtest.Untold},
		{"Touch of the past", func(c *ringcache.Cache) (bool, error) { return c.Touch(k, -1), nil },
			true, nil, ringcache.RemovedDeleted},
		{"Del", func(c *ringcache.Cache) (bool, error) {
			return c.Del(k), nil
		}, true, nil, ringcache.RemovedDeleted},
		{"GetAndDel", func(c *ringcache.Cache) (bool, error) {
			got, ok := c.GetAndDel(nil, k)
			return ok && bytes.Equal(got, v), nil
		}, true, nil, ringcache.RemovedDeleted},
		{"Reset", func(c *ringcache.Cache) (bool, error) { c.Reset(); return true, nil },
			true, nil, ringcache.RemovedReset},
		{"Close", func(c *ringcache.Cache) (bool, error) {
			return true, c.Close()
		}, true, nil, ringtest.Untold},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := ringtest.NewPackedCache(t, ringtest.FlateCompressor{}, nil)
			p.SetPacked(t, k, func() error { return p.Set(k, v) })
			require.Empty(t, p.Told(k), "it was dropped by the policy only")
			before := p.Stats()
			ok, err := tt.call(p.Cache)
			require.NoError(t, err)
			require.Equal(t, tt.ok, ok)
			var want []ringtest.Departure
			if tt.told != ringtest.Untold {
				want = []ringtest.Departure{{K: string(k), V: string(v), Reason: tt.told}}
			}
			require.Equal(t, want, p.Told(k))
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

// OnRemove is called once for each entry removed from the cold part, with its value as it was
// set, and for none that is moved there or back.
func TestColdPart_OnRemoveIsToldOfEachOnce(t *testing.T) {
	p := ringtest.NewPackedCache(t, ringtest.FlateCompressor{}, nil)
	const n = 6000
	set := map[string]string{}
	for k, v := range p.All() {
		set[string(k)] = string(v)
	}
	p.Left = nil
	dropped := p.Stats().EvictedEntries
	for p.Fillers < n {
		p.Fill(t)
		k := fmt.Sprintf("filler %d", p.Fillers)
		set[k] = string(ringtest.Text(p.Fillers, 300))
		if p.Fillers%10 == 0 {
			ringtest.CompressAll(p.Cache)
		}
		if p.Fillers%20 == 10 { // some come back
			p.Get(nil, fmt.Appendf(nil, "filler %d", p.Fillers-600))
		}
	}
	for _, d := range p.Left {
		require.Equal(t, ringcache.RemovedEvicted, d.Reason)
		require.Equal(t, set[d.K], d.V, "%s has another value, or was told of twice", d.K)
		delete(set, d.K)
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
	require.Equal(t, s.EvictedEntries-dropped, uint64(len(p.Left)))
}

// A packed entry expires as others do, and its expiry can be renewed.
func TestColdPart_Expires(t *testing.T) {
	k, v := ringtest.PackedKey, ringtest.PackedValue
	packed := func(t *testing.T, stale time.Duration) *ringtest.PackedCache {
		p := ringtest.NewPackedCache(t, ringtest.FlateCompressor{}, func(g *ringtest.Shape) {
			g.StaleIfError = stale
		})
		p.SetPacked(t, k, func() error { return p.SetWithTTL(k, v, time.Hour) })
		p.Now += 59 * time.Minute
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
		p.Now += time.Minute
		require.False(t, p.Has(k), "it has taken its expiry along")
	})
	t.Run("never late", func(t *testing.T) {
		p := packed(t, 0)
		p.Now += time.Minute
		for _, c := range ringtest.EveryCall() {
			switch c.Name {
			case "Get", "HasGet", "Has", "Peek", "View", "TTL", "GetWithTTL":
				c.Do(p.Cache, k, v)
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
		p.Now += time.Minute
		require.Equal(t, 1, p.DeleteExpired())
		_, in := ringtest.Stored(p.Cache, k)
		require.Equal(t, policy.Ring(ringtest.NoRing), in)
		require.Equal(t, uint64(1), p.Stats().ExpiredEntries)
	})
	t.Run("Touch", func(t *testing.T) {
		p := packed(t, 0)
		require.True(t, p.Touch(k, 2*time.Hour))
		kind, _ := ringtest.Stored(p.Cache, k)
		require.Equal(t, record.Packed, kind, "there is room for the expiry")
		p.Now += time.Hour
		require.Equal(t, string(v), string(p.Get(nil, k)))
	})
	t.Run("StaleIfError", func(t *testing.T) {
		p := packed(t, time.Hour)
		p.Now += 2 * time.Minute
		require.False(t, p.Has(k))
		got, err := p.GetOrLoad(context.Background(), nil, k, ringtest.Fails)
		require.NoError(t, err)
		require.Equal(t, string(v), string(got))
		require.Equal(t, uint64(1), p.Stats().Loads.StaleHits)
		p.Now += time.Hour
		_, err = p.GetOrLoad(context.Background(), nil, k, ringtest.Fails)
		require.Error(t, err)
	})
}

// Entries of a namespace are packed as others are, and go with it.
func TestColdPart_Namespace(t *testing.T) {
	p := ringtest.NewPackedCache(t, ringtest.FlateCompressor{}, nil)
	space := p.Namespace("space")
	require.NoError(t, space.Set(ringtest.PackedKey, ringtest.PackedValue))
	for {
		if kind, _ := ringtest.Stored(space, ringtest.PackedKey); kind == record.Packed {
			break
		}
		p.Fill(t)
		ringtest.CompressAll(p.Cache)
	}
	got, ok := space.HasGet(nil, ringtest.PackedKey)
	require.True(t, ok)
	require.Equal(t, string(ringtest.PackedValue), string(got))
	space.Reset()
	require.False(t, space.Has(ringtest.PackedKey))
}

// A snapshot has values as they were set, with the time that they have left.
func TestColdPart_Snapshot(t *testing.T) {
	p := ringtest.NewPackedCache(t, ringtest.FlateCompressor{}, nil)
	p.SetPacked(t, ringtest.PackedKey, func() error {
		return p.SetWithTTL(ringtest.PackedKey, ringtest.PackedValue, time.Hour)
	})
	p.FillPacked(t, 1000)
	want := map[string]string{}
	packed := 0
	for k, v := range p.All() {
		want[string(k)] = string(v)
		if kind, _ := ringtest.Stored(p.Cache, k); kind == record.Packed {
			packed++
		}
	}
	require.Greater(t, packed, 100)
	var b bytes.Buffer
	_, err := p.WriteSnapshot(&b)
	require.NoError(t, err)
	other := ringtest.MustCache(t, ringtest.Default(8<<20))
	_, err = other.ReadSnapshot(&b)
	require.NoError(t, err)
	got := map[string]string{}
	for k, v := range other.All() {
		got[string(k)] = string(v)
	}
	require.Equal(t, want, got)
	if _, there := want[string(ringtest.PackedKey)]; there {
		ttl, ok := other.TTL(ringtest.PackedKey)
		require.True(t, ok)
		require.InDelta(t, time.Hour, ttl, float64(time.Minute))
	}
}

// Resize makes the cold part smaller as all else, and no entry another one.
func TestColdPart_Resize(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	g := ringtest.WithCold(ringtest.Default(64<<20), ringtest.FlateCompressor{})
	g.Buckets, g.MaxBytes = g.Buckets/8, g.MaxBytes/8 // buckets as large, but fewer
	g.ByHand = true
	c := ringtest.MustCache(t, g)
	p := &ringtest.PackedCache{Cache: c, Size: 3000}
	check := func() {
		t.Helper()
		require.NoError(t, ringtest.Validate(c))
		n := 0
		for k, v := range c.All() {
			var id int
			_, err := fmt.Sscanf(string(k), "filler %d", &id)
			require.NoError(t, err)
			require.Equal(t, string(ringtest.Text(id, 3000)), string(v), "%s", k)
			n++
		}
		require.Equal(t, c.Len(), n)
	}
	fill := func(n int) {
		for i := range n {
			p.Fill(t)
			if i%500 == 0 {
				ringtest.CompressAll(c)
			}
		}
		ringtest.CompressAll(c)
	}
	fill(30_000 / 8)
	require.Greater(t, c.Stats().Compression.Compressed, uint64(1000/8))
	for _, size := range []int{5 << 20, 4 << 20, 8 << 20, 33 << 17} {
		require.NoError(t, c.Resize(size))
		check()
		require.LessOrEqual(t, c.Stats().BytesSize, uint64(size))
		fill(6000 / 8)
		check()
	}
}
