package ringcache

import (
	"context"
	"fmt"
	"time"
)

// TypedLoadFunc finds the value of a key that is not in the cache, for [Typed.GetOrLoad], and
// how long it stays there: as with [Loaded].TTL, 0 stands for [Options].TTL. An error that is
// [ErrAbsent] says that there is no value, which is remembered for ttl. The context and key are
// those of a [LoadFunc]; the function may keep key. v is encoded before those who wait for it
// get it, each a value of its own.
type TypedLoadFunc[K Key, V any] func(ctx context.Context, key K) (
	v V, ttl time.Duration, err error)

// GetOrLoad is [Cache.GetOrLoad]: it returns the value of key, loading it if it is not there,
// once for all who ask for it at once. An entry that cannot be decoded is removed, and its key
// loaded.
//
// The errors are those of Cache.GetOrLoad. If the codec cannot encode what was loaded, all who
// wait get [ErrEncode], and if it cannot decode what it has encoded, or a value that stands in
// for it ([Options].StaleIfError), [ErrDecode]. The value is the zero value then. A hit does
// not allocate, within the bounds of [Typed.Set].
func (t *Typed[K, V]) GetOrLoad(
	ctx context.Context, key K, load TypedLoadFunc[K, V],
) (v V, err error) {
	mustBeFunc("GetOrLoad", load != nil)
	var room [keyRoom]byte
	k := t.keyBytes(room[:0], key)
	s := scratches.Get().(*scratch)
	data, got := t.cache.getAhead(s.buf[:0], k)
	if got == hit {
		if v, err = t.codec.Decode(data[:len(data):len(data)]); err == nil {
			t.ns.looked(true)
			s.buf = data
			s.release() // without defer, for speed: if Decode panics, a buffer is lost
			return v, nil
		}
	}
	return t.loadMissing(ctx, s, key, k, data, got, load)
}

// loadMissing is GetOrLoad of a key that is missing, due, or cannot be decoded. data and got
// are what its lookup has found.
func (t *Typed[K, V]) loadMissing(
	ctx context.Context, s *scratch, key K, k, data []byte, got outcome,
	load TypedLoadFunc[K, V],
) (v V, err error) {
	defer s.release()
	s.buf = data
	t.ns.lookedAhead(got)
	if got == hitDue {
		if v, err = t.decode("load", key, data); err == nil {
			_, _ = t.cache.loadMissing(ctx, nil, k, got, t.loader(load))
			return v, nil
		}
	}
	if got == hit || got == hitDue {
		t.discard(k)
		got = miss
	}
	data, err = t.cache.loadMissing(ctx, s.buf[:0], k, got, t.loader(load))
	if err != nil {
		var zero V
		return zero, err
	}
	s.buf = data
	return t.decode("load", key, data)
}

// discard removes an entry that cannot be decoded, unless it was set since. It looks at the entry
// again, as the codec may have changed the bytes that it failed to decode.
func (t *Typed[K, V]) discard(k []byte) {
	stored, lent := scratches.Get().(*scratch), scratches.Get().(*scratch)
	defer stored.release()
	defer lent.release()
	w := write{k: k, h: t.cache.shared.hash(k), del: true, silent: true, reason: EvictDeleted}
	data, ok := t.cache.peek(stored.buf[:0], &w)
	stored.buf, lent.buf = data, append(lent.buf[:0], data...)
	if !ok {
		return
	}
	if _, err := t.codec.Decode(lent.buf[:len(data):len(data)]); err != nil {
		w.expect(data, true)
		_, _ = t.cache.remove(&w, nil)
	}
}

// loader returns load as a function of bytes. It is made for a load, and not for a hit.
func (t *Typed[K, V]) loader(load TypedLoadFunc[K, V]) LoadFunc {
	start := len(t.start(nil))
	return func(ctx context.Context, raw []byte) (l Loaded, err error) {
		key, _ := t.parseKey(raw[start:]) // the caller's key, whose bytes they are
		v, ttl, err := load(ctx, key)
		l.TTL = ttl
		if err != nil {
			return l, err
		}
		if l.Value, err = t.codec.Append(nil, v); err != nil {
			return l, fmt.Errorf("%w: %w", ErrEncode, err)
		}
		return l, nil
	}
}
