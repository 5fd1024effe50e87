package store

import "github.com/ringcache/ringcache"

var (
	ringcacheInfo     = ringcacheVariant("ringcache", ringcache.Options{})
	ringcacheFIFOInfo = ringcacheVariant("ringcache-fifo",
		ringcache.Options{Policy: ringcache.PolicyFIFO})
	ringcacheHugeInfo = ringcacheVariant("ringcache-huge",
		ringcache.Options{HugePages: ringcache.HugePagesAtOnce})
)

// ringcacheVariant returns ringcache with the settings of o under a name of its
// own.
func ringcacheVariant(name string, o ringcache.Options) Info {
	return Info{
		Name:    name,
		Kind:    newRingcacheStore(nil),
		Module:  "github.com/ringcache/ringcache",
		Bounded: true,
		Expires: true,
		Least:   32 << 20,
		New: func(c Config) (Store, error) {
			own := o
			own.MaxBytes = c.MaxBytes
			own.TTL = c.TTL
			cache, err := ringcache.NewWithOptions(own)
			if err != nil {
				return nil, err
			}
			return newRingcacheStore(cache), nil
		},
	}
}

// newRingcacheStore has the batch write if this version of ringcache has it.
func newRingcacheStore(c *ringcache.Cache) Store {
	if batch, ok := any(c).(BatchSetter); ok {
		return batchRingcacheStore{ringcacheStore{c}, batch}
	}
	return ringcacheStore{c}
}

type ringcacheStore struct{ c *ringcache.Cache }

func (s ringcacheStore) Set(k, v []byte) error            { return s.c.Set(k, v) }
func (s ringcacheStore) Get(dst, k []byte) ([]byte, bool) { return s.c.HasGet(dst, k) }
func (s ringcacheStore) Del(k []byte)                     { s.c.Del(k) }
func (s ringcacheStore) Len() int                         { return s.c.Len() }
func (s ringcacheStore) Close() error                     { return s.c.Close() }

func (s ringcacheStore) GetBatch(dst []byte, keys, vals [][]byte) ([]byte, int) {
	return s.c.GetBatch(dst, keys, vals)
}

func (s ringcacheStore) Statistics() int {
	var stats ringcache.Stats
	s.c.UpdateStats(&stats)
	return int(stats.EntriesCount)
}

type batchRingcacheStore struct {
	ringcacheStore
	BatchSetter
}
