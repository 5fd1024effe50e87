package store

import (
	"time"

	"github.com/Yiling-J/theine-go"
)

var theineInfo = Info{
	Name:    "theine",
	Module:  "github.com/Yiling-J/theine-go",
	Expires: true,
	Exact:   true,
	// It has no synchronous mode: Config.Synchronous changes nothing. Its Wait after
	// every Set costs hits, since a new entry then is judged at once, instead of
	// after up to 250 others that it is held beside for that time.
	New: func(c Config) (Store, error) {
		cache, err := theine.NewBuilder[string, []byte](int64(c.MaxBytes)).Build()
		if err != nil {
			return nil, err
		}
		return theineStore{cache, c.TTL}, nil
	},
}

type theineStore struct {
	c   *theine.Cache[string, []byte]
	ttl time.Duration // 0 is for ever
}

func (s theineStore) Set(k, v []byte) error {
	s.c.SetWithTTL(string(k), clone(v), int64(len(k)+len(v)), s.ttl)
	return nil
}

func (s theineStore) Get(dst, k []byte) ([]byte, bool) {
	v, ok := s.c.Get(asString(k))
	return append(dst, v...), ok
}

func (s theineStore) Look(k []byte, fn func(v []byte)) bool {
	v, ok := s.c.Get(asString(k))
	if ok {
		fn(v)
	}
	return ok
}

func (s theineStore) Len() int { return s.c.Len() }
func (s theineStore) Settle()  { s.c.Wait() }

func (s theineStore) Del(k []byte) { s.c.Delete(string(k)) }

func (s theineStore) Close() error {
	s.c.Close()
	return nil
}
