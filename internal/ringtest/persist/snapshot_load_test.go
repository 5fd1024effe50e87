package persist

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// ReadSnapshot adds: keys that are there stay as they are, the absent ones among them.
func TestReadSnapshot_Adds(t *testing.T) {
	c := ringtest.MixedCache(t, ringtest.Default(ringtest.MinBytes))
	b, path := ringtest.SnapshotOf(t, c)
	g := ringtest.Default(ringtest.MinBytes)
	var now time.Duration
	g.Elapsed = func() time.Duration { return now }
	d := ringtest.MustCache(t, g)
	for id := range uint32(700) {
		v := ringtest.Stamp{ID: id, Version: 2, Size: ringtest.MixedSize(id + 7)}.Value(nil)
		require.NoError(t, d.Set(ringtest.TrafficKey(nil, id), v))
	}
	require.NoError(t, d.SetWithTTL([]byte("an hour"), nil, time.Second))
	now = time.Second
	was := ringtest.Contents(t, d)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	n, err := d.ReadSnapshot(f)
	require.NoError(t, err)
	require.EqualValues(t, len(b), n)
	want := ringtest.Contents(t, c)
	for k, e := range was {
		if k != "an hour" {
			want[k] = e
		}
	}
	ringtest.RequireSame(t, want, ringtest.Contents(t, d), false)
	n, err = d.ReadSnapshot(f) // which is at its end
	require.ErrorIs(t, err, ringcache.ErrCorrupt)
	require.ErrorContains(t, err, path)
	require.Zero(t, n)
}

// What loading pushes out is told, with no lock held.
func TestSnapshot_LoadingTellsOnRemove(t *testing.T) {
	t.Parallel()
	big := ringtest.MustCache(t, ringtest.Default(128<<20))
	ringtest.FillCache(t, big, 0, 400_000, 100)
	_, path := ringtest.SnapshotOf(t, big)
	var c *ringcache.Cache
	var told atomic.Int64
	g := ringtest.Default(ringtest.MinBytes)
	g.OnRemove = func(gone ringcache.Removal) {
		told.Add(1)
		c.Has(gone.Key)
		assert.Equal(t, ringcache.RemovedEvicted, gone.Reason)
	}
	c = ringtest.MustCache(t, g)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	_, err = c.ReadSnapshot(f)
	require.NoError(t, err)
	s := ringtest.StatsOf(c)
	require.EqualValues(t, s.EvictedEntries, told.Load())
	require.Equal(t, s.RestoredEntries, s.EvictedEntries+s.EntriesCount)
	require.NotZero(t, told.Load())
}

// A typed view works on a loaded cache, and a loaded one is saved like any other.
func TestSnapshot_TypedViewOfALoadedCache(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	type user struct{ Name string }
	view := func(c *ringcache.Cache) *ringcache.Typed[uint64, user] {
		return ringcache.NewTyped[uint64](c, codec.JSON[user](), ringcache.TypedOptions{Prefix: "user:"})
	}
	require.NoError(t, view(c).Set(7, user{"Ada"}))
	_, path := ringtest.SnapshotOf(t, c)
	for range 3 {
		d := ringtest.MustLoad(t, path)
		u, ok, err := view(d).Get(7)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "Ada", u.Name)
		_, path = ringtest.SnapshotOf(t, d)
	}
}

// Errors of files name what was asked for, and leave nothing.
func TestSnapshot_FilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none")
	c, err := ringcache.LoadFromFile(none)
	require.Nil(t, c)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "ringcache: load snapshot: "+none)
	_, err = ringcache.LoadFromFile(dir)
	require.ErrorContains(t, err, "not a regular file: d")

	c, report, err := ringcache.Load(none, ringcache.Options{MaxBytes: ringtest.MinBytes})
	require.NoError(t, err)
	require.ErrorIs(t, report.Err, fs.ErrNotExist)
	require.ErrorContains(t, report.Err, "ringcache: load snapshot: "+none)
	require.Zero(t, report.DiscardedBlocks+report.Entries, "nothing was lost")
	require.Zero(t, c.Len())
	require.ErrorContains(t, c.SaveToFile(dir), dir, "a folder is not replaced")
	require.Empty(t, ringtest.Litter(t, filepath.Dir(dir)))
	file := filepath.Join(dir, "file")
	require.NoError(t, c.SaveToFile(file))
	require.Error(t, c.SaveToFile(filepath.Join(file, "below a file")))
	info, err := os.Stat(file)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, fs.FileMode(0o600), info.Mode())
	}
	require.Zero(t, ringtest.MustLoad(t, file).Len(), "an empty cache is a snapshot too")

	require.NoError(t, c.Close())
	require.ErrorIs(t, c.SaveToFile(file), ringcache.ErrClosed, "or it would replace a full one")
	_, err = c.WriteSnapshot(io.Discard)
	require.ErrorIs(t, err, ringcache.ErrClosed)
	_, err = c.ReadSnapshot(bytes.NewReader(ringtest.ReadFile(t, file)))
	require.NoError(t, err, "there is nothing to restore")
	full := ringtest.MixedCache(t, ringtest.Default(ringtest.MinBytes))
	b, _ := ringtest.SnapshotOf(t, full)
	_, err = c.ReadSnapshot(bytes.NewReader(b))
	require.ErrorIs(t, err, ringcache.ErrClosed)
}

// OnRemove runs in the goroutine that calls ReadSnapshot, so a panic in it reaches that caller.
func TestSnapshot_PanicInOnRemoveReachesTheCaller(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(64<<20))
	ringtest.FillCache(t, c, 0, 60_000, 1000)
	_, path := ringtest.SnapshotOf(t, c)
	g := ringtest.Default(ringtest.MinBytes)
	g.OnRemove = func(ringcache.Removal) { panic("of the user") }
	d := ringtest.MustCache(t, g)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.PanicsWithValue(t, "of the user", func() { _, _ = d.ReadSnapshot(f) })
	require.NoError(t, ringtest.Validate(d))
}

// A full cache that is loaded into the same bound loses no entry.
func TestLoad_FullCacheLosesNothing(t *testing.T) {
	t.Parallel()
	for _, mb := range []int{1, 4} {
		for _, size := range []int{20, 100, 1000} {
			for _, mixed := range []bool{false, true} {
				o := ringcache.Options{MaxBytes: mb << 20}
				c, err := ringcache.NewWithOptions(o)
				require.NoError(t, err)
				for i := range 3 * o.MaxBytes / (size + 20) {
					n := size
					if mixed {
						n = rand.IntN(2 * size)
						c.Has(fmt.Append(nil, i-rand.IntN(1+i/5)))
					}
					require.NoError(t, c.Set(fmt.Append(nil, i), make([]byte, n)))
				}
				path := filepath.Join(t.TempDir(), "snapshot")
				require.NoError(t, c.SaveToFile(path))
				d, _, err := ringcache.Load(path, o)
				require.NoError(t, err)
				require.Equal(t, c.Len(), d.Len(), "%d MB, values of %d bytes, mixed: %v", mb, size, mixed)
				require.NoError(t, ringtest.Validate(d))
				require.NoError(t, c.Close())
				require.NoError(t, d.Close())
			}
		}
	}
}
