//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package persist

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
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
