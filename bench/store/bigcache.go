package store

import (
	"context"
	"time"
	"unsafe"

	"github.com/allegro/bigcache/v3"
)

// bigcacheOverhead is what BigCache's queue keeps beside key and value: 18 bytes
// of header and up to 3 of length.
const bigcacheOverhead = 21

// bigcacheShardEntries is how many entries a shard has room for at the least:
// with fewer, the shards of large entries would fill unevenly or not take them.
const bigcacheShardEntries = 32

var bigcacheInfo = Info{
	Name:    "bigcache",
	Module:  "github.com/allegro/bigcache/v3",
	Expires: true, // but only a Set of the same shard takes away what is too old
	Step:    1 << 20,
	New: func(c Config) (Store, error) {
		life := c.TTL
		if life == 0 {
			life = 1000 * time.Hour // nothing expires
		}
		conf := bigcache.DefaultConfig(life)
		conf.CleanWindow = 0
		conf.Verbose = false
		conf.HardMaxCacheSize = max(1, c.MaxBytes>>20)
		for conf.Shards > 1 &&
			c.MaxBytes/conf.Shards < bigcacheShardEntries*(c.EntryBytes+bigcacheOverhead) {
			conf.Shards /= 2 // a power of two
		}
		// Room in advance, with an eighth to spare since shards fill unevenly:
		// otherwise every second shard would double its queue.
		conf.MaxEntriesInWindow = c.room() + c.room()/8
		conf.MaxEntrySize = c.EntryBytes + bigcacheOverhead
		cache, err := bigcache.New(context.Background(), conf)
		if err != nil {
			return nil, err
		}
		return bigcacheStore{cache}, nil
	},
}

type bigcacheStore struct{ c *bigcache.BigCache }

func (s bigcacheStore) Set(k, v []byte) error { return s.c.Set(asString(k), v) }

func (s bigcacheStore) Get(dst, k []byte) ([]byte, bool) {
	v, err := s.c.Get(asString(k))
	if err != nil {
		return dst, false
	}
	if len(dst) == 0 {
		return v, true // a copy made by BigCache
	}
	return append(dst, v...), true
}

func (s bigcacheStore) Del(k []byte) { _ = s.c.Delete(asString(k)) }
func (s bigcacheStore) Close() error { return s.c.Close() }

// asString spares a store that takes string keys the cost of converting, where
// it does not keep the string. BigCache copies keys into its queue.
func asString(k []byte) string { return unsafe.String(unsafe.SliceData(k), len(k)) }
