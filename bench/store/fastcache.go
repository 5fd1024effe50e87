package store

import "github.com/VictoriaMetrics/fastcache"

var fastcacheInfo = Info{
	Name:    "fastcache",
	Module:  "github.com/VictoriaMetrics/fastcache",
	Bounded: true,
	New: func(c Config) (Store, error) {
		return fastcacheStore{fastcache.New(c.MaxBytes)}, nil
	},
}

type fastcacheStore struct{ c *fastcache.Cache }

func (s fastcacheStore) Set(k, v []byte) error {
	s.c.Set(k, v)
	return nil
}

func (s fastcacheStore) Get(dst, k []byte) ([]byte, bool) { return s.c.HasGet(dst, k) }
func (s fastcacheStore) Del(k []byte)                     { s.c.Del(k) }

// Close returns the chunks to fastcache's pool; they never go back to the system.
func (s fastcacheStore) Close() error {
	s.c.Reset()
	return nil
}
