package ringcache

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/codec"
)

// ReadSnapshot adds: keys that are there stay as they are, the absent ones among them.
func TestReadSnapshot_Adds(t *testing.T) {
	c := mixedCache(t, defaultGeometry(minMaxBytes))
	b, path := snapshotOf(t, c)
	g := defaultGeometry(minMaxBytes)
	var now time.Duration
	g.now = func() time.Duration { return now }
	d := mustCache(t, g)
	for id := range uint32(700) {
		v := stamp{id: id, version: 2, size: mixedSize(id + 7)}.value(nil)
		require.NoError(t, d.Set(trafficKey(nil, id), v))
	}
	require.NoError(t, d.SetWithTTL([]byte("an hour"), nil, time.Second))
	now = time.Second
	was := contents(t, d)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	n, err := d.ReadSnapshot(f)
	require.NoError(t, err)
	require.EqualValues(t, len(b), n)
	want := contents(t, c)
	for k, e := range was {
		if k != "an hour" {
			want[k] = e
		}
	}
	requireSame(t, want, contents(t, d), false)
	n, err = d.ReadSnapshot(f) // which is at its end
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, path)
	require.Zero(t, n)
}

// What loading pushes out is told, with no lock held.
func TestSnapshot_LoadingTellsOnRemove(t *testing.T) {
	t.Parallel()
	big := mustCache(t, defaultGeometry(128<<20))
	fillCache(t, big, 0, 400_000, 100)
	_, path := snapshotOf(t, big)
	var c *Cache
	var told atomic.Int64
	g := defaultGeometry(minMaxBytes)
	g.onRemove = func(k, v []byte, reason RemovalReason) {
		told.Add(1)
		c.Has(k)
		assert.Equal(t, RemovedEvicted, reason)
	}
	c = mustCache(t, g)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	_, err = c.ReadSnapshot(f)
	require.NoError(t, err)
	s := statsOf(c)
	require.EqualValues(t, s.EvictedEntries, told.Load())
	require.Equal(t, s.Snapshots.RestoredEntries, s.EvictedEntries+s.EntriesCount)
	require.NotZero(t, told.Load())
}

// A typed view works on a loaded cache, and a loaded one is saved like any other.
func TestSnapshot_TypedViewOfALoadedCache(t *testing.T) {
	c := mustCache(t, defaultGeometry(minMaxBytes))
	type user struct{ Name string }
	view := func(c *Cache) *Typed[uint64, user] {
		return NewTyped[uint64](c, codec.JSON[user](), TypedOptions{Prefix: "user:"})
	}
	require.NoError(t, view(c).Set(7, user{"Ada"}))
	_, path := snapshotOf(t, c)
	for range 3 {
		d := mustLoad(t, path)
		u, ok, err := view(d).Get(7)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "Ada", u.Name)
		_, path = snapshotOf(t, d)
	}
}

// Errors of files name what was asked for, and leave nothing.
func TestSnapshot_FilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none")
	c, err := LoadFromFile(none)
	require.Nil(t, c)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "ringcache: load snapshot: "+none)
	_, err = LoadFromFile(dir)
	require.ErrorContains(t, err, "not a regular file but a directory")

	c, report, err := Load(none, Options{MaxBytes: minMaxBytes})
	require.NoError(t, err)
	require.ErrorIs(t, report.Err, fs.ErrNotExist)
	require.ErrorContains(t, report.Err, "ringcache: load snapshot: "+none)
	require.Zero(t, report.DiscardedBlocks+report.Entries, "nothing was lost")
	require.Zero(t, statsOf(c).Snapshots.DiscardedBlocks)
	require.Zero(t, c.Len())
	require.ErrorContains(t, c.SaveToFile(dir), dir, "a folder is not replaced")
	require.Empty(t, litter(t, filepath.Dir(dir)))
	file := filepath.Join(dir, "file")
	require.NoError(t, c.SaveToFile(file))
	require.Error(t, c.SaveToFile(filepath.Join(file, "below a file")))
	info, err := os.Stat(file)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, fs.FileMode(0o600), info.Mode())
	}
	require.Zero(t, mustLoad(t, file).Len(), "an empty cache is a snapshot too")

	require.NoError(t, c.Close())
	require.ErrorIs(t, c.SaveToFile(file), ErrClosed, "or it would replace a full one")
	_, err = c.WriteSnapshot(io.Discard)
	require.ErrorIs(t, err, ErrClosed)
	_, err = c.ReadSnapshot(bytes.NewReader(readFile(t, file)))
	require.NoError(t, err, "there is nothing to restore")
	full := mixedCache(t, defaultGeometry(minMaxBytes))
	b, _ := snapshotOf(t, full)
	_, err = c.ReadSnapshot(bytes.NewReader(b))
	require.ErrorIs(t, err, ErrClosed)
}

// OnRemove runs in the goroutine that calls ReadSnapshot, so a panic in it reaches that caller.
func TestSnapshot_PanicInOnRemoveReachesTheCaller(t *testing.T) {
	c := mustCache(t, defaultGeometry(64<<20))
	fillCache(t, c, 0, 60_000, 1000)
	_, path := snapshotOf(t, c)
	g := defaultGeometry(minMaxBytes)
	g.onRemove = func([]byte, []byte, RemovalReason) { panic("of the user") }
	d := mustCache(t, g)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.PanicsWithValue(t, "of the user", func() { _, _ = d.ReadSnapshot(f) })
	require.NoError(t, d.validate())
}
