package ringcache

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

	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
)

// kept is what is known of an entry: what a snapshot brings back.
type kept struct {
	value    string
	ring     policy.Ring
	freq     int
	age      float64 // 0 at the tail of its ring, 1 at the head
	expiry   uint32
	negative bool
}

// contents returns what a cache holds, by key.
func contents(t testing.TB, c *Cache) map[string]kept {
	t.Helper()
	all := map[string]kept{}
	c.each(func(b *bucket) {
		b.mu.Lock()
		defer b.mu.Unlock()
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
				s := c.shared.Compression
				if v, err = s.Unpack(nil, v, s.DictOf(v)); err != nil {
					return // as good as not there
				}
			}
			if _, twice := all[k]; twice {
				require.Fail(t, "it is there twice", "key %.30q", k)
			}
			all[k] = kept{
				value: string(v), ring: index.Ring(slot), freq: index.Freq(slot),
				age:    float64((index.Pos(slot)-r.Tail)&r.Mask) / float64(r.Size),
				expiry: hd.Expiry, negative: hd.Kind == record.Negative,
			}
		})
	})
	return all
}

// requireSame fails unless two caches have the same entries, but for their ages and when
// exactly they expire; with rings, in the same rings too, as far as keys fall into
// buckets that have room there.
func requireSame(t testing.TB, want, got map[string]kept, rings bool) {
	t.Helper()
	moved := 0
	for k, w := range want {
		g, ok := got[k]
		w.age, g.age = 0, 0
		w.expiry, g.expiry = min(w.expiry, 1), min(g.expiry, 1)
		if rings && w.ring != g.ring {
			moved++
		}
		w.ring, g.ring = 0, 0
		if !ok || w != g {
			w.value, g.value = w.value[:min(len(w.value), 20)], g.value[:min(len(g.value), 20)]
			require.Equal(t, w, g, "key %.30q, there: %v", k, ok)
		}
	}
	require.Equal(t, len(want), len(got), "entries")
	require.LessOrEqual(t, moved, len(want)/20, "came to another ring")
}

// mixedCache returns a cache with entries of all kinds: short and long, large ones,
// with and without an expiry, read and unread, in both rings.
func mixedCache(t testing.TB, g geometry) *Cache {
	t.Helper()
	c := mustCache(t, g)
	require.NoError(t, c.Set(nil, nil))
	require.NoError(t, c.Set(bytes.Repeat([]byte("k"), 4000), []byte("long key")))
	require.NoError(t, c.SetWithTTL([]byte("an hour"), []byte("v"), time.Hour))
	for id := range uint32(1500) {
		size := mixedSize(id)
		if id%500 == 11 {
			size = c.shared.MaxValue()
		}
		ttl := time.Duration(id%3) * time.Minute
		v := stamp{id: id, version: 1, size: size}.value(nil)
		require.NoError(t, c.SetWithTTL(trafficKey(nil, id), v, ttl))
		for range id % 5 {
			c.Has(trafficKey(nil, id))
		}
	}
	return c
}

// snapshotOf returns the bytes of a snapshot, and the name of a file that holds them.
func snapshotOf(t testing.TB, c *Cache) ([]byte, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snapshot")
	require.NoError(t, c.SaveToFile(path))
	return readFile(t, path), path
}

// readFile returns the bytes of a file.
func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}

// writeFile makes a file of bytes.
func writeFile(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snapshot")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

// mustLoad returns the cache of a file, which is validated and closed at the end.
func mustLoad(t testing.TB, path string) *Cache {
	t.Helper()
	c, err := LoadFromFile(path)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.validate())
		closeCache(t, c)
	})
	return c
}

// mustLoadInto is Load of what must succeed; the cache is validated and closed at the end.
func mustLoadInto(t testing.TB, path string, o Options) (*Cache, LoadReport) {
	t.Helper()
	c, report, err := Load(path, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.validate())
		closeCache(t, c)
	})
	return c, report
}

// litter returns the names in a folder that a save has left there.
func litter(t testing.TB, dir string) (names []string) {
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

// endsLater is a context that ends when it was looked at so many times. The caller's own
// goroutine may have nothing to do before all is saved, so that Progress comes too late.
type endsLater struct {
	context.Context
	looks atomic.Int64 // that are left
}

// Err counts the looks.
func (c *endsLater) Err() error {
	if c.looks.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// endsAfter returns a context that ends when a part of what Save does with o is done.
func endsAfter(t *testing.T, c *Cache, o SaveOptions, part float64) context.Context {
	const many = 1 << 40
	all := &endsLater{Context: t.Context()}
	all.looks.Store(many)
	require.NoError(t, c.Save(all, filepath.Join(t.TempDir(), "whole"), o))
	looks := many - all.looks.Load()
	require.Greater(t, looks, int64(100))
	all.looks.Store(int64(part * float64(looks)))
	return all
}
