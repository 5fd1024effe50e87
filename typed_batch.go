package ringcache

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// GetBatch is [Cache.GetBatch]: it looks up keys and sets vals[i] to the value of keys[i] and
// found[i] to true, or to the zero value and false on a miss. It returns the number of values
// found. Keys may repeat. A value that cannot be decoded is not found; all others are, and the
// error is that of the first such key, with its index. GetBatch panics if vals or found is
// shorter than keys. It does not allocate for a key, within the bounds of [Typed.Set].
func (t *Typed[K, V]) GetBatch(keys []K, vals []V, found []bool) (hits int, err error) {
	mustFitTyped("get batch", keys, vals, found)
	var bl lookups
	b, s := blocks.Get().(*block), scratches.Get().(*scratch)
	defer b.release()
	defer s.release()
	for i := 0; i < len(keys); i += batchSize {
		end := min(i+batchSize, len(keys))
		b.reset()
		for j, key := range keys[i:end] {
			b.keys[j] = b.keyRoom.took(t.keyBytes(b.keyRoom.next(), key))
		}
		out, there := t.cache.getBlock(&bl, s.buf[:0], b.keys[:end-i], b.vals[:end-i])
		s.buf = out
		t.ns.lookedFor(end-i, there)
		for j, data := range b.vals[:end-i] {
			var ok bool
			vals[i+j], ok, err = t.decodeNth("get batch", i+j, keys[i+j], data, err)
			if found[i+j] = ok; ok {
				hits++
			}
		}
	}
	return hits, err
}

// mustFitTyped panics if there are fewer vals or found than keys.
func mustFitTyped[K Key, V any](verb string, keys []K, vals []V, found []bool) {
	if len(vals) < len(keys) || len(found) < len(keys) {
		panic(fmt.Sprintf("ringcache: %s: %d vals and %d found for %d keys",
			verb, len(vals), len(found), len(keys)))
	}
}

// decodeNth returns the value of a key of a batch, from data that is nil on a miss, and the
// first error of the batch.
func (t *Typed[K, V]) decodeNth(
	verb string, n int, key K, data []byte, first error,
) (v V, ok bool, _ error) {
	if data == nil {
		return v, false, first
	}
	v, err := t.codec.Decode(data)
	if err == nil {
		return v, true, first
	}
	if first == nil {
		first = t.decodeError(fmt.Sprintf("%s: index %d: get", verb, n), key, data, err)
	}
	var zero V
	return zero, false, first
}

// TypedLoaded is what a [TypedBatchLoadFunc] has found for a key: [Loaded] with a V.
type TypedLoaded[V any] struct {
	Value  V
	TTL    time.Duration
	Absent bool
}

// TypedBatchLoadFunc finds the values of keys that are not in the cache, for
// [Typed.GetOrLoadBatch]. It is a [BatchLoadFunc] with a K for a key and a V for a value.
type TypedBatchLoadFunc[K Key, V any] func(ctx context.Context, keys []K) (
	[]TypedLoaded[V], error)

// GetOrLoadBatch is [Cache.GetOrLoadBatch], with vals and found as [Typed.GetBatch] has them: the
// missing values are loaded with one call of load. found[i] is false if keys[i] has no value, or
// has failed: then err is a [*BatchError] that lists i. hits is the number of keys whose values
// were in the cache. As with [Typed.GetOrLoad], an entry that cannot be decoded is removed and
// loaded, and a loaded value that cannot be decoded is [ErrDecode] for its key. If the codec
// cannot encode a value, all keys of that load get [ErrEncode]. GetOrLoadBatch allocates room
// for the keys, and panics if vals or found is shorter than they are.
func (t *Typed[K, V]) GetOrLoadBatch(
	ctx context.Context, keys []K, vals []V, found []bool, load TypedBatchLoadFunc[K, V],
) (hits int, err error) {
	mustBeFunc("GetOrLoadBatch", load != nil)
	mustFitTyped("load batch", keys, vals, found)
	slices := make([][]byte, 2*len(keys))
	raw, datas := slices[:len(keys)], slices[len(keys):]
	room := joined{buf: make([]byte, 0, keyRoom/4*len(keys))}
	for i, key := range keys {
		raw[i] = room.took(t.keyBytes(room.next(), key))
	}
	clear(vals[:len(keys)])
	clear(found[:len(keys)])
	s := scratches.Get().(*scratch)
	defer s.release()
	undecodable := 0
	usable := func(i int, data []byte) bool {
		v, err := t.codec.Decode(data)
		if err != nil {
			t.discard(raw[i])
			undecodable++
			return false
		}
		vals[i], found[i] = v, true
		return true
	}
	out, hits, failed := t.cache.getOrLoadBatch(
		ctx, s.buf[:0], raw, datas, t.batchLoader(load), usable)
	s.buf = out
	t.ns.loadedFor(len(keys), hits+undecodable) // in the cache they count as hits
	for i, data := range datas {
		if found[i] || data == nil {
			continue
		}
		v, err := t.codec.Decode(data)
		if err != nil {
			failed = failed.with(i, fmt.Errorf("entry %w", t.decodeCause(keys[i], data, err)))
			continue
		}
		vals[i], found[i] = v, true
	}
	failed.sort()
	return hits, failed.orNil()
}

// batchLoader returns load as a function of bytes.
func (t *Typed[K, V]) batchLoader(load TypedBatchLoadFunc[K, V]) BatchLoadFunc {
	start := len(t.start(nil))
	return func(ctx context.Context, raw [][]byte) ([]Loaded, error) {
		keys := make([]K, len(raw))
		for i, k := range raw {
			keys[i], _ = t.parseKey(k[start:]) // the caller's keys, whose bytes they are
		}
		found, err := load(ctx, keys)
		all := make([]Loaded, len(found))
		for i, l := range found {
			all[i] = Loaded{TTL: l.TTL, Absent: l.Absent}
			if l.Absent || err != nil {
				continue
			}
			var encoding error
			if all[i].Value, encoding = t.codec.Append(nil, l.Value); encoding != nil {
				return nil, fmt.Errorf("%w: %w", ErrEncode, encoding)
			}
		}
		return all, err
	}
}

// SetBatch is [Cache.SetBatch]: it stores vals[i] under keys[i] for each i, as so many calls
// of [Typed.Set] in that order would. All are tried; the first error is returned, with its
// index. SetBatch panics if vals is shorter than keys. It does not allocate for a key, within
// the bounds of Set.
func (t *Typed[K, V]) SetBatch(keys []K, vals []V) error {
	if len(vals) < len(keys) {
		panic(fmt.Sprintf("ringcache: set batch: %d vals for %d keys", len(vals), len(keys)))
	}
	b := blocks.Get().(*block)
	defer b.release()
	var first error
	for i := 0; i < len(keys); {
		n, refused := t.encodeBlock(b, keys[i:], vals[i:])
		at, err := t.cache.setBlock(b.keys[:n], b.vals[:n])
		t.ns.wrote(n)
		if refused != nil {
			t.drop(b.keys[n])
			if n++; err == nil {
				at, err = n-1, refused
			}
		}
		if err != nil && first == nil {
			first = batchError(i+at, err)
		}
		i += n
	}
	return first
}

// encodeBlock makes the keys and values of the next part of a batch, and returns how many. It
// ends before a value that cannot be encoded, of which it returns the error; its key is made.
func (t *Typed[K, V]) encodeBlock(b *block, keys []K, vals []V) (n int, err error) {
	b.reset()
	for n < min(len(keys), batchSize) && b.valueRoom.used < maxScratch {
		b.keys[n] = b.keyRoom.took(t.keyBytes(b.keyRoom.next(), keys[n]))
		data, err := t.codec.Append(b.valueRoom.next(), vals[n])
		if err != nil {
			return n, fmt.Errorf("set entry: %w: %w", ErrEncode, err)
		}
		b.vals[n] = b.valueRoom.took(data)
		n++
	}
	return n, nil
}

// All returns an iterator over the entries of the view, with keys and values that the body
// may keep:
//
//	for id, user := range users.All() {
//		// ...
//	}
//
// The rules are those of [Cache.All]. An entry belongs to the view if its key begins with the
// view's prefix and has the bytes of a K behind it, as many as an integer has. It is passed
// over if it cannot be decoded, as it may be of others who use the cache: [Typed.Keys] has its
// key, and [Typed.Get] the error. A view without a prefix or a namespace takes what it can of
// the whole cache. Any loop goes over all entries of the cache.
func (t *Typed[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(key K, v V) bool) {
		mustBeFunc("All", yield != nil)
		var key K
		ours := func(raw []byte) (ok bool) {
			key, ok = t.keyOf(raw)
			return ok
		}
		t.cache.loop(ours, withValue, func(_, data []byte) bool {
			v, err := t.codec.Decode(data[:len(data):len(data)])
			return err != nil || yield(key, v)
		})
	}
}

// Keys is [Typed.All] without the values, which it does not decode: it also yields the keys of
// values that cannot be decoded.
func (t *Typed[K, V]) Keys() iter.Seq[K] {
	return func(yield func(key K) bool) {
		mustBeFunc("Keys", yield != nil)
		var key K
		ours := func(raw []byte) (ok bool) {
			key, ok = t.keyOf(raw)
			return ok
		}
		t.cache.loop(ours, 0, func(_, _ []byte) bool { return yield(key) })
	}
}
