package ringtest

import (
	"context"
	"iter"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/internal/generation"
)

// Calls are what they have in common.
type Calls interface {
	Get(dst, k []byte) []byte
	HasGet(dst, k []byte) ([]byte, bool)
	Has(k []byte) bool
	Peek(dst, k []byte) ([]byte, bool)
	GetWithTTL(dst, k []byte) ([]byte, time.Duration, bool)
	GetBatch(dst []byte, keys, vals [][]byte) ([]byte, int)
	Set(k, v []byte) error
	SetWithTTL(k, v []byte, ttl time.Duration) error
	SetBatch(keys, vals [][]byte) error
	SetBatchWithTTL(keys, vals [][]byte, ttl time.Duration) error
	SetIfAbsent(dst, k, v []byte, ttl time.Duration) ([]byte, bool, error)
	SetIfChanged(k, v []byte) (bool, error)
	CompareAndSwap(k, old, new []byte) (bool, error)
	Update(k []byte, fn func(e *Entry)) error
	Del(k []byte) bool
	GetAndDel(dst, k []byte) ([]byte, bool)
	Touch(k []byte, ttl time.Duration) bool
	TTL(k []byte) (time.Duration, bool)
	GetOrLoad(ctx context.Context, dst, k []byte, load LoadFunc) ([]byte, error)
	GetOrLoadBatch(
		ctx context.Context, dst []byte, keys, vals [][]byte, load BatchLoadFunc,
	) ([]byte, int, error)
	All() iter.Seq2[[]byte, []byte]
	Keys() iter.Seq[[]byte]
	Len() int
	Reset()
}

// Replace returns a function for Update that replaces a value by what fn makes of it, or removes
// the key if fn says so by false. A new entry gets ttl, if one is given.
func Replace[V any](
	fn func(old V, ok bool) (v V, keep bool), ttl ...time.Duration,
) func(e *ringcache.Entry[V]) {
	return func(e *ringcache.Entry[V]) {
		switch v, keep := fn(e.Value, e.Present); {
		case !keep:
			e.Del()
		case len(ttl) > 0 && !e.Present:
			e.SetWithTTL(v, ttl[0])
		default:
			e.Set(v)
		}
	}
}

// SetIfAbsent stores v for good if k is absent.
func SetIfAbsent(c Calls, k, v []byte) (stored bool, err error) {
	_, stored, err = c.SetIfAbsent(nil, k, v, 0)
	return stored, err
}

// Append returns a function for Update that appends suffix.
func Append(suffix []byte) func(e *Entry) {
	return func(e *Entry) { e.Set(append(e.Value, suffix...)) }
}

// Store returns a function for Update that stores v.
func Store(v []byte) func(e *Entry) { return func(e *Entry) { e.Set(v) } }

// View calls fn with a copy of the value of k, within an Update that changes nothing, and reports
// whether k is there.
func View(c Calls, k []byte, fn func(v []byte)) (ok bool) {
	_ = c.Update(k, func(e *Entry) {
		if ok = e.Present; ok {
			fn(e.Value)
		}
	})
	return ok
}

// typedStore is a typed view of byte slices as a store. What a view lacks it does with what a
// view has in its place.
type typedStore struct {
	*ringcache.Typed[string, []byte]
}

func (s typedStore) Get(dst, k []byte) []byte {
	out, _ := s.HasGet(dst, k)
	return out
}

func (s typedStore) HasGet(dst, k []byte) ([]byte, bool) {
	v, ok, err := s.Typed.Get(string(k))
	return append(dst, v...), ok && err == nil
}

func (s typedStore) Has(k []byte) bool { return s.Typed.Has(string(k)) }

func (s typedStore) Peek(dst, k []byte) ([]byte, bool) {
	v, ok, err := s.Typed.Peek(string(k))
	return append(dst, v...), ok && err == nil
}

func (s typedStore) GetWithTTL(dst, k []byte) ([]byte, time.Duration, bool) {
	v, ttl, ok, err := s.Typed.GetWithTTL(string(k))
	return append(dst, v...), ttl, ok && err == nil
}

func (s typedStore) GetBatch(dst []byte, keys, vals [][]byte) ([]byte, int) {
	found := make([]bool, len(keys))
	hits, _ := s.Typed.GetBatch(textsOf(keys), vals, found)
	for i := range keys {
		dst = append(dst, vals[i]...)
	}
	return dst, hits
}

func (s typedStore) Set(k, v []byte) error { return s.Typed.Set(string(k), v) }

func (s typedStore) SetWithTTL(k, v []byte, ttl time.Duration) error {
	return s.Typed.SetWithTTL(string(k), v, ttl)
}

func (s typedStore) SetBatch(keys, vals [][]byte) error {
	return s.Typed.SetBatch(textsOf(keys), vals)
}

func (s typedStore) SetBatchWithTTL(keys, vals [][]byte, ttl time.Duration) error {
	return s.Typed.SetBatchWithTTL(textsOf(keys), vals, ttl)
}

func (s typedStore) SetIfAbsent(
	dst, k, v []byte, ttl time.Duration,
) ([]byte, bool, error) {
	was, stored, err := s.Typed.SetIfAbsent(string(k), v, ttl)
	return append(dst, was...), stored, err
}

func (s typedStore) SetIfChanged(k, v []byte) (bool, error) {
	return s.Typed.SetIfChanged(string(k), v)
}

func (s typedStore) CompareAndSwap(k, old, new []byte) (bool, error) {
	return s.Typed.CompareAndSwap(string(k), old, new)
}

func (s typedStore) Update(k []byte, fn func(e *Entry)) error {
	return s.Typed.Update(string(k), fn)
}

func (s typedStore) Del(k []byte) bool { return s.Typed.Del(string(k)) }

func (s typedStore) GetAndDel(dst, k []byte) ([]byte, bool) {
	v, ok, err := s.Typed.GetAndDel(string(k))
	return append(dst, v...), ok && err == nil
}

func (s typedStore) Touch(k []byte, ttl time.Duration) bool { return s.Typed.Touch(string(k), ttl) }

func (s typedStore) TTL(k []byte) (time.Duration, bool) { return s.Typed.TTL(string(k)) }

func (s typedStore) GetOrLoad(
	ctx context.Context, dst, k []byte, load LoadFunc,
) ([]byte, error) {
	v, err := s.Typed.GetOrLoad(ctx, string(k),
		func(ctx context.Context, k string) ([]byte, time.Duration, error) {
			return load(ctx, []byte(k))
		})
	return append(dst, v...), err
}

func (s typedStore) GetOrLoadBatch(
	ctx context.Context, dst []byte, keys, vals [][]byte, load BatchLoadFunc,
) ([]byte, int, error) {
	found := make([]bool, len(keys))
	hits, err := s.Typed.GetOrLoadBatch(ctx, textsOf(keys), vals, found,
		func(ctx context.Context, keys []string) ([]Loaded, error) {
			raw := make([][]byte, len(keys))
			for i, k := range keys {
				raw[i] = []byte(k)
			}
			return load(ctx, raw)
		})
	for i := range keys {
		dst = append(dst, vals[i]...)
	}
	return dst, hits, err
}

func (s typedStore) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		s.Typed.All()(func(k string, v []byte) bool { return yield([]byte(k), v) })
	}
}

func (s typedStore) Keys() iter.Seq[[]byte] {
	return func(yield func(k []byte) bool) {
		s.Typed.Keys()(func(k string) bool { return yield([]byte(k)) })
	}
}

// newTypedStore returns a typed view as a store.
func newTypedStore(of *ringcache.Cache, prefix string) Calls {
	return typedStore{ringcache.NewTyped[string](of, codec.Bytes[[]byte](),
		ringcache.TypedOptions{Prefix: prefix})}
}

// Views are the ways to use a cache.
var Views = []struct {
	Name     string
	Of       func(c *ringcache.Cache) Calls
	Shares   bool // the cache has other entries
	InSpace  bool // of the namespace n
	Overhead int  // what precedes a key
}{
	{"Cache", func(c *ringcache.Cache) Calls { return c }, false, false, 0},
	{"Namespace", func(c *ringcache.Cache) Calls {
		return c.Namespace("n")
	}, true, true, generation.Size},
	{"Typed", func(c *ringcache.Cache) Calls { return newTypedStore(c, "") }, false, false, 0},
	{"Typed with a prefix", func(c *ringcache.Cache) Calls {
		return newTypedStore(c, "p:")
	}, true, false, 2},
	{"Typed of a Namespace", func(c *ringcache.Cache) Calls {
		return newTypedStore(c.Namespace("n"), "p:")
	}, true, true, generation.Size + 2},
}

// textsOf returns keys as strings.
func textsOf(keys [][]byte) []string {
	all := make([]string, len(keys))
	for i, k := range keys {
		all[i] = string(k)
	}
	return all
}
