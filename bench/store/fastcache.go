package store

import "github.com/VictoriaMetrics/fastcache"

const (
	// fastcacheBig is the size of key and value from which on Set would drop the
	// entry: it keeps 4 bytes beside them, and all must fit below one chunk.
	fastcacheBig = 64<<10 - 4

	// fastcacheMeta is the length of what SetBig leaves under the key. Values of
	// that length go to SetBig too, so that the length tells what they are.
	fastcacheMeta = 16
)

var fastcacheInfo = Info{
	Name:   "fastcache",
	Module: "github.com/VictoriaMetrics/fastcache",
	Step:   512 * 64 << 10, // every bucket is rounded up to whole chunks
	New: func(c Config) (Store, error) {
		return fastcacheStore{fastcache.New(c.MaxBytes)}, nil
	},
}

type fastcacheStore struct{ c *fastcache.Cache }

func (s fastcacheStore) Set(k, v []byte) error {
	if len(k)+len(v) >= fastcacheBig || len(v) == fastcacheMeta {
		s.c.SetBig(k, v)
	} else {
		s.c.Set(k, v)
	}
	return nil
}

func (s fastcacheStore) Get(dst, k []byte) ([]byte, bool) {
	v, ok := s.c.HasGet(dst, k)
	if !ok || len(v)-len(dst) != fastcacheMeta {
		return v, ok
	}
	v = s.c.GetBig(dst, k)
	return v, len(v) > len(dst)
}

func (s fastcacheStore) Del(k []byte) { s.c.Del(k) }

// Close returns the chunks to fastcache's pool; they never go back to the system.
func (s fastcacheStore) Close() error {
	s.c.Reset()
	return nil
}
