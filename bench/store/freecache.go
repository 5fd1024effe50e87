package store

import "github.com/coocood/freecache"

var freecacheInfo = Info{
	Name:    "freecache",
	Module:  "github.com/coocood/freecache",
	Expires: true,
	New: func(c Config) (Store, error) {
		return freecacheStore{freecache.NewCache(c.MaxBytes), int(c.TTL.Seconds())}, nil
	},
}

// freecacheStore has no GetBatch: MultiGet allocates every value and was slower
// than one Get per key.
type freecacheStore struct {
	c   *freecache.Cache
	ttl int // in seconds; 0 is for ever
}

func (s freecacheStore) Set(k, v []byte) error { return s.c.Set(k, v, s.ttl) }

// Get lends freecache the free part of dst, which it uses if the value fits.
func (s freecacheStore) Get(dst, k []byte) ([]byte, bool) {
	n := len(dst)
	v, err := s.c.GetWithBuf(k, dst[n:])
	if err != nil {
		return dst, false
	}
	if len(v) <= cap(dst)-n {
		return dst[:n+len(v)], true // v lies there already
	}
	return append(dst, v...), true
}

func (s freecacheStore) Look(k []byte, fn func(v []byte)) bool {
	err := s.c.GetFn(k, func(v []byte) error {
		fn(v)
		return nil
	})
	return err == nil
}

func (s freecacheStore) Del(k []byte) { s.c.Del(k) }

func (s freecacheStore) Close() error {
	s.c.Clear()
	return nil
}
