package ringcache

import (
	"fmt"
	"iter"
)

// GetBatch is [Cache.GetBatch]: it looks up keys and sets vals[i] to the value of keys[i] and
// found[i] to true, or to the zero value and false on a miss. It returns the number of values
// found. Keys may repeat. A value that cannot be decoded is not found; all others are, and the
// error is that of the first such key, with its index. GetBatch panics if vals or found is
// shorter than keys. It does not allocate for a key, within the bounds of [Typed.Set].
func (t *Typed[K, V]) GetBatch(keys []K, vals []V, found []bool) (hits int, err error) {
	if len(vals) < len(keys) || len(found) < len(keys) {
		panic(fmt.Sprintf("ringcache: get batch: %d vals and %d found for %d keys",
			len(vals), len(found), len(keys)))
	}
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
			vals[i+j], ok, err = t.decodeNth(i+j, keys[i+j], data, err)
			if found[i+j] = ok; ok {
				hits++
			}
		}
	}
	return hits, err
}

// decodeNth returns the value of a key of a batch, from data that is nil on a miss, and the
// first error of the batch.
func (t *Typed[K, V]) decodeNth(n int, key K, data []byte, first error) (v V, ok bool, _ error) {
	if data == nil {
		return v, false, first
	}
	v, err := t.codec.Decode(data)
	if err == nil {
		return v, true, first
	}
	if first == nil {
		first = t.decodeError(fmt.Sprintf("get batch: index %d: get", n), key, data, err)
	}
	var zero V
	return zero, false, first
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
