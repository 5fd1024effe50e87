package ringcache

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/ringcache/ringcache/internal/memo"
	"github.com/ringcache/ringcache/internal/scratch"
)

// Key is the constraint on the keys of a [Typed] view. After the prefix, a key's bytes in the cache
// are:
//
//   - for a string or byte slice, its own bytes;
//   - for an integer of 8, 16, 32 or 64 bits, its 1, 2, 4 or 8 bytes in big-endian order, negative
//     ones in two's complement;
//   - for an int, uint or uintptr, 8 bytes of the same form on every platform.
//
// Convert keys of other types to one of these: slice an array such as a UUID (id[:]).
type Key interface {
	~string | ~[]byte |
		~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// Codec encodes and decodes values of type V for a [Typed] view. Package
// [github.com/ringcache/ringcache/codec] has codecs, among them Func, for two functions, and Memo,
// which avoids decoding on frequent hits. The methods are called concurrently, under no lock.
type Codec[V any] interface {
	// Append appends the encoding of v to dst and returns the extended slice, like the built-in
	// append. It must not keep dst. If it returns an error, nothing is stored.
	Append(dst []byte, v V) ([]byte, error)

	// Decode returns the value whose encoding is data, or an error if data is not an encoding. It must
	// handle arbitrary bytes, such as those of another version of the program. data is in a buffer
	// that will be reused: neither the value nor the error may refer to it.
	Decode(data []byte) (V, error)
}

// TypedOptions are the settings of a [Typed] view.
type TypedOptions struct {
	// Prefix begins every key of the view, and is stored with it, so that several views, or a view and
	// other code, can share a cache. It must not be the beginning of another view's prefix: end it
	// with a byte that occurs nowhere else in a prefix, as in "user:".
	Prefix string
}

// Typed is a view of a [Cache] with keys of type K and values of type V, which a [Codec] encodes.
// It holds no entries itself: any number of views, and the cache's own methods, may use the same
// cache. It keeps its cache reachable, and is safe for concurrent use if its codec is.
//
// Unless stated otherwise, methods behave like the [Cache] methods of the same name. Methods that
// store may also return [ErrEncode], and methods that read [ErrDecode], with the codec's error.
// Calls other than loops, loads and batches normally allocate only where [Typed.Set] does, or the
// codec.
type Typed[K Key, V any] struct {
	cache  *Cache
	prefix string
	codec  Codec[V]
	memo   *memo.Table[V] // of the codec; nil: it remembers nothing
	kind   reflect.Kind

	entries sync.Pool // of *Entry[V], for Update
}

// NewTyped returns a view of a cache, which may be a namespace. K must be given explicitly; the
// other types are inferred:
//
//	users := ringcache.NewTyped[uint64](cache, codec.JSON[User](),
//		ringcache.TypedOptions{Prefix: "user:"})
//
// Calls on a view count in the statistics of its cache. NewTyped panics if the cache or the codec
// is nil.
func NewTyped[K Key, V any](c *Cache, codec Codec[V], o TypedOptions) *Typed[K, V] {
	if c == nil || codec == nil {
		panic("ringcache: make typed view: cache or codec is nil")
	}
	t := &Typed[K, V]{
		cache: c, prefix: o.Prefix, codec: codec, memo: memo.TableOf[V](codec),
		kind: reflect.TypeFor[K]().Kind(),
	}
	t.entries.New = func() any { return new(Entry[V]) }
	return t
}

// Get returns the value of key and true, or the zero value and false if key is absent. ErrDecode
// usually means bytes of another version of the program, or of a view that should have a different
// prefix. The entry stays, and counts as a hit in Stats.
func (t *Typed[K, V]) Get(key K) (v V, ok bool, err error) {
	v, _, ok, err = t.look("get", key, getMode)
	return v, ok, err
}

// Peek is [Typed.Get], except that it counts neither as a lookup nor as a read.
func (t *Typed[K, V]) Peek(key K) (v V, ok bool, err error) {
	v, _, ok, err = t.look("peek", key, withValue)
	return v, ok, err
}

// GetWithTTL is like [Typed.Get], and also returns the remaining time to live: 0 if the entry never
// expires, is absent, or cannot be decoded.
func (t *Typed[K, V]) GetWithTTL(key K) (v V, ttl time.Duration, ok bool, err error) {
	v, expiry, ok, err := t.look("get", key, getMode)
	if ok {
		ttl = t.cache.left(expiry, hit)
	}
	return v, ttl, ok, err
}

// look looks up key with the effects of mode.
func (t *Typed[K, V]) look(
	verb string, key K, mode lookupMode,
) (v V, expiry uint32, ok bool, err error) {
	var room, spaced [stackKey]byte
	k, h := t.cache.key(spaced[:0], t.key(room[:0], key))
	if mode == getMode && t.memo != nil {
		if v, expiry, ok = t.recall(k, h); ok {
			return v, expiry, true, nil
		}
	}
	s := scratch.Get()
	defer s.Release()
	data, expiry, got := t.cache.find(s.Bytes[:0], k, h, mode)
	if s.Bytes = data; got != hit {
		return v, 0, false, nil
	}
	if v, err = t.decodeEntry(k, h, data); err != nil {
		var zero V // even if the codec returns another value
		return zero, 0, false, t.decodeError("ringcache: "+verb+" ", key, data, err)
	}
	return v, expiry, true, nil
}

// Has reports whether key is present, even if its value cannot be decoded.
func (t *Typed[K, V]) Has(key K) bool {
	var room [stackKey]byte
	return t.cache.Has(t.key(room[:0], key))
}

// TTL returns the remaining time to live of key, and whether it is present.
func (t *Typed[K, V]) TTL(key K) (time.Duration, bool) {
	var room [stackKey]byte
	return t.cache.TTL(t.key(room[:0], key))
}

// parse returns the value whose encoding is data. The codec must not write to what follows it.
func (t *Typed[K, V]) parse(data []byte) (V, error) {
	return t.codec.Decode(data[:len(data):len(data)])
}

// decode returns the value whose encoding is data, which was read from the entry of key.
func (t *Typed[K, V]) decode(verb string, key K, data []byte) (V, error) {
	v, err := t.parse(data)
	if err != nil {
		var zero V // even if the codec returns another value
		return zero, t.decodeError("ringcache: "+verb+" ", key, data, err)
	}
	return v, nil
}

// decodeEntry is decode with the codec's own error. k and h are the engine's key and its hash.
func (t *Typed[K, V]) decodeEntry(k []byte, h uint64, data []byte) (V, error) {
	if t.memo == nil {
		return t.parse(data)
	}
	v, e, err := t.memo.Decode(data[:len(data):len(data)])
	if e != nil && t.memo.Binds(e, h) {
		t.bind(e, k, h)
	}
	return v, err
}

// decodeError returns the error of an entry that cannot be decoded.
func (t *Typed[K, V]) decodeError(prefix string, key K, data []byte, err error) error {
	return fmt.Errorf("%sentry %s of %d bytes: %w: %w",
		prefix, t.quote(key), len(data), ErrDecode, err)
}

// recall returns the remembered value of k's entry, whose hash is h, if the entry is unchanged
// since the value was bound to it. That is a hit, with all effects of one.
func (t *Typed[K, V]) recall(k []byte, h uint64) (v V, expiry uint32, ok bool) {
	c := t.cache
	e, bound := t.memo.Recall(h)
	if e == nil {
		return v, 0, false
	}
	id := c.identify(k, h)
	if id.EntryID != bound || c.isDue(id.expiry) {
		return v, 0, false
	}
	c.noteHit(h, id)
	c.looked(1, 1)
	return t.memo.Hit(e), id.expiry, true
}

// bind lets recall find e, the value of k's entry. The bytes are read after the identity: if a
// write came in between, they are those of another identity, and recall never finds them by this
// one.
func (t *Typed[K, V]) bind(e *memo.Entry[V], k []byte, h uint64) {
	c := t.cache
	id := c.identify(k, h).EntryID
	if id == (memo.EntryID{}) {
		return
	}
	s := scratch.Get()
	defer s.Release()
	data, _, got := c.find(s.Bytes[:0], k, h, withValue)
	if s.Bytes = data; got == hit {
		t.memo.Bind(e, h, id, data)
	}
}

// quote returns a key for an error message: a number, or a quoted and truncated string.
func (t *Typed[K, V]) quote(key K) string {
	b, ok := t.text(&key)
	switch {
	case !ok:
		return fmt.Sprintf("%d", any(key))
	case len(b) > longestQuote:
		return fmt.Sprintf("%q...", b[:longestQuote])
	}
	return fmt.Sprintf("%q", b)
}

// GetBatch looks up keys like [Cache.GetBatch]: it sets vals[i] to the value of keys[i] and
// found[i] to true, or to the zero value and false, also if a value cannot be decoded: the error is
// then the first such key's, with its index. GetBatch panics if vals or found is shorter than keys.
func (t *Typed[K, V]) GetBatch(keys []K, vals []V, found []bool) (hits int, err error) {
	mustFit("get batch", len(keys), len(vals), len(found))
	var raw, datas [batchSize][]byte
	ks, s := scratch.Get(), scratch.Get()
	defer ks.Release()
	defer s.Release()
	for i := 0; i < len(keys); i += batchSize {
		part := keys[i:min(i+batchSize, len(keys))]
		s.Bytes, _ = t.cache.GetBatch(s.Bytes[:0], t.keysOf(ks, raw[:0], part), datas[:])
		for j, data := range datas[:len(part)] {
			var zero V
			vals[i+j], found[i+j] = zero, false
			if data == nil {
				continue
			}
			v, e := t.parse(data)
			if e == nil {
				vals[i+j], found[i+j] = v, true
				hits++
			} else if err == nil {
				prefix := fmt.Sprintf("ringcache: get batch: index %d: get ", i+j)
				err = t.decodeError(prefix, part[j], data, e)
			}
		}
	}
	return hits, err
}

// keysOf returns the cache's keys for some keys. It appends them to room, and their bytes to s.
func (t *Typed[K, V]) keysOf(s *scratch.Buffer, room [][]byte, keys []K) [][]byte {
	s.Bytes, room = s.Bytes[:0], slices.Grow(room, len(keys))
	for _, key := range keys {
		from := len(s.Bytes)
		s.Bytes = t.appendKey(s.Bytes, key)
		room = append(room, s.Bytes[from:]) // valid even if s moves
	}
	return room
}

// All returns an iterator over the entries of the view, with keys and values that the body may
// keep. It follows the rules of [Cache.All], and examines the keys of all entries of the cache:
// those that begin with the view's prefix, and can be keys of type K, belong to the view. Entries
// that cannot be decoded are skipped: they may belong to other users of the cache.
func (t *Typed[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(key K, v V) bool) {
		mustBeFunc("All", yield != nil)
		t.loop(withValue, func(key K, data []byte) bool {
			v, err := t.parse(data)
			return err != nil || yield(key, v)
		})
	}
}

// Keys is [Typed.All] without the values, which it does not decode.
func (t *Typed[K, V]) Keys() iter.Seq[K] {
	return func(yield func(key K) bool) {
		mustBeFunc("Keys", yield != nil)
		t.loop(0, func(key K, _ []byte) bool { return yield(key) })
	}
}

// Len counts the entries of the view, in a loop like [Typed.Keys].
func (t *Typed[K, V]) Len() (n int) {
	for range t.Keys() {
		n++
	}
	return n
}

// loop calls fn with the entries of the view, until fn returns false.
func (t *Typed[K, V]) loop(mode lookupMode, fn func(key K, data []byte) bool) {
	var key K
	ours := func(raw []byte) (ok bool) {
		key, ok = t.keyIn(raw)
		return ok
	}
	t.cache.loop(ours, mode, func(_, data []byte) bool { return fn(key, data) })
}

// keyIn returns the key whose bytes in the cache are raw, and whether it is one of the view's.
func (t *Typed[K, V]) keyIn(raw []byte) (key K, ok bool) {
	rest, ok := bytes.CutPrefix(raw, []byte(t.prefix))
	if !ok {
		return key, false
	}
	return t.parseKey(rest)
}

// key returns the cache's key for key: the prefix and the bytes of key. It may be key's own memory,
// which must not be written to.
func (t *Typed[K, V]) key(room []byte, key K) []byte {
	if t.prefix == "" {
		if b, ok := t.text(&key); ok {
			return b
		}
	}
	return t.appendKey(room, key)
}

// appendKey appends the cache's key for key.
func (t *Typed[K, V]) appendKey(buf []byte, key K) []byte {
	buf = append(buf, t.prefix...)
	if b, ok := t.text(&key); ok {
		return append(buf, b...)
	}
	n, size := t.keyInt(key)
	if size == 8 {
		return binary.BigEndian.AppendUint64(buf, n) // the common size
	}
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	return append(buf, b[8-size:]...)
}

// text returns the bytes of a key that is a string or byte slice, and whether it is one. A string's
// are not copied, which is sound: a Cache reads a key only while a call runs, and neither writes to
// it nor keeps it.
func (t *Typed[K, V]) text(key *K) (b []byte, ok bool) {
	switch t.kind {
	case reflect.String:
		s := keyAs[string](key)
		return unsafe.Slice(unsafe.StringData(s), len(s)), true
	case reflect.Slice:
		return keyAs[[]byte](key), true
	}
	return nil, false
}

// parseKey returns the key with the given bytes, and whether there is one.
func (t *Typed[K, V]) parseKey(b []byte) (key K, ok bool) {
	switch t.kind {
	case reflect.String:
		setKeyAs(&key, string(b))
		return key, true
	case reflect.Slice:
		setKeyAs(&key, append([]byte{}, b...))
		return key, true
	}
	_, size := t.keyInt(key)
	if len(b) != size {
		return key, false
	}
	var word [8]byte
	copy(word[8-size:], b)
	n := binary.BigEndian.Uint64(word[:])
	switch t.kind {
	case reflect.Int8, reflect.Uint8:
		setKeyAs(&key, uint8(n))
	case reflect.Int16, reflect.Uint16:
		setKeyAs(&key, uint16(n))
	case reflect.Int32, reflect.Uint32:
		setKeyAs(&key, uint32(n))
	case reflect.Int64, reflect.Uint64:
		setKeyAs(&key, n)
	default:
		setKeyAs(&key, uint(n)) // an int has the same bits
	}
	back, _ := t.keyInt(key)
	return key, back == n // false where an int has 32 bits and the key needs more
}

// keyInt returns key as an integer, of which the low size bytes are stored.
func (t *Typed[K, V]) keyInt(key K) (n uint64, size int) {
	switch t.kind {
	case reflect.Int8, reflect.Uint8:
		return uint64(keyAs[uint8](&key)), 1
	case reflect.Int16, reflect.Uint16:
		return uint64(keyAs[uint16](&key)), 2
	case reflect.Int32, reflect.Uint32:
		return uint64(keyAs[uint32](&key)), 4
	case reflect.Int64, reflect.Uint64:
		return keyAs[uint64](&key), 8
	case reflect.Int:
		return uint64(keyAs[int](&key)), 8 // sign and all, where an int has 32 bits
	default: // uint and uintptr
		return uint64(keyAs[uint](&key)), 8
	}
}

// keyAs returns *k as a T. This is sound because the caller has checked that the underlying type
// of K is T, or an integer type of the same size: a type has the same memory layout as its
// underlying type.
func keyAs[T any, K Key](k *K) T { return *(*T)(unsafe.Pointer(k)) }

// setKeyAs sets *k to v. It is sound under the same condition as keyAs.
func setKeyAs[T any, K Key](k *K, v T) { *(*T)(unsafe.Pointer(k)) = v }
