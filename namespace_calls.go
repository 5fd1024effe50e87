package ringcache

import (
	"context"
	"iter"
	"time"
)

// The methods that a namespace has in common with a cache: each puts the generation before
// the key, and counts.

// Get is [Cache.Get] in the namespace.
func (n *Namespace) Get(dst, k []byte) []byte {
	out, _ := n.HasGet(dst, k)
	return out
}

// HasGet is [Cache.HasGet] in the namespace.
func (n *Namespace) HasGet(dst, k []byte) ([]byte, bool) {
	var room [keyRoom]byte
	out, ok := n.cache.HasGet(dst, n.appendKey(room[:0], k))
	n.looked(ok)
	return out, ok
}

// Has is [Cache.Has] in the namespace.
func (n *Namespace) Has(k []byte) bool {
	var room [keyRoom]byte
	ok := n.cache.Has(n.appendKey(room[:0], k))
	n.looked(ok)
	return ok
}

// Peek is [Cache.Peek] in the namespace. It does not count in its statistics either.
func (n *Namespace) Peek(dst, k []byte) ([]byte, bool) {
	var room [keyRoom]byte
	return n.cache.Peek(dst, n.appendKey(room[:0], k))
}

// GetWithTTL is [Cache.GetWithTTL] in the namespace.
func (n *Namespace) GetWithTTL(dst, k []byte) ([]byte, time.Duration, bool) {
	var room [keyRoom]byte
	out, ttl, ok := n.cache.GetWithTTL(dst, n.appendKey(room[:0], k))
	n.looked(ok)
	return out, ttl, ok
}

// View is [Cache.View] in the namespace.
func (n *Namespace) View(k []byte, fn func(v []byte)) bool {
	var room [keyRoom]byte
	ok := n.cache.View(n.appendKey(room[:0], k), fn)
	n.looked(ok)
	return ok
}

// GetBatch is [Cache.GetBatch] in the namespace.
func (n *Namespace) GetBatch(dst []byte, keys, vals [][]byte) (out []byte, hits int) {
	mustFit("get batch", keys, vals)
	from, room := len(dst), cap(dst)
	var bl lookups
	b := blocks.Get().(*block)
	defer b.release()
	for i := 0; i < len(keys); i += batchSize {
		end := min(i+batchSize, len(keys))
		var found int
		dst, found = n.cache.getBlock(&bl, dst, n.keysOf(b, keys[i:end]), vals[i:end])
		hits += found
	}
	n.lookedFor(len(keys), hits)
	if cap(dst) != room {
		rebase(dst[from:], vals[:len(keys)])
	}
	return dst, hits
}

// keysOf returns the keys that up to batchSize keys have in the cache.
func (n *Namespace) keysOf(b *block, keys [][]byte) [][]byte {
	b.reset()
	for i, k := range keys {
		b.keys[i] = b.keyRoom.took(n.appendKey(b.keyRoom.next(), k))
	}
	return b.keys[:len(keys)]
}

// Set is [Cache.Set] in the namespace.
func (n *Namespace) Set(k, v []byte) error {
	var room [keyRoom]byte
	err := n.cache.Set(n.appendKey(room[:0], k), v)
	n.wrote(1)
	return err
}

// SetWithTTL is [Cache.SetWithTTL] in the namespace.
func (n *Namespace) SetWithTTL(k, v []byte, ttl time.Duration) error {
	var room [keyRoom]byte
	err := n.cache.SetWithTTL(n.appendKey(room[:0], k), v, ttl)
	n.wrote(1)
	return err
}

// SetIfAbsent is [Cache.SetIfAbsent] in the namespace.
func (n *Namespace) SetIfAbsent(k, v []byte) (stored bool, err error) {
	var room [keyRoom]byte
	stored, err = n.cache.SetIfAbsent(n.appendKey(room[:0], k), v)
	n.wrote(1)
	return stored, err
}

// SetIfAbsentWithTTL is [Cache.SetIfAbsentWithTTL] in the namespace.
func (n *Namespace) SetIfAbsentWithTTL(
	dst, k, v []byte, ttl time.Duration,
) (out []byte, stored bool, err error) {
	var room [keyRoom]byte
	out, stored, err = n.cache.SetIfAbsentWithTTL(dst, n.appendKey(room[:0], k), v, ttl)
	n.wrote(1)
	return out, stored, err
}

// CompareAndSwap is [Cache.CompareAndSwap] in the namespace.
func (n *Namespace) CompareAndSwap(k, old, new []byte) (swapped bool, err error) {
	var room [keyRoom]byte
	swapped, err = n.cache.CompareAndSwap(n.appendKey(room[:0], k), old, new)
	n.wrote(1)
	return swapped, err
}

// SetIfChanged is [Cache.SetIfChanged] in the namespace.
func (n *Namespace) SetIfChanged(k, v []byte) (changed bool, err error) {
	var room [keyRoom]byte
	changed, err = n.cache.SetIfChanged(n.appendKey(room[:0], k), v)
	n.wrote(1)
	return changed, err
}

// SetBatch is [Cache.SetBatch] in the namespace.
func (n *Namespace) SetBatch(keys, vals [][]byte) error {
	return n.setBatch(keys, vals, byOptions)
}

// SetBatchWithTTL is [Cache.SetBatchWithTTL] in the namespace.
func (n *Namespace) SetBatchWithTTL(keys, vals [][]byte, ttl time.Duration) error {
	return n.setBatch(keys, vals, withTTL(ttl))
}

func (n *Namespace) setBatch(keys, vals [][]byte, l lifetime) error {
	mustFit("set batch", keys, vals)
	b := blocks.Get().(*block)
	defer b.release()
	var first error
	for i := 0; i < len(keys); i += batchSize {
		end := min(i+batchSize, len(keys))
		at, err := n.cache.setBlock(n.keysOf(b, keys[i:end]), vals[i:end], l)
		if err != nil && first == nil {
			first = batchError(i+at, err)
		}
	}
	n.wrote(len(keys))
	return first
}

// Update is [Cache.Update] in the namespace.
func (n *Namespace) Update(k []byte, fn func(old []byte, ok bool) (new []byte, keep bool)) error {
	mustBeFunc("Update", fn != nil)
	return n.update(k, byOptions, fn)
}

// UpdateWithTTL is [Cache.UpdateWithTTL] in the namespace.
func (n *Namespace) UpdateWithTTL(
	k []byte, ttl time.Duration, fn func(old []byte, ok bool) (new []byte, keep bool),
) error {
	mustBeFunc("UpdateWithTTL", fn != nil)
	return n.update(k, withTTL(ttl), fn)
}

func (n *Namespace) update(k []byte, l lifetime, fn func([]byte, bool) ([]byte, bool)) error {
	var room [keyRoom]byte
	var kept bool // by the last call of fn, which counts
	key := n.appendKey(room[:0], k)
	err := n.cache.update(key, l, "update", func(old []byte, ok bool) (v []byte, keep bool, _ error) {
		v, kept = fn(old, ok)
		return v, kept, nil
	})
	n.updated(kept)
	return err
}

// Append is [Cache.Append] in the namespace.
func (n *Namespace) Append(k, suffix []byte) error {
	var room [keyRoom]byte
	err := n.cache.Append(n.appendKey(room[:0], k), suffix)
	n.wrote(1)
	return err
}

// updated counts an Update.
func (n *Namespace) updated(kept bool) {
	if kept {
		n.wrote(1)
	} else {
		n.removed()
	}
}

// Del is [Cache.Del] in the namespace.
func (n *Namespace) Del(k []byte) bool {
	var room [keyRoom]byte
	ok := n.cache.Del(n.appendKey(room[:0], k))
	n.removed()
	return ok
}

// GetAndDel is [Cache.GetAndDel] in the namespace.
func (n *Namespace) GetAndDel(dst, k []byte) ([]byte, bool) {
	var room [keyRoom]byte
	out, ok := n.cache.GetAndDel(dst, n.appendKey(room[:0], k))
	n.removed()
	return out, ok
}

// Touch is [Cache.Touch] in the namespace.
func (n *Namespace) Touch(k []byte, ttl time.Duration) bool {
	var room [keyRoom]byte
	return n.cache.Touch(n.appendKey(room[:0], k), ttl)
}

// TTL is [Cache.TTL] in the namespace.
func (n *Namespace) TTL(k []byte) (time.Duration, bool) {
	var room [keyRoom]byte
	return n.cache.TTL(n.appendKey(room[:0], k))
}

// GetOrLoad is [Cache.GetOrLoad] in the namespace. load gets k without the generation. A
// call after Invalidate does not wait for a load from before it.
func (n *Namespace) GetOrLoad(
	ctx context.Context, dst, k []byte, load LoadFunc[[]byte, []byte],
) ([]byte, error) {
	mustBeFunc("GetOrLoad", load != nil)
	var room [keyRoom]byte
	key := n.appendKey(room[:0], k)
	out, got := n.cache.getAhead(dst, key)
	n.lookedAhead(got)
	if got == hit {
		return out, nil
	}
	return n.cache.loadMissing(ctx, out, key, got,
		func(ctx context.Context, raw []byte) ([]byte, time.Duration, error) {
			return load(ctx, raw[generationSize:])
		})
}

// GetOrLoadBatch is [Cache.GetOrLoadBatch] in the namespace. load gets keys without the
// generation. It allocates room for the keys.
func (n *Namespace) GetOrLoadBatch(
	ctx context.Context, dst []byte, keys, vals [][]byte, load BatchLoadFunc[[]byte, []byte],
) (out []byte, hits int, err error) {
	mustBeFunc("GetOrLoadBatch", load != nil)
	mustFit("load batch", keys, vals)
	raw := make([][]byte, len(keys))
	for i, k := range keys {
		raw[i] = n.appendKey(nil, k)
	}
	out, hits, err = n.cache.GetOrLoadBatch(ctx, dst, raw, vals,
		func(ctx context.Context, raw [][]byte) ([]loaded, error) {
			for i, k := range raw {
				raw[i] = k[generationSize:]
			}
			return load(ctx, raw)
		})
	n.loadedFor(len(keys), hits)
	return out, hits, err
}

// All is [Cache.All] of the entries of the namespace, with the keys under which they were
// set. Key and value are valid until the next iteration. It goes over all entries of the cache.
func (n *Namespace) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		mustBeFunc("All", yield != nil)
		n.cache.loop(n.has, withValue, func(raw, value []byte) bool {
			return yield(raw[generationSize:], value)
		})
	}
}

// Keys is [Namespace.All] without the values, which it does not copy. Each key is valid until the
// next iteration: clone it to keep it.
func (n *Namespace) Keys() iter.Seq[[]byte] {
	return func(yield func(key []byte) bool) {
		mustBeFunc("Keys", yield != nil)
		n.cache.loop(n.has, 0, func(raw, _ []byte) bool { return yield(raw[generationSize:]) })
	}
}

// has reports whether the key of the cache is one of the namespace.
func (n *Namespace) has(raw []byte) bool {
	_, ok := n.cutKey(raw)
	return ok
}
