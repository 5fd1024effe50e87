package store

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/testhook"
)

var (
	ringcacheInfo     = ringcacheVariant("ringcache", ringcache.Options{})
	ringcacheFIFOInfo = ringcacheVariant("ringcache-fifo",
		ringcache.Options{Policy: ringcache.PolicyFIFO})
	ringcacheHugeInfo = ringcacheVariant("ringcache-huge",
		ringcache.Options{HugePages: ringcache.HugePagesAtOnce})
	ringcacheFileInfo = inFile(ringcacheVariant("ringcache-file", ringcache.Options{}))
)

// ringcacheVariant returns ringcache with the settings of o under a name of its
// own.
func ringcacheVariant(name string, o ringcache.Options) Info {
	return Info{
		Name:    name,
		Module:  "github.com/ringcache/ringcache",
		Expires: true,
		Least:   32 << 20,
		New: func(c Config) (Store, error) {
			cache, err := openRingcache(o, c)
			if err != nil {
				return nil, err
			}
			return ringcacheStore{cache}, nil
		},
	}
}

func openRingcache(o ringcache.Options, c Config) (*ringcache.Cache, error) {
	o.MaxBytes = c.MaxBytes
	o.TTL = c.TTL
	return ringcache.NewWithOptions(o)
}

// inFile makes the store keep its entries in a file of a new folder below os.TempDir. Close
// removes the folder.
func inFile(info Info) Info {
	info.New = func(c Config) (Store, error) {
		dir, err := os.MkdirTemp("", "ringcache-bench-")
		if err != nil {
			return nil, err
		}
		cache, err := openRingcache(ringcache.Options{File: filepath.Join(dir, "cache")}, c)
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		return fileRingcacheStore{ringcacheStore{cache}, dir}, nil
	}
	return info
}

type ringcacheStore struct{ c *ringcache.Cache }

func (s ringcacheStore) Set(k, v []byte) error            { return s.c.Set(k, v) }
func (s ringcacheStore) Get(dst, k []byte) ([]byte, bool) { return s.c.HasGet(dst, k) }
func (s ringcacheStore) Del(k []byte)                     { s.c.Del(k) }
func (s ringcacheStore) Len() int                         { return s.c.Len() }
func (s ringcacheStore) Close() error                     { return s.c.Close() }

func (s ringcacheStore) Append(k, suffix []byte) error {
	return s.c.Update(k, func(e *ringcache.Entry[[]byte]) { e.Set(append(e.Value, suffix...)) })
}

func (s ringcacheStore) GetBatch(dst []byte, keys, vals [][]byte) ([]byte, int) {
	return s.c.GetBatch(dst, keys, vals)
}

func (s ringcacheStore) Update(k []byte, fn func([]byte, bool) ([]byte, bool)) error {
	return s.c.Update(k, func(e *ringcache.Entry[[]byte]) {
		if v, keep := fn(e.Value, e.Present); keep {
			e.Set(v)
		} else {
			e.Del()
		}
	})
}

func (s ringcacheStore) Space(name string) Space { return ringcacheSpace{s.c.Namespace(name)} }

func (s ringcacheStore) Moves() Moves {
	stats := s.c.Stats()
	m := Moves{Evicted: stats.EvictedEntries, Dead: stats.DeadBytes}
	for i := range testhook.PartsOf(s.c).Shared.Buckets {
		b := testhook.PartsOf(s.c).Bucket(i)
		b.Mu.Lock()
		m.Moved += b.MovedBytes
		b.Mu.Unlock()
	}
	return m
}

// ringcacheSpace is a namespace of ringcache.
type ringcacheSpace struct{ n *ringcache.Cache }

func (s ringcacheSpace) Set(k, v []byte) error            { return s.n.Set(k, v) }
func (s ringcacheSpace) Get(dst, k []byte) ([]byte, bool) { return s.n.HasGet(dst, k) }

func (s ringcacheSpace) Invalidate() error {
	s.n.Reset()
	return nil
}

// fileRingcacheStore is a cache in a file in its own folder.
type fileRingcacheStore struct {
	ringcacheStore
	dir string
}

func (s fileRingcacheStore) Close() error {
	return errors.Join(s.ringcacheStore.Close(), os.RemoveAll(s.dir))
}
