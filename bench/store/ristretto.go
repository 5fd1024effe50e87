package store

import (
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

var ristrettoInfo = Info{
	Name:    "ristretto",
	Module:  "github.com/dgraph-io/ristretto/v2",
	Expires: true,
	Exact:   true,
	New: func(c Config) (Store, error) {
		cache, err := ristretto.NewCache(&ristretto.Config[string, []byte]{
			MaxCost:            int64(c.MaxBytes),
			NumCounters:        10 * int64(max(c.Entries, 100)), // as its documentation advises
			BufferItems:        64,                              // likewise
			IgnoreInternalCost: true,                            // MaxCost is bytes of keys and values
		})
		if err != nil {
			return nil, err
		}
		return ristrettoStore{cache, c.EntryBytes, c.TTL, c.Synchronous}, nil
	},
}

type ristrettoStore struct {
	c          *ristretto.Cache[string, []byte]
	entryBytes int
	ttl        time.Duration // 0 is for ever
	wait       bool
}

// Set drops the entry where ristretto does: when its buffer is full or its
// policy rejects the key.
func (s ristrettoStore) Set(k, v []byte) error {
	// It keeps only the key's hash.
	s.c.SetWithTTL(asString(k), clone(v), int64(len(k)+len(v)), s.ttl)
	if s.wait {
		s.c.Wait()
	}
	return nil
}

func (s ristrettoStore) Get(dst, k []byte) ([]byte, bool) {
	v, ok := s.c.Get(asString(k))
	return append(dst, v...), ok
}

func (s ristrettoStore) Look(k []byte, fn func(v []byte)) bool {
	v, ok := s.c.Get(asString(k))
	if ok {
		fn(v)
	}
	return ok
}

// Len is worked out from the cost of all entries: only the metrics count them.
func (s ristrettoStore) Len() int { return int(s.c.MaxCost()-s.c.RemainingCost()) / s.entryBytes }
func (s ristrettoStore) Settle()  { s.c.Wait() }

func (s ristrettoStore) Del(k []byte) { s.c.Del(asString(k)) }

func (s ristrettoStore) Close() error {
	s.c.Close()
	return nil
}
