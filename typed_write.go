package ringcache

import (
	"fmt"
	"time"

	"github.com/ringcache/ringcache/internal/scratch"
)

// How a Typed view writes: the value is encoded first, under no lock, and what cannot be encoded
// is removed.

// Set stores v under key, in place of an older value of key. The cache keeps v's encoding and
// nothing of v itself. It returns [ErrEncode], with the codec's own error, if the codec cannot
// encode v, and the errors of [Cache.Set]. Whatever the error, an older value of key is gone.
//
// Set does not allocate by itself: it encodes into a buffer that later calls use again. It
// does allocate for more than 1 MB, and for a key that has more than 128 bytes together with
// its prefix and the 8 bytes of a namespace; a string or byte slice that has neither may have
// any length.
func (t *Typed[K, V]) Set(key K, v V) error { return t.setFor(key, v, byOptions) }

// SetWithTTL is [Cache.SetWithTTL]: a [Typed.Set] of an entry that is there for ttl at the
// most, or for ever if ttl is 0.
func (t *Typed[K, V]) SetWithTTL(key K, v V, ttl time.Duration) error {
	return t.setFor(key, v, withTTL(ttl))
}

// setFor is Set of an entry with that lifetime.
func (t *Typed[K, V]) setFor(key K, v V, l lifetime) error {
	var room [intRoom]byte
	k := t.bytes(room[:0], key)
	s := scratch.Get()
	defer s.Release()
	data, err := t.encode(s, "set", v)
	if err != nil {
		t.of.Del(k)
		return err
	}
	return t.of.setFor(k, data, l)
}

// SetIfAbsent is [Cache.SetIfAbsent]: a [Typed.Set] if key is not there. It reports whether
// it stored v. An entry that cannot be decoded is there. Where v cannot be encoded, the
// error is [ErrEncode] and nothing changes.
func (t *Typed[K, V]) SetIfAbsent(key K, v V) (stored bool, err error) {
	var room [intRoom]byte
	s := scratch.Get()
	defer s.Release()
	data, err := t.encode(s, "set", v)
	if err != nil {
		return false, err
	}
	return t.of.SetIfAbsent(t.bytes(room[:0], key), data)
}

// SetIfAbsentWithTTL is [Cache.SetIfAbsentWithTTL]: a [Typed.SetWithTTL] if key is not there. If it
// is, it returns the value that is there, and false. If that cannot be decoded, the entry stays,
// and the error is [ErrDecode]; if v cannot be encoded, it is [ErrEncode] and nothing changes.
func (t *Typed[K, V]) SetIfAbsentWithTTL(
	key K, v V, ttl time.Duration,
) (was V, stored bool, err error) {
	var room [intRoom]byte
	s, old := scratch.Get(), scratch.Get()
	defer s.Release()
	defer old.Release()
	data, err := t.encode(s, "set", v)
	if err != nil {
		return was, false, err
	}
	old.Bytes = old.Bytes[:0]
	there, stored, err := t.of.setIfAbsent(&old.Bytes, t.bytes(room[:0], key), data, ttl)
	if there {
		was, err = t.decode("set", key, old.Bytes)
	}
	return was, stored, err
}

// CompareAndSwap is [Cache.CompareAndSwap]: a [Typed.Set] of new if the value of key has the same
// encoding as old. If one of the two cannot be encoded, the error is [ErrEncode] and nothing
// changes.
func (t *Typed[K, V]) CompareAndSwap(key K, old, new V) (swapped bool, err error) {
	var room [intRoom]byte
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
	return t.of.CompareAndSwap(t.bytes(room[:0], key), was, data)
}

// SetIfChanged is [Cache.SetIfChanged]: a [Typed.Set] unless key has a value of the same
// encoding. It reports whether it changed the value.
func (t *Typed[K, V]) SetIfChanged(key K, v V) (changed bool, err error) {
	var room [intRoom]byte
	k := t.bytes(room[:0], key)
	s := scratch.Get()
	defer s.Release()
	data, err := t.encode(s, "set", v)
	if err != nil {
		t.of.Del(k)
		return false, err
	}
	return t.of.SetIfChanged(k, data)
}

// Del is [Cache.Del]: it removes key and reports whether it was there.
func (t *Typed[K, V]) Del(key K) bool {
	var room [intRoom]byte
	return t.of.Del(t.bytes(room[:0], key))
}

// GetAndDel is [Cache.GetAndDel]: it removes key, and returns its value and whether it was
// there. If that cannot be decoded, key is removed, ok is false, and the error [ErrDecode].
func (t *Typed[K, V]) GetAndDel(key K) (v V, ok bool, err error) {
	var room [intRoom]byte
	s := scratch.Get()
	defer s.Release()
	data, ok := t.of.GetAndDel(s.Bytes[:0], t.bytes(room[:0], key))
	return t.found(s, "get and delete", key, data, ok)
}

// Touch is [Cache.Touch]: it gives the entry of key another time to live.
func (t *Typed[K, V]) Touch(key K, ttl time.Duration) bool {
	var room [intRoom]byte
	return t.of.Touch(t.bytes(room[:0], key), ttl)
}

// Update is [Cache.Update]: it replaces the value of key by what fn makes of it, or removes
// key if fn returns false for keep. fn may run several times, of which the last counts.
//
// If the value that is there cannot be decoded, fn is not called, the entry stays as it is,
// and the error is [ErrDecode]. If what fn returns cannot be encoded, key is removed, and the
// error is [ErrEncode].
func (t *Typed[K, V]) Update(key K, fn func(old V, ok bool) (v V, keep bool)) error {
	mustBeFunc("Update", fn != nil)
	return t.update(key, byOptions, fn)
}

// UpdateWithTTL is [Cache.UpdateWithTTL]: a [Typed.Update] in which a new entry gets ttl, and one
// that is there keeps its expiry.
func (t *Typed[K, V]) UpdateWithTTL(
	key K, ttl time.Duration, fn func(old V, ok bool) (v V, keep bool),
) error {
	mustBeFunc("UpdateWithTTL", fn != nil)
	return t.update(key, withTTL(ttl), fn)
}

func (t *Typed[K, V]) update(key K, l lifetime, fn func(old V, ok bool) (v V, keep bool)) error {
	var room [intRoom]byte
	k := t.bytes(room[:0], key)
	s := scratch.Get()
	defer s.Release()
	var refused error // of the last try, which counts
	err := t.of.update(k, l, func(data []byte, ok bool) (out []byte, keep bool, err error) {
		var v V
		if ok {
			if v, err = t.decode("update", key, data); err != nil {
				return nil, false, err
			}
		}
		refused = nil
		if v, keep = fn(v, ok); keep {
			out, refused = t.encode(s, "update", v)
		}
		return out, keep && refused == nil, nil
	})
	if err == nil {
		err = refused
	}
	return err
}

// encode returns the encoding of v, which is in s if it has room.
func (t *Typed[K, V]) encode(s *scratch.Buffer, verb string, v V) ([]byte, error) {
	data, err := t.codec.Append(s.Bytes[:0], v)
	if err != nil {
		return nil, encodeError(verb, err)
	}
	s.Fit(len(data))
	return data, nil
}

func encodeError(verb string, err error) error {
	return fmt.Errorf("ringcache: %s entry: %w: %w", verb, ErrEncode, err)
}

// SetBatch is [Cache.SetBatch]: it stores vals[i] under keys[i] for each i, as so many calls
// of [Typed.Set] in that order would. All are tried; the first error is returned, with its
// index. SetBatch panics if vals is shorter than keys. It does not allocate for a key, within
// the bounds of Set.
func (t *Typed[K, V]) SetBatch(keys []K, vals []V) error {
	return t.setBatch(keys, vals, byOptions)
}

// SetBatchWithTTL is [Cache.SetBatchWithTTL]: a [Typed.SetBatch] of entries that live for ttl.
func (t *Typed[K, V]) SetBatchWithTTL(keys []K, vals []V, ttl time.Duration) error {
	return t.setBatch(keys, vals, withTTL(ttl))
}

func (t *Typed[K, V]) setBatch(keys []K, vals []V, l lifetime) error {
	if len(vals) < len(keys) {
		panic(fmt.Sprintf("ringcache: set batch: %d vals for %d keys", len(vals), len(keys)))
	}
	b := blocks.Get().(*block)
	defer b.release()
	var first error
	for i := 0; i < len(keys); {
		n, refused := t.encodeBlock(b, keys[i:], vals[i:])
		at, err := t.of.cache.setBlock(b.keys[:n], b.vals[:n], l)
		t.of.wrote(n)
		if refused != nil {
			t.Del(keys[i+n])
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
	for n < min(len(keys), batchSize) && b.valueRoom.used < scratch.Most {
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
