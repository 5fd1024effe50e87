package ringcache

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ringcache/ringcache/internal/scratch"
	"github.com/ringcache/ringcache/internal/store"
)

// How a Typed view writes: the value is encoded with no lock held. If that fails, Set and SetBatch
// remove the key, and the atomic writes, whose conditions are not checked yet, change nothing.

// Set stores v under key, replacing an older value of key. The cache keeps the encoding of v and no
// reference to v itself. The error is [ErrEncode] or one of [Cache.Set]; then key is absent.
//
// Set itself normally allocates only where [Cache.Set] does, for an encoding above 1 MB, and for
// some keys above 120 bytes with the prefix.
func (t *Typed[K, V]) Set(key K, v V) error { return t.setFor(key, v, byOptions) }

// SetWithTTL is [Typed.Set] with the TTL of [Cache.SetWithTTL].
func (t *Typed[K, V]) SetWithTTL(key K, v V, ttl time.Duration) error {
	return t.setFor(key, v, withTTL(ttl))
}

// setFor is Set of an entry with the given lifetime.
func (t *Typed[K, V]) setFor(key K, v V, l lifetime) error {
	var room [stackKey]byte
	k := t.key(room[:0], key)
	s := scratch.Get()
	defer s.Release()
	data, err := t.encode(s, "set", v)
	if err != nil {
		t.cache.del(k, store.Replaced, nil)
		return err
	}
	return t.cache.setFor(k, data, l)
}

// SetIfAbsent stores v, as [Typed.SetWithTTL] does, if key is absent. If key is present, it returns
// the existing value and false, and [ErrDecode] if that cannot be decoded. If v cannot be encoded,
// it only returns [ErrEncode].
func (t *Typed[K, V]) SetIfAbsent(
	key K, v V, ttl time.Duration,
) (was V, stored bool, err error) {
	var room [stackKey]byte
	s, old := scratch.Get(), scratch.Get()
	defer s.Release()
	defer old.Release()
	data, err := t.encode(s, "set", v)
	if err != nil {
		return was, false, err
	}
	old.Bytes = old.Bytes[:0]
	there, stored, err := t.cache.setIfAbsent(&old.Bytes, t.key(room[:0], key), data, ttl)
	if there {
		was, err = t.decode("set", key, old.Bytes)
	}
	return was, stored, err
}

// CompareAndSwap stores new if the value of key has the same encoding as old. The TTL stays.
// If either cannot be encoded, nothing changes.
func (t *Typed[K, V]) CompareAndSwap(key K, old, new V) (swapped bool, err error) {
	var room [stackKey]byte
	s, before := scratch.Get(), scratch.Get()
	defer s.Release()
	defer before.Release()
	was, err := t.encode(before, "swap", old)
	if err != nil {
		return false, err
	}
	data, err := t.encode(s, "swap", new)
	if err != nil {
		return false, err
	}
	return t.cache.CompareAndSwap(t.key(room[:0], key), was, data)
}

// SetIfChanged stores v unless the value of key has the same encoding, and reports whether it did.
// An existing entry keeps its TTL. If v cannot be encoded, nothing changes.
func (t *Typed[K, V]) SetIfChanged(key K, v V) (changed bool, err error) {
	var room [stackKey]byte
	s := scratch.Get()
	defer s.Release()
	data, err := t.encode(s, "set", v)
	if err != nil {
		return false, err
	}
	return t.cache.SetIfChanged(t.key(room[:0], key), data)
}

// Del removes key and reports whether it was present.
func (t *Typed[K, V]) Del(key K) bool {
	var room [stackKey]byte
	return t.cache.Del(t.key(room[:0], key))
}

// GetAndDel removes key, and returns its value and whether it was present. After [ErrDecode], key
// is removed too, and ok is false.
func (t *Typed[K, V]) GetAndDel(key K) (v V, ok bool, err error) {
	var room [stackKey]byte
	s := scratch.Get()
	defer s.Release()
	if s.Bytes, ok = t.cache.GetAndDel(s.Bytes[:0], t.key(room[:0], key)); ok {
		v, err = t.decode("get and delete", key, s.Bytes)
	}
	return v, ok && err == nil, err
}

// Reset removes the entries of the view, in a loop over all keys of the cache. Its loads in
// progress store nothing; an entry that is set meanwhile may stay. To reset faster, make the view
// of a namespace and reset that.
func (t *Typed[K, V]) Reset() {
	c := t.cache
	start := c.start(nil)
	c.each(func(b *bucket) {
		b.look(func(*store.Store) {
			for _, f := range b.calls.ByKey {
				key, own := bytes.CutPrefix(f.Key, start)
				own = own && f.Hash == c.shared.HashOf(f.Key, c.kind) // else it's a namespace's
				if _, ok := t.keyIn(key); own && ok {
					b.calls.Invalidate(f)
				}
			}
		})
	})
	c.walk(func(raw, key []byte) bool { // with negative entries and stale values
		if _, ok := t.keyIn(key); ok {
			w := write{counted: true}
			w.Key, w.Hash, w.Kind = raw, c.shared.HashOf(raw, c.kind), c.kind
			w.Reason = store.Deleted
			_, _ = c.remove(&w, nil)
		}
		return true
	})
}

// Touch sets the TTL of key's entry, starting now, and reports whether key was present, like
// [Cache.Touch].
func (t *Typed[K, V]) Touch(key K, ttl time.Duration) bool {
	var room [stackKey]byte
	return t.cache.Touch(t.key(room[:0], key), ttl)
}

// Update applies fn to the entry of key, like [Cache.Update]. If the value cannot be decoded, or
// the value that fn sets cannot be encoded, the value stays.
func (t *Typed[K, V]) Update(key K, fn func(e *Entry[V])) error {
	mustBeFunc("Update", fn != nil)
	var room [stackKey]byte
	k := t.key(room[:0], key)
	s := scratch.Get()
	defer s.Release()
	e := t.entries.Get().(*Entry[V])
	defer func() {
		*e = Entry[V]{}
		t.entries.Put(e)
	}()
	return t.cache.update(k, func(raw *Entry[[]byte]) (err error) {
		*e = Entry[V]{TTL: raw.TTL, Present: raw.Present}
		if e.Present {
			if e.Value, err = t.decode("update", key, raw.Value); err != nil {
				return err
			}
		}
		fn(e)
		raw.verdict, raw.life = e.verdict, e.life
		if e.verdict == toSet {
			raw.next, err = t.encode(s, "update", e.next)
		}
		return err
	})
}

// encode returns the encoding of v, which is in s if there is room.
func (t *Typed[K, V]) encode(s *scratch.Buffer, verb string, v V) ([]byte, error) {
	data, err := t.append(s.Bytes[:0], v)
	if err != nil {
		return nil, fmt.Errorf("ringcache: %s entry: %w", verb, err)
	}
	s.Fit(len(data))
	return data, nil
}

// append appends the encoding of v to dst.
func (t *Typed[K, V]) append(dst []byte, v V) ([]byte, error) {
	data, err := t.codec.Append(dst, v)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEncode, err)
	}
	return data, nil
}

// SetBatch stores vals[i] under keys[i] for each i, like [Cache.SetBatch]. It tries all entries
// even if some fail, and returns the first error, with its index.
func (t *Typed[K, V]) SetBatch(keys []K, vals []V) error {
	return t.setBatch(keys, vals, byOptions)
}

// SetBatchWithTTL is [Typed.SetBatch] with the TTL of [Cache.SetWithTTL].
func (t *Typed[K, V]) SetBatchWithTTL(keys []K, vals []V, ttl time.Duration) error {
	return t.setBatch(keys, vals, withTTL(ttl))
}

func (t *Typed[K, V]) setBatch(keys []K, vals []V, l lifetime) error {
	mustFit("set batch", len(keys), len(vals))
	var raw, datas [batchSize][]byte
	ks, vs := scratch.Get(), scratch.Get()
	defer ks.Release()
	defer vs.Release()
	var first error
	for i := 0; i < len(keys); {
		n, refused := t.encodeBlock(vs, &datas, vals[i:min(i+batchSize, len(keys))])
		err := t.cache.setBlock(i, t.keysOf(ks, raw[:0], keys[i:i+n]), datas[:n], l)
		first = cmp.Or(first, err)
		if i += n; refused != nil {
			t.cache.del(t.key(ks.Bytes[:0], keys[i]), store.Replaced, nil)
			first = cmp.Or(first, batchError(i, refused))
			i++
		}
	}
	return first
}

// encodeBlock encodes at most batchSize values into s, and returns their number: it stops at a
// value that cannot be encoded, with the error, and where they are too long for s.
func (t *Typed[K, V]) encodeBlock(
	s *scratch.Buffer, datas *[batchSize][]byte, vals []V,
) (n int, err error) {
	s.Bytes = s.Bytes[:0]
	for n < len(vals) && len(s.Bytes) < scratch.Most/2 {
		from := len(s.Bytes)
		data, err := t.append(s.Bytes[from:], vals[n])
		if err != nil {
			return n, fmt.Errorf("set entry: %w", err)
		}
		s.Bytes = append(s.Bytes, data...) // onto itself, if there was room
		datas[n] = s.Bytes[from:]          // valid even if s moves
		n++
	}
	return n, nil
}

// GetOrLoad returns the value of key, and loads it if it is absent, like [Cache.GetOrLoad]. An
// entry that cannot be decoded is usually removed, and its key loaded.
//
// If the loaded value cannot be encoded, the load has failed with [ErrEncode]. A call that waited
// returns [ErrDecode] if the value's encoding, or an expired value in its place
// ([Options].StaleIfError), cannot be decoded. With an error, the value is the zero value.
func (t *Typed[K, V]) GetOrLoad(
	ctx context.Context, key K, load LoadFunc[K, V],
) (v V, err error) {
	mustBeFunc("GetOrLoad", load != nil)
	var room, spaced [stackKey]byte
	k, h := t.cache.key(spaced[:0], t.key(room[:0], key))
	if t.memo != nil {
		if v, _, ok := t.recall(k, h); ok {
			return v, nil
		}
	}
	s := scratch.Get()
	defer s.Release()
	data, got := t.cache.getAhead(ctx, s.Bytes[:0], k, h)
	s.Bytes = data
	if got == hit || got == needsRefresh {
		v, err = t.decodeEntry(k, h, data)
		if err == nil && got == hit {
			return v, nil
		}
		if err != nil {
			t.discard(k, h)
			got = miss
		}
	}
	s.Bytes, err = t.cache.loadMissing(ctx, s.Bytes[:0], k, h, got, t.loader(load))
	if err != nil {
		var zero V
		return zero, err
	}
	if got == needsRefresh {
		return v, nil
	}
	return t.decode("load", key, s.Bytes)
}

// discard removes an entry that cannot be decoded, unless it was set since. It decodes the entry
// again, because the codec may have modified the bytes that it failed to decode.
func (t *Typed[K, V]) discard(k []byte, h uint64) {
	stored, lent := scratch.Get(), scratch.Get()
	defer stored.Release()
	defer lent.Release()
	data, _, got := t.cache.find(stored.Bytes[:0], k, h, withValue)
	stored.Bytes, lent.Bytes = data, append(lent.Bytes[:0], data...)
	if got != hit {
		return
	}
	if _, err := t.parse(lent.Bytes); err != nil {
		w := write{counted: true, cond: ifEqual, old: data}
		w.Key, w.Hash, w.Kind, w.Reason = k, h, t.cache.kind, store.Deleted
		_, _ = t.cache.remove(&w, nil)
	}
}

// GetOrLoadBatch is [Cache.GetOrLoadBatch], with vals and found as in [Typed.GetBatch]. found[i] is
// false if keys[i] has no value or has failed; a failed key is listed in err, which is then a
// [*BatchError]. An entry that cannot be decoded is usually removed and loaded.
func (t *Typed[K, V]) GetOrLoadBatch(
	ctx context.Context, keys []K, vals []V, found []bool, load BatchLoadFunc[K, V],
) (hits int, err error) {
	mustBeFunc("GetOrLoadBatch", load != nil)
	mustFit("load batch", len(keys), len(vals), len(found))
	ks, s := scratch.Get(), scratch.Get()
	defer ks.Release()
	defer s.Release()
	raw, datas := t.keysOf(ks, nil, keys), make([][]byte, len(keys))
	clear(vals[:len(keys)])
	clear(found[:len(keys)])
	usable := func(i int, data []byte) bool {
		v, err := t.parse(data)
		if err != nil {
			t.discard(t.cache.key(nil, raw[i]))
			return false
		}
		vals[i], found[i] = v, true
		return true
	}
	out, hits, failed := t.cache.getOrLoadBatch(
		ctx, s.Bytes[:0], raw, datas, t.loader(load), usable)
	s.Bytes = out
	for i, data := range datas {
		if found[i] || data == nil {
			continue
		}
		v, err := t.parse(data)
		if err != nil {
			failed = append(failed, KeyError{i, t.decodeError("", keys[i], data, err)})
			continue
		}
		vals[i], found[i] = v, true
	}
	return hits, batchErrorOf(failed)
}

// loader adapts load to bytes.
func (t *Typed[K, V]) loader(of loader[K, V]) byteLoader {
	start := len(t.prefix)
	return BatchLoadFunc[[]byte, []byte](func(
		ctx context.Context, raw [][]byte,
	) ([]loaded, error) {
		keys := make([]K, len(raw))
		for i, k := range raw {
			keys[i], _ = t.parseKey(k[start:]) // cannot fail: these are the bytes of the caller's key
		}
		found, err := of.load(ctx, keys)
		all := make([]loaded, len(found))
		for i, l := range found {
			all[i] = loaded{TTL: l.TTL, Err: l.Err}
			if l.Err != nil || err != nil {
				continue
			}
			all[i].Value, all[i].Err = t.append(nil, l.Value)
		}
		return all, err
	})
}
