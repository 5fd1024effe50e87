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
// once for all who ask for it at once. An entry that cannot be decoded is not there: it is
// loaded anew, and so replaced.
//
// The errors are those of Cache.GetOrLoad. If the codec cannot encode what was loaded, all who
// wait get [ErrEncode], and if it cannot decode what it has encoded, [ErrDecode]. The value is
// the zero value then. A hit does not allocate, within the bounds of [Typed.Set].
func (t *Typed[K, V]) GetOrLoad(
	ctx context.Context, key K, load TypedLoadFunc[K, V],
) (v V, err error) {
	mustBeFunc("GetOrLoad", load != nil)
	var room [keyRoom]byte
	k := t.keyBytes(room[:0], key)
	s := scratches.Get().(*scratch)
	defer s.release()
	h := t.cache.shared.hash(k)
	data, got := t.cache.getAhead(s.buf[:0], k, h)
	s.buf = data
	t.ns.looked(got == hit || got == hitDue)
	if got == hit || got == hitDue {
		if v, err = t.decode("load", key, data); err == nil {
			if got == hitDue {
				_, _ = t.cache.loadMissing(ctx, nil, k, h, got, t.loader(load))
			}
			return v, nil
		}
		t.discard(k, h, data)
		got = miss
	}
	data, err = t.cache.loadMissing(ctx, s.buf[:0], k, h, got, t.loader(load))
	if err != nil {
		return v, err
	}
	s.buf = data
	return t.decode("load", key, data)
}

// discard removes an entry that cannot be decoded, unless it was set since.
func (t *Typed[K, V]) discard(k []byte, h uint64, data []byte) {
	w := write{k: k, h: h, del: true, silent: true, reason: EvictDeleted}
	w.expect(data, true)
	_, _ = t.cache.remove(&w, nil)
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
