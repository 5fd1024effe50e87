//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package persist

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/osfile"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// A new name for which the disk has no room costs the entries of its namespace, and no others: the
// file is marked as closed. Close writes the name if there is room by then, and else says so.
func TestFile_NamesWithoutRoom(t *testing.T) {
	for name, room := range map[string]bool{"never": false, "at Close": true} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cache")
			now := time.Minute
			g := ringtest.Tiny(1, 1024, 256)
			g.Elapsed = func() time.Duration { return now }
			c := ringtest.MustOpen(t, g, path)
			require.NoError(t, os.Mkdir(path+".names", 0o700)) // in the way of the file
			k := []byte("k")
			require.NoError(t, c.Set(k, []byte("v")))
			n := c.Namespace("n")
			require.NoError(t, n.Set([]byte("before"), []byte("v")))
			require.NoError(t, c.SetWithTTL([]byte("expired"), []byte("v"), time.Second))
			now += time.Minute
			before := c.Len()
			n.Reset()
			require.Equal(t, before, c.Len(), "Reset is no walk of the whole cache")
			require.False(t, n.Has([]byte("before")))
			require.NoError(t, n.Set(k, []byte("v")))
			if room {
				require.NoError(t, os.Remove(path+".names"))
				require.NoError(t, c.Close())
			} else {
				require.ErrorContains(t, c.Close(), path+".names")
				require.NoError(t, os.Remove(path+".names"))
			}
			requireClosedCleanly(t, path)
			c = ringtest.MustOpen(t, g, path)
			require.True(t, c.Has(k))
			require.Equal(t, room, c.Namespace("n").Has(k))
			require.False(t, c.Namespace("n").Has([]byte("before")))
			require.NoError(t, ringtest.Validate(c))
			require.NoError(t, c.Close())
		})
	}
}

// slowDict is a Compressor whose BuildDict waits.
type slowDict struct {
	ringtest.FlateCompressor
	began, goOn chan struct{}
	once        *sync.Once
}

func (s slowDict) BuildDict(samples [][]byte) []byte {
	s.once.Do(func() { close(s.began) })
	<-s.goOn
	return s.FlateCompressor.BuildDict(samples)
}

// A cache that was dropped while its Compressor builds a dictionary keeps its files until the
// dictionary is written.
func TestFile_CollectedDuringBuildDict(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	by := slowDict{began: make(chan struct{}), goOn: make(chan struct{}), once: new(sync.Once)}
	func() {
		g := ringtest.WithCold(ringtest.Tiny(1, 1024, 256), by)
		p := &ringtest.PackedCache{Cache: ringtest.MustOpen(t, g, path), Size: 300}
		require.Eventually(t, func() bool {
			for range 50 {
				p.Fill(t)
			}
			select {
			case <-by.began:
				return true
			default:
				return false
			}
		}, ringtest.HangLimit, time.Microsecond)
	}()
	open := func() (*ringcache.Cache, error) {
		runtime.GC()
		return ringcache.NewWithOptions(ringcache.Options{MaxBytes: 256 << 10, File: path})
	}
	for range 20 {
		_, err := open()
		require.ErrorIs(t, err, ringcache.ErrInUse)
		time.Sleep(time.Millisecond) // for the cleanup that must not come
	}
	close(by.goOn)
	require.Eventually(t, func() bool {
		_, err := open()
		return !errors.Is(err, ringcache.ErrInUse)
	}, ringtest.HangLimit, time.Millisecond)
}

// Dictionaries go with the rings, of which they were made: new rings get new ones, however often
// the version changes.
func TestFile_NewRingsHaveNewDictionaries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	g := ringtest.WithCold(ringtest.Tiny(1, 1024, 256), ringtest.FlateCompressor{})
	g.ByHand = true
	for g.Version = range uint64(20) { // more than there can be dictionaries
		for reopened := range 2 {
			p := &ringtest.PackedCache{Cache: ringtest.MustOpen(t, g, path)}
			require.EqualValues(t, reopened, ringtest.Shared(p.Cache).Compression.Dict)
			if reopened == 0 {
				p.MakeDict(t)
			}
			require.NoError(t, p.Close())
		}
	}
}

// If only the ring file is removed while a cache uses it, no other cache can open the companion
// files, because the first one still writes to them.
func TestFile_OnlyTheRingsAreRemoved(t *testing.T) {
	for _, suffix := range []string{".names", ".dict"} {
		path := filepath.Join(t.TempDir(), "cache")
		p := openPacked(t, path)
		if suffix == ".dict" {
			p.MakeDict(t)
		} else {
			require.NoError(t, p.Namespace("n").Set([]byte("k"), nil))
		}
		require.NoError(t, os.Remove(path))
		before := ringtest.ReadFile(t, path+suffix)
		g := ringtest.WithCold(ringtest.Tiny(1, 1024, 256), ringtest.FlateCompressor{})
		_, err := ringtest.Open(g, path)
		require.ErrorIs(t, err, ringcache.ErrInUse)
		require.ErrorContains(t, err, path)
		require.Equal(t, before, ringtest.ReadFile(t, path+suffix))
		require.NoError(t, p.Close())
		other := openPacked(t, path)
		require.Zero(t, other.Len())
		require.NoError(t, other.Close())
	}
}

// A cache that was garbage collected releases its companion files before its ring file.
func TestFile_CollectedReleasesAllFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	func() {
		p := openPacked(t, path)
		p.MakeDict(t)
		require.NoError(t, p.Namespace("n").Set([]byte("k"), nil))
	}()
	rings, err := os.Open(path)
	require.NoError(t, err)
	defer rings.Close()
	require.Eventually(t, func() bool {
		runtime.GC()
		return osfile.Lock(rings) == nil
	}, ringtest.HangLimit, time.Millisecond)
	osfile.Unlock(rings)
	p := openPacked(t, path)
	require.True(t, p.Namespace("n").Has([]byte("k")))
	require.NoError(t, p.Close())
}

// A ring file that was made for a cache which is then refused is gone again. One that was there
// stays, and so does a link to the one that was missing.
func TestFile_RefusedIsNotMade(t *testing.T) {
	for name, there := range map[string][]string{
		"missing": {"cache.names"}, "empty": {"cache", "cache.names"}, "link": {"cache.names", "link"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "cache")
			require.NoError(t, os.WriteFile(path+".names", []byte("words\n"), 0o600))
			switch name {
			case "empty":
				require.NoError(t, os.WriteFile(path, nil, 0o600))
			case "link":
				require.NoError(t, os.Symlink("cache", filepath.Join(dir, "link")))
				path = filepath.Join(dir, "link")
			}
			require.ErrorIs(t, openError(t, path), ringcache.ErrCorrupt)
			require.Equal(t, there, listDir(t, dir))
			require.NoError(t, os.Remove(filepath.Join(dir, "cache.names")))
			c := ringtest.OpenFile(t, path, 1<<20)
			require.NoError(t, c.Set([]byte("k"), nil))
			require.NoError(t, c.Close())
			c = ringtest.OpenFile(t, path, 1<<20)
			require.True(t, c.Has([]byte("k")))
			require.NoError(t, c.Close())
		})
	}
}

// Once the ring file was removed, a cache makes no companion files: those of a new cache at its
// path belong there. A link that leads elsewhere by then changes nothing.
func TestFile_NewCacheInThePlaceOfARemovedOne(t *testing.T) {
	k := []byte("k")
	for _, removed := range []bool{true, false} {
		dir := t.TempDir()
		path, link := filepath.Join(dir, "cache"), filepath.Join(dir, "link")
		require.NoError(t, os.Symlink("cache", link))
		old := ringtest.OpenFile(t, link, 1<<20)
		require.NoError(t, os.Remove(link))
		require.NoError(t, os.Symlink("another", link))
		if removed {
			require.NoError(t, os.Remove(path))
		} else {
			path = filepath.Join(dir, "another")
		}
		c := ringtest.OpenFile(t, path, 1<<20)
		require.NoError(t, old.Namespace("old").Set(k, []byte("old")))
		require.NoError(t, c.Namespace("n").Set(k, []byte("v")))
		if err := old.Close(); removed {
			require.ErrorIs(t, err, ringcache.ErrInUse)
			require.ErrorContains(t, err, path)
		} else {
			require.NoError(t, err)
		}
		require.NoError(t, c.Close())
		c = ringtest.OpenFile(t, path, 1<<20)
		require.True(t, c.Namespace("n").Has(k))
		require.NoError(t, c.Close())
	}
}

// A cache whose ring file was removed leaves nothing in its place, not even an empty file.
func TestFile_RemovedGetsNoCompanions(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "cache")
	c := ringtest.OpenFile(t, path, 1<<20)
	require.NoError(t, os.Remove(path))
	require.NoError(t, c.Namespace("n").Set([]byte("k"), nil))
	require.Empty(t, listDir(t, dir))
	require.ErrorIs(t, c.Close(), ringcache.ErrInUse)
	require.Empty(t, listDir(t, dir))
}

// A cache that makes its file while another one saves a snapshot to that path keeps the file.
func TestSave_NotOverAFileMadeMeanwhile(t *testing.T) {
	t.Chdir(t.TempDir())
	c := ringtest.MustCache(t, ringtest.Tiny(1, 1024, 64))
	require.NoError(t, c.Set([]byte("k"), []byte("v")))
	var other *ringcache.Cache
	err := c.Save(context.Background(), "cache", ringcache.SaveOptions{Progress: func(int64, int64) {
		if other == nil {
			other = ringtest.OpenFile(t, "cache", 1<<20)
			t.Chdir(t.TempDir()) // the path is that of the beginning
		}
	}})
	require.ErrorContains(t, err, "Options.File")
	require.NotNil(t, other)
	require.NoError(t, other.Set([]byte("k"), []byte("v")))
	path := other.Options().File
	require.NoError(t, other.Close())
	require.Equal(t, []string{"cache"}, listDir(t, filepath.Dir(path)))
	other = ringtest.OpenFile(t, path, 1<<20)
	require.True(t, other.Has([]byte("k")))
	require.NoError(t, other.Close())
}
