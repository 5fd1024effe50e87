package ringtest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
)

// Kept is what is known of an entry: what a snapshot brings back.
type Kept struct {
	Value    string
	Ring     policy.Ring
	Freq     int
	Age      float64 // 0 at the tail of its ring, 1 at the head
	Expiry   uint32
	Last     uint32 // the last deadline
	Negative bool
}

// Contents returns what a cache holds, by key.
func Contents(t testing.TB, c *ringcache.Cache) map[string]Kept {
	t.Helper()
	all := map[string]Kept{}
	EachBucket(c, func(b Bucket) {
		b.Mu.Lock()
		defer b.Mu.Unlock()
		b.Index.Each(func(slot, _ uint64) {
			r := b.Ring(index.Ring(slot))
			if !r.Live(slot) {
				return
			}
			hd, ok := r.Header(index.Pos(slot))
			require.True(t, ok)
			kv, _ := r.Read(nil, index.Pos(slot)+uint64(hd.Size), hd.KeyLen+hd.ValueLen)
			k, v := string(kv[:hd.KeyLen]), kv[hd.KeyLen:]
			if hd.Kind == record.Packed {
				var err error
				s := Shared(c).Compression
				if v, err = s.Unpack(nil, v); err != nil {
					return // as good as not there
				}
			}
			if _, twice := all[k]; twice {
				require.Fail(t, "it is there twice", "key %.30q", k)
			}
			all[k] = Kept{
				Value: string(v), Ring: index.Ring(slot), Freq: index.Freq(slot),
				Age:    float64((index.Pos(slot)-r.Tail)&r.Mask) / float64(r.Size),
				Expiry: hd.Expiry, Negative: hd.Kind == record.Negative,
				Last: r.Times(index.Pos(slot), hd).Last,
			}
		})
	})
	return all
}

// RequireSame fails unless two caches have the same entries, but for their ages and when
// exactly they expire; with rings, in the same rings too, as far as keys fall into
// buckets that have room there.
func RequireSame(t testing.TB, want, got map[string]Kept, rings bool) {
	t.Helper()
	moved := 0
	for k, w := range want {
		g, ok := got[k]
		w.Age, g.Age = 0, 0
		w.Expiry, g.Expiry = min(w.Expiry, 1), min(g.Expiry, 1)
		w.Last, g.Last = min(w.Last, 1), min(g.Last, 1)
		if w.Ring != g.Ring {
			moved++
			g.Freq = w.Freq // what comes to main begins anew
		}
		w.Ring, g.Ring = 0, 0
		if !ok || w != g {
			w.Value, g.Value = w.Value[:min(len(w.Value), 20)], g.Value[:min(len(g.Value), 20)]
			require.Equal(t, w, g, "key %.30q, there: %v", k, ok)
		}
	}
	require.Equal(t, len(want), len(got), "entries")
	if rings {
		require.LessOrEqual(t, moved, len(want)/20, "came to another ring")
	}
}

// MixedCache returns a cache with entries of all kinds: short and long, large ones,
// with and without an expiry, read and unread, in both rings.
func MixedCache(t testing.TB, g Shape) *ringcache.Cache {
	t.Helper()
	c := MustCache(t, g)
	require.NoError(t, c.Set(nil, nil))
	require.NoError(t, c.Set(bytes.Repeat([]byte("k"), 4000), []byte("long key")))
	require.NoError(t, c.SetWithTTL([]byte("an hour"), []byte("v"), time.Hour))
	for id := range uint32(1500) {
		size := MixedSize(id)
		if id%500 == 11 {
			size = Shared(c).MaxValue()
		}
		ttl := time.Duration(id%3) * time.Minute
		v := Stamp{ID: id, Version: 1, Size: size}.Value(nil)
		require.NoError(t, c.SetWithTTL(TrafficKey(nil, id), v, ttl))
		for range id % 5 {
			c.Has(TrafficKey(nil, id))
		}
	}
	return c
}

// SnapshotOf returns the bytes of a snapshot, and the name of a file that holds them.
func SnapshotOf(t testing.TB, c *ringcache.Cache) ([]byte, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snapshot")
	require.NoError(t, c.SaveToFile(path))
	return ReadFile(t, path), path
}

// ReadFile returns the bytes of a file.
func ReadFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}

// WriteFile makes a file of bytes.
func WriteFile(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snapshot")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

// MustLoad returns the cache of a file, which is validated and closed at the end.
func MustLoad(t testing.TB, path string) *ringcache.Cache {
	t.Helper()
	c, err := ringcache.LoadFromFile(path)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, Validate(c))
		CloseCache(t, c)
	})
	return c
}

// MustLoadInto is Load of what must succeed; the cache is validated and closed at the end.
func MustLoadInto(
	t testing.TB, path string, o ringcache.Options,
) (*ringcache.Cache, ringcache.LoadReport) {
	t.Helper()
	c, report, err := ringcache.Load(path, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, Validate(c))
		CloseCache(t, c)
	})
	return c, report
}

// Litter returns the names in a folder that a save has left there.
func Litter(t testing.TB, dir string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range all {
		if strings.Contains(e.Name(), "ringcache-tmp") {
			names = append(names, e.Name())
		}
	}
	return names
}

// EndsLater is a context that ends when it was looked at so many times. The caller's own
// goroutine may have nothing to do before all is saved, so that Progress comes too late.
type EndsLater struct {
	context.Context
	Looks atomic.Int64 // that are left
}

// Err counts the looks.
func (c *EndsLater) Err() error {
	if c.Looks.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// EndsAfter returns a context that ends when a part of what Save does with o is done.
func EndsAfter(
	t *testing.T, c *ringcache.Cache, o ringcache.SaveOptions, part float64,
) context.Context {
	const many = 1 << 40
	all := &EndsLater{Context: t.Context()}
	all.Looks.Store(many)
	require.NoError(t, c.Save(all, filepath.Join(t.TempDir(), "whole"), o))
	looks := many - all.Looks.Load()
	require.Greater(t, looks, int64(100))
	all.Looks.Store(int64(part * float64(looks)))
	return all
}
