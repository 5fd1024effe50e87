package ringcache

import (
	"encoding/binary"
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"github.com/ringcache/ringcache/internal/memo"
	"github.com/ringcache/ringcache/internal/scratch"
)

// Key is the constraint on the keys of a [Typed] view. The bytes of a key in the cache are:
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
// [github.com/ringcache/ringcache/codec] has codecs for JSON, for types that encode themselves, for
// strings and byte slices, and for a pair of functions; its Memo avoids decoding on frequent hits.
// The goroutines that use the view call both methods concurrently, while no lock is held.
type Codec[V any] interface {
	// Append appends the encoding of v to dst and returns the extended slice, like the built-in
	// append. It must not keep dst. If it returns an error, nothing is stored.
	Append(dst []byte, v V) ([]byte, error)

	// Decode returns the value whose encoding is data, or an error if data is not an encoding. It must
	// handle arbitrary bytes, such as those of another version of the program. data is in a buffer
	// that will be reused: neither the value nor the error may refer to it.
	Decode(data []byte) (V, error)
}

// TypedOptions are the settings of a [Typed] view. The zero value is the default.
type TypedOptions struct {
	// Prefix begins every key of the view, so that several views, or a view and other code, can share
	// a cache. It must not be the beginning of another view's prefix: end it with a byte that occurs
	// nowhere else in a prefix, as in "user:". Its bytes are stored with every entry.
	Prefix string
}

// Typed is a view of a [Cache] with keys of type K and values of type V, which a [Codec] encodes.
// It holds no entries itself: any number of views, and the cache's own methods, may use the same
// cache. It is made by [NewTyped], keeps its cache reachable, and is safe for concurrent use if its
// codec is. No lock is held while a codec runs.
//
// Methods behave like the [Cache] methods of the same name. Methods that store may also return
// [ErrEncode], with the codec's own error; methods that read, [ErrDecode], with the codec's error
// and the key, truncated to 64 bytes.
type Typed[K Key, V any] struct {
	cache  *Cache
	prefix string
	codec  Codec[V]
	memo   *memo.Table[V] // of the codec; nil: it remembers nothing
	kind   reflect.Kind

	entries sync.Pool // of *Entry[V], for Update
}

// NewTyped returns a view of a cache, which may be a namespace, for keys of type K and values of
// type V, which codec encodes. K must be given explicitly; the other types are inferred:
//
//	users := ringcache.NewTyped[uint64](cache, codec.JSON[User](),
//		ringcache.TypedOptions{Prefix: "user:"})
//
// Calls on a view count in the statistics of its cache, and its Reset removes the entries of the
// view. NewTyped panics if the cache or the codec is nil.
func NewTyped[K Key, V any](c *Cache, codec Codec[V], o TypedOptions) *Typed[K, V] {
	if c == nil || codec == nil {
		panic("ringcache: make typed view: cache or codec is nil")
	}
	t := &Typed[K, V]{cache: c, prefix: o.Prefix, codec: codec, kind: reflect.TypeFor[K]().Kind()}
	if m, ok := codec.(interface{ Values(any) *memo.Table[V] }); ok {
		t.memo = m.Values(codec)
	}
	t.entries.New = func() any { return new(Entry[V]) }
	return t
}

// intRoom is the room for the bytes of an integer key on the stack.
const intRoom = 8

// Get returns the value of key and true, or the zero value and false if key is absent. If the codec
// cannot decode the entry, the error is [ErrDecode]: the bytes may be from an older version of the
// program, or from a view that should have a different prefix. The entry stays until it is set
// again; in [Stats] it is a hit.
//
// Get does not allocate, within the limits that [Typed.Set] states.
func (t *Typed[K, V]) Get(key K) (v V, ok bool, err error) {
	if t.memo != nil {
		return t.getRemembered(key)
	}
	var room [stackKey]byte
	s := scratch.Get()
	defer s.Release()
	data, ok := t.cache.HasGet(s.Bytes[:0], t.key(room[:0], key))
	return t.found(s, "get", key, data, ok)
}

// getRemembered is Get of a view whose codec remembers values.
func (t *Typed[K, V]) getRemembered(key K) (v V, ok bool, err error) {
	var room [stackKey]byte
	k := t.keyBytes(room[:0], key)
	h := t.cache.shared.HashOf(k, t.cache.kind())
	if v, ok = t.recall(k, h); ok {
		return v, true, nil
	}
	s := scratch.Get()
	defer s.Release()
	data, _, got := t.cache.lookup(s.Bytes[:0], k, h, getMode)
	if !t.cache.looked(got == hit) {
		return v, false, nil
	}
	s.Bytes = data
	if v, err = t.decodeEntry(k, h, data); err != nil {
		var zero V
		return zero, false, t.decodeError("get", key, data, err)
	}
	return v, true, nil
}

// recall returns the remembered value of k's entry, whose hash is h, if the entry is unchanged
// since the value was bound to it. That is a hit, with all effects of one.
func (t *Typed[K, V]) recall(k []byte, h uint64) (v V, ok bool) {
	c := t.cache
	e, bound := t.memo.Recall(h)
	if e == nil || bound.Bucket != c.bucketID(h) { // the place is another key's: no need to look
		return v, false
	}
	id := c.identify(k, h)
	if id.EntryID != bound || c.isDue(id.expiry) {
		return v, false
	}
	c.noteHit(h, id)
	t.cache.looked(true)
	return t.memo.Hit(e), true
}

// decodeEntry returns the value whose encoding is data, which was read from the entry of k, whose
// hash is h.
func (t *Typed[K, V]) decodeEntry(k []byte, h uint64, data []byte) (V, error) {
	data = data[:len(data):len(data)]
	if t.memo == nil {
		return t.codec.Decode(data)
	}
	v, known, err := t.memo.Decode(data)
	if known && t.memo.Binds(h) {
		t.bind(k, h)
	}
	return v, err
}

// bind lets recall find the value of k's entry. The bytes are read after the identity: if a write
// came in between, they are those of another identity, and recall never finds them by this one.
func (t *Typed[K, V]) bind(k []byte, h uint64) {
	c := t.cache
	id := c.identify(k, h).EntryID
	if id == (memo.EntryID{}) {
		return
	}
	s := scratch.Get()
	defer s.Release()
	data, _, got := c.lookup(s.Bytes[:0], k, h, withValue)
	if s.Bytes = data; got == hit {
		t.memo.Bind(h, id, data)
	}
}

// Peek is [Cache.Peek]: a [Typed.Get] that counts neither in [Stats] nor for the eviction policy.
func (t *Typed[K, V]) Peek(key K) (v V, ok bool, err error) {
	var room [stackKey]byte
	s := scratch.Get()
	defer s.Release()
	data, ok := t.cache.Peek(s.Bytes[:0], t.key(room[:0], key))
	return t.found(s, "peek", key, data, ok)
}

// GetWithTTL is [Cache.GetWithTTL]: a [Typed.Get] that also returns the remaining time to live of
// the entry, which is 0 if it never expires, is absent, or cannot be decoded.
func (t *Typed[K, V]) GetWithTTL(key K) (v V, ttl time.Duration, ok bool, err error) {
	var room [stackKey]byte
	s := scratch.Get()
	defer s.Release()
	data, ttl, ok := t.cache.GetWithTTL(s.Bytes[:0], t.key(room[:0], key))
	if v, ok, err = t.found(s, "get", key, data, ok); !ok {
		ttl = 0
	}
	return v, ttl, ok, err
}

// found returns the result of a lookup of key into s.
func (t *Typed[K, V]) found(
	s *scratch.Buffer, verb string, key K, data []byte, ok bool,
) (v V, _ bool, err error) {
	if !ok {
		return v, false, nil
	}
	s.Bytes = data
	v, err = t.decode(verb, key, data)
	return v, err == nil, err
}

// Has is [Cache.Has]: it reports whether key is present, even if its value cannot be decoded.
func (t *Typed[K, V]) Has(key K) bool {
	var room [stackKey]byte
	return t.cache.Has(t.key(room[:0], key))
}

// TTL is [Cache.TTL]: it returns the remaining time to live of key's entry, and whether key is
// present.
func (t *Typed[K, V]) TTL(key K) (time.Duration, bool) {
	var room [stackKey]byte
	return t.cache.TTL(t.key(room[:0], key))
}

// decode returns the value whose encoding is data, a copy.
func (t *Typed[K, V]) decode(verb string, key K, data []byte) (v V, err error) {
	if v, err = t.codec.Decode(data[:len(data):len(data)]); err == nil {
		return v, nil
	}
	var zero V // even if the codec returns another value
	return zero, t.decodeError(verb, key, data, err)
}

func (t *Typed[K, V]) decodeError(verb string, key K, data []byte, err error) error {
	return fmt.Errorf("ringcache: %s entry %w", verb, t.decodeCause(key, data, err))
}

// decodeCause returns the error of an entry that cannot be decoded.
func (t *Typed[K, V]) decodeCause(key K, data []byte, err error) error {
	return fmt.Errorf("%s of %d bytes: %w: %w", t.quote(key), len(data), ErrDecode, err)
}

// quote returns a key for an error message: a number, or a quoted and truncated string.
func (t *Typed[K, V]) quote(key K) string {
	var b []byte
	switch t.kind {
	case reflect.String:
		b = bytesOf(as[string](&key))
	case reflect.Slice:
		b = as[[]byte](&key)
	default:
		n, size := t.keyInt(key)
		if t.kind <= reflect.Int64 { // the kinds of signed integers come first
			above := 64 - 8*size
			return strconv.FormatInt(int64(n<<above)>>above, 10)
		}
		return strconv.FormatUint(n, 10)
	}
	if len(b) > longestQuote {
		return strconv.Quote(string(b[:longestQuote])) + "..."
	}
	return strconv.Quote(string(b))
}

// GetBatch is [Cache.GetBatch]: it looks up keys and sets vals[i] to the value of keys[i] and
// found[i] to true, or to the zero value and false on a miss. It returns the number of values
// found. Keys may repeat. A value that cannot be decoded is not found, but all others are, and the
// error is that of the first such key, with its index. GetBatch panics if vals or found is shorter
// than keys. It does not allocate for a key, within the limits that [Typed.Set] states.
func (t *Typed[K, V]) GetBatch(keys []K, vals []V, found []bool) (hits int, err error) {
	mustFitTyped("get batch", keys, vals, found)
	var bl lookups
	b, s := blocks.Get().(*block), scratch.Get()
	defer b.release()
	defer s.Release()
	for i := 0; i < len(keys); i += batchSize {
		end := min(i+batchSize, len(keys))
		b.reset()
		for j, key := range keys[i:end] {
			b.keys[j] = b.keyRoom.took(t.keyBytes(b.keyRoom.next(), key))
		}
		out, there := t.cache.getBlock(&bl, s.Bytes[:0], b.keys[:end-i], b.vals[:end-i])
		s.Bytes = out
		t.cache.lookedFor(end-i, there)
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

// mustFitTyped panics if vals or found is shorter than keys.
func mustFitTyped[K Key, V any](verb string, keys []K, vals []V, found []bool) {
	if len(vals) < len(keys) || len(found) < len(keys) {
		panic(fmt.Sprintf("ringcache: %s: %d vals and %d found for %d keys",
			verb, len(vals), len(found), len(keys)))
	}
}

// decodeNth returns the value of a key of a batch, and the first error of the batch. data is nil on
// a miss.
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

// All returns an iterator over the entries of the view, with keys and values that the body may
// keep. It follows the rules of [Cache.All], and examines the keys of all entries of the cache. An
// entry belongs to the view if its key consists of the view's prefix and the bytes of a K, of the
// right length for an integer. Entries that cannot be decoded are skipped: they may belong to other
// users of the cache.
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

// keyBytes returns the engine's key for key, built in buf, and key the cache's: the prefix and the
// bytes of key.
func (t *Typed[K, V]) keyBytes(buf []byte, key K) []byte { return t.key(t.cache.start(buf), key) }

func (t *Typed[K, V]) key(buf []byte, key K) []byte {
	return t.bytes(append(buf, t.prefix...), key)
}

// bytes appends the bytes of key to buf. If buf is empty, the result for a string or byte slice is
// its own memory, and must not be written to.
func (t *Typed[K, V]) bytes(buf []byte, key K) []byte {
	switch t.kind {
	case reflect.String:
		return concat(buf, bytesOf(as[string](&key)))
	case reflect.Slice:
		return concat(buf, as[[]byte](&key))
	}
	n, size := t.keyInt(key)
	if size == 8 {
		return binary.BigEndian.AppendUint64(buf, n) // most are, and this is faster
	}
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	return append(buf, b[8-size:]...)
}

// concat returns buf followed by k, or k itself if buf is empty.
func concat(buf, k []byte) []byte {
	if len(buf) == 0 {
		return k
	}
	return append(buf, k...)
}

// keyOf returns the view's key for a key of the cache, in its own memory, and whether there is one.
func (t *Typed[K, V]) keyOf(raw []byte) (key K, ok bool) {
	if len(raw) < len(t.prefix) || string(raw[:len(t.prefix)]) != t.prefix {
		return key, false
	}
	return t.parseKey(raw[len(t.prefix):])
}

// parseKey returns the key with the given bytes, and whether there is one.
func (t *Typed[K, V]) parseKey(b []byte) (key K, ok bool) {
	switch t.kind {
	case reflect.String:
		put(&key, string(b))
		return key, true
	case reflect.Slice:
		put(&key, append([]byte{}, b...))
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
		put(&key, uint8(n))
	case reflect.Int16, reflect.Uint16:
		put(&key, uint16(n))
	case reflect.Int32, reflect.Uint32:
		put(&key, uint32(n))
	case reflect.Int64, reflect.Uint64:
		put(&key, n)
	default:
		put(&key, uint(n)) // an int has the same bits
	}
	back, _ := t.keyInt(key)
	return key, back == n // false where an int has 32 bits and the key needs more
}

// keyInt returns key as an integer, of which the low size bytes are stored.
func (t *Typed[K, V]) keyInt(key K) (n uint64, size int) {
	switch t.kind {
	case reflect.Int8, reflect.Uint8:
		return uint64(as[uint8](&key)), 1
	case reflect.Int16, reflect.Uint16:
		return uint64(as[uint16](&key)), 2
	case reflect.Int32, reflect.Uint32:
		return uint64(as[uint32](&key)), 4
	case reflect.Int64, reflect.Uint64:
		return as[uint64](&key), 8
	case reflect.Int:
		return uint64(as[int](&key)), 8 // sign and all, where an int has 32 bits
	default: // uint and uintptr
		return uint64(as[uint](&key)), 8
	}
}

// bytesOf returns the bytes of s without copying them. This is sound for a key: a Cache reads a key
// only while a call runs, and neither writes to it nor keeps it.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// as returns *k as a T. This is sound because the caller has checked that the underlying type of K
// is T, or an integer type of the same size: a type has the same memory layout as its underlying
// type.
func as[T any, K Key](k *K) T { return *(*T)(unsafe.Pointer(k)) }

// put sets *k to v. It is sound under the same condition as as.
func put[T any, K Key](k *K, v T) { *(*T)(unsafe.Pointer(k)) = v }
