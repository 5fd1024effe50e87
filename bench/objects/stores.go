package objects

import (
	"github.com/maypok86/otter/v2"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
)

// objects is a cache of orders.
type objects interface {
	Get(id uint64) (*order, bool)
	Set(id uint64, o *order) error
	Close() error
}

// The names of the stores.
const (
	TypedStore = "Typed"
	MemoStore  = "Typed with Memo"
	OtterStore = "otter"
)

// StoreNames lists them in the order of the tables.
var StoreNames = []string{TypedStore, MemoStore, OtterStore}

// open makes the cache that t names, with room for all entries.
func open(t *task) (objects, error) {
	if t.store == OtterStore {
		return openOtter(2 * t.entries)
	}
	cache, err := ringcache.NewWithOptions(
		ringcache.Options{MaxBytes: 2 * t.entries * (t.bytes + 64)})
	if err != nil {
		return nil, err
	}
	var c ringcache.Codec[*order] = encoding
	if t.store == MemoStore {
		t.memo = codec.Memo(c, t.memoEntries(), t.memoEntries()*2*t.bytes)
		c = t.memo
	}
	return typedObjects{cache, ringcache.NewTyped[uint64](cache, c, ringcache.TypedOptions{})}, nil
}

// typedObjects are a view of ringcache.
type typedObjects struct {
	cache *ringcache.Cache
	view  *ringcache.Typed[uint64, *order]
}

func (s typedObjects) Get(id uint64) (*order, bool) {
	v, ok, _ := s.view.Get(id) // an error shows as a miss
	return v, ok
}

func (s typedObjects) Set(id uint64, o *order) error { return s.view.Set(id, o) }
func (s typedObjects) Close() error                  { return s.cache.Close() }

// otterObjects hold the values themselves.
type otterObjects struct{ *otter.Cache[uint64, *order] }

func openOtter(entries int) (objects, error) {
	c, err := otter.New(&otter.Options[uint64, *order]{
		MaximumSize:     entries,
		InitialCapacity: entries,
	})
	return otterObjects{c}, err
}

func (s otterObjects) Get(id uint64) (*order, bool) { return s.GetIfPresent(id) }

func (s otterObjects) Set(id uint64, o *order) error {
	s.Cache.Set(id, o)
	return nil
}

func (s otterObjects) Close() error {
	s.StopAllGoroutines()
	return nil
}
