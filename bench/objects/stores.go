package objects

import (
	"github.com/maypok86/otter/v2"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
)

// objects is a cache of values of type V.
type objects[V any] interface {
	Get(id uint64) (V, bool)
	Set(id uint64, v V) error
	// MemoHits returns the Gets of a codec.Memo so far, and those that have found the value there.
	MemoHits() (gets, hits uint64)
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

// open makes the cache that t names.
func open[V any](t *Task, k *kind[V]) (objects[V], error) {
	if t.Store == OtterStore {
		return openOtter[V](t)
	}
	cache, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: t.MaxBytes})
	if err != nil {
		return nil, err
	}
	s := typedObjects[V]{cache: cache}
	c := k.codec
	if t.Store == MemoStore {
		s.memo = codec.Memo(c, t.memoEntries(), t.memoEntries()*2*t.Bytes)
		c = s.memo
	}
	s.view = ringcache.NewTyped[uint64](cache, c, ringcache.TypedOptions{})
	return s, nil
}

// typedObjects are a view of ringcache.
type typedObjects[V any] struct {
	cache *ringcache.Cache
	view  *ringcache.Typed[uint64, V]
	memo  *codec.Memoized[V] // nil: none
}

func (s typedObjects[V]) Get(id uint64) (V, bool) {
	v, ok, _ := s.view.Get(id) // an error shows as a miss
	return v, ok
}

func (s typedObjects[V]) Set(id uint64, v V) error { return s.view.Set(id, v) }
func (s typedObjects[V]) Close() error             { return s.cache.Close() }

func (s typedObjects[V]) MemoHits() (gets, hits uint64) {
	if s.memo == nil {
		return 0, 0
	}
	stats := s.memo.Stats()
	return stats.Hits + stats.Misses, stats.Hits
}

// otterObjects hold the values themselves.
type otterObjects[V any] struct{ *otter.Cache[uint64, V] }

func openOtter[V any](t *Task) (objects[V], error) {
	c, err := otter.New(&otter.Options[uint64, V]{
		MaximumSize:     t.MaxObjects,
		InitialCapacity: t.MaxObjects,
	})
	return otterObjects[V]{c}, err
}

func (s otterObjects[V]) Get(id uint64) (V, bool) { return s.GetIfPresent(id) }

func (s otterObjects[V]) Set(id uint64, v V) error {
	s.Cache.Set(id, v)
	return nil
}

func (s otterObjects[V]) MemoHits() (gets, hits uint64) { return 0, 0 }

func (s otterObjects[V]) Close() error {
	s.StopAllGoroutines()
	return nil
}
