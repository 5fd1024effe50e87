package ringcache

import (
	"context"
	"fmt"
	"time"

	"github.com/ringcache/ringcache/internal/scratch"
	"github.com/ringcache/ringcache/internal/store"
)

// GetOrLoad is [Cache.GetOrLoad]: it returns the value of key, loading it if it is not there,
// once for all who ask for it at once. An entry that cannot be decoded is removed, and its key
// loaded.
//
// The errors are those of Cache.GetOrLoad. If the codec cannot encode what was loaded, all who
// wait get [ErrEncode], and if it cannot decode what it has encoded, or a value that stands in
// for it ([Options].StaleIfError), [ErrDecode]. The value is the zero value then. A hit does
// not allocate, within the bounds of [Typed.Set].
func (t *Typed[K, V]) GetOrLoad(
	ctx context.Context, key K, load LoadFunc[K, V],
) (v V, err error) {
	mustBeFunc("GetOrLoad", load != nil)
	var room [keyRoom]byte
	k := t.keyBytes(room[:0], key)
	s := scratch.Get()
	data, got := t.of.cache.getAhead(s.Bytes[:0], k)
	if got == hit {
		if v, err = t.codec.Decode(data[:len(data):len(data)]); err == nil {
			t.of.looked(true)
			s.Bytes = data
			s.Release() // without defer, for speed: if Decode panics, a buffer is lost
			return v, nil
		}
	}
	return t.loadMissing(ctx, s, key, k, data, got, load)
}

// loadMissing is GetOrLoad of a key that is missing, due, or cannot be decoded. data and got
// are what its lookup has found.
func (t *Typed[K, V]) loadMissing(
	ctx context.Context, s *scratch.Buffer, key K, k, data []byte, got outcome,
	load LoadFunc[K, V],
) (v V, err error) {
	defer s.Release()
	s.Bytes = data
	t.of.lookedAhead(got)
	if got == hitDue {
		if v, err = t.decode("load", key, data); err == nil {
			_, _ = t.of.cache.loadMissing(ctx, nil, k, got, t.loader(load))
			return v, nil
		}
	}
	if got == hit || got == hitDue {
		t.discard(k)
		got = miss
	}
	data, err = t.of.cache.loadMissing(ctx, s.Bytes[:0], k, got, t.loader(load))
	if err != nil {
		var zero V
		return zero, err
	}
	s.Bytes = data
	return t.decode("load", key, data)
}

// discard removes an entry that cannot be decoded, unless it was set since. It looks at the entry
// again, as the codec may have changed the bytes that it failed to decode.
func (t *Typed[K, V]) discard(k []byte) {
	stored, lent := scratch.Get(), scratch.Get()
	defer stored.Release()
	defer lent.Release()
	w := t.of.cache.writeOf(k, nil, store.Deleted)
	w.del, w.silent = true, true
	data, ok := t.of.cache.peek(stored.Bytes[:0], &w)
	stored.Bytes, lent.Bytes = data, append(lent.Bytes[:0], data...)
	if !ok {
		return
	}
	if _, err := t.codec.Decode(lent.Bytes[:len(data):len(data)]); err != nil {
		w.expect(data, true)
		_, _ = t.of.cache.remove(&w, nil)
	}
}

// loader returns load as a function of bytes. It is made for a load, and not for a hit.
func (t *Typed[K, V]) loader(load LoadFunc[K, V]) loadFunc {
	start := t.of.startLen()
	return func(ctx context.Context, raw []byte) ([]byte, time.Duration, error) {
		key, _ := t.parseKey(raw[start:]) // the caller's key, whose bytes they are
		v, ttl, err := load(ctx, key)
		if err != nil {
			return nil, ttl, err
		}
		data, err := t.encodeLoaded(v)
		return data, ttl, err
	}
}

// encodeLoaded returns the encoding of a value that was loaded.
func (t *Typed[K, V]) encodeLoaded(v V) ([]byte, error) {
	data, err := t.codec.Append(nil, v)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEncode, err)
	}
	return data, nil
}

// GetOrLoadBatch is [Cache.GetOrLoadBatch], with vals and found as [Typed.GetBatch] has them: the
// missing values are loaded with one call of load. found[i] is false if keys[i] has no value, or
// has failed: then err is a [*BatchError] that lists i. hits is the number of keys whose values
// were in the cache. As with [Typed.GetOrLoad], an entry that cannot be decoded is removed and
// loaded, and a loaded value that cannot be decoded is [ErrDecode] for its key. If the codec
// cannot encode a value, its key gets [ErrEncode]. GetOrLoadBatch allocates room
// for the keys, and panics if vals or found is shorter than they are.
func (t *Typed[K, V]) GetOrLoadBatch(
	ctx context.Context, keys []K, vals []V, found []bool, load BatchLoadFunc[K, V],
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
	s := scratch.Get()
	defer s.Release()
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
	out, hits, failed := t.of.cache.getOrLoadBatch(
		ctx, s.Bytes[:0], raw, datas, t.batchLoader(load), usable)
	s.Bytes = out
	t.of.loadedFor(len(keys), hits+undecodable) // in the cache they count as hits
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
func (t *Typed[K, V]) batchLoader(load BatchLoadFunc[K, V]) batchLoadFunc {
	start := t.of.startLen()
	return func(ctx context.Context, raw [][]byte) ([]loaded, error) {
		keys := make([]K, len(raw))
		for i, k := range raw {
			keys[i], _ = t.parseKey(k[start:]) // the caller's keys, whose bytes they are
		}
		found, err := load(ctx, keys)
		all := make([]loaded, len(found))
		for i, l := range found {
			all[i] = loaded{TTL: l.TTL, Err: l.Err}
			if l.Err == nil && err == nil {
				all[i].Value, all[i].Err = t.encodeLoaded(l.Value)
			}
		}
		return all, err
	}
}
