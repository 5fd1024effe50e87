package restart

import (
	"context"
	"path/filepath"
	"runtime"

	"github.com/VictoriaMetrics/fastcache"

	"github.com/ringcache/ringcache"
)

// Stores are the names of the caches that can be measured.
var Stores = []string{"ringcache", "fastcache"}

// inFile reports whether the cache is in a file that outlives the process.
func (t Task) inFile() bool { return t.Load == Kill && t.Store == Stores[0] }

// path is that of the snapshot.
func (t Task) path() string { return filepath.Join(t.Dir, "snapshot") }

// open returns a new cache, or the one that another process has left.
func (t Task) open(again bool) (cache, error) {
	maxBytes := max(t.Entries*2*(format.Bytes()+32), 32<<20)
	if t.Store == Stores[1] {
		if again {
			c, err := fastcache.LoadFromFile(t.path())
			return fast{c}, err
		}
		return fast{fastcache.New(maxBytes)}, nil
	}
	var c *ringcache.Cache
	var err error
	switch {
	case t.inFile():
		c, err = ringcache.NewWithOptions(
			ringcache.Options{MaxBytes: maxBytes, File: filepath.Join(t.Dir, "cache")})
	case again:
		c, err = ringcache.LoadFromFile(t.path())
	default:
		c, err = ringcache.NewWithOptions(ringcache.Options{MaxBytes: maxBytes})
	}
	return ring{c}, err
}

// ring is ringcache with the methods of cache.
type ring struct{ *ringcache.Cache }

func (r ring) save(ctx context.Context, path string) error {
	return r.Save(ctx, path, ringcache.SaveOptions{Concurrency: runtime.GOMAXPROCS(0)})
}

// fast is fastcache with the methods of cache.
type fast struct{ *fastcache.Cache }

func (f fast) Set(k, v []byte) error {
	f.Cache.Set(k, v)
	return nil
}

func (f fast) save(_ context.Context, path string) error {
	return f.SaveToFileConcurrent(path, runtime.GOMAXPROCS(0))
}

func (f fast) Close() error {
	f.Reset()
	return nil
}
