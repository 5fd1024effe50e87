package ringcache

import (
	"encoding/binary"
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"time"
	"unsafe"

	"github.com/ringcache/ringcache/internal/scratch"
)

// Key is what the keys of a [Typed] view may be. Their bytes in the cache are:
//
//   - of a string or byte slice, its own;
//   - of an integer of 8, 16, 32 or 64 bits, its 1, 2, 4 or 8 bytes in big-endian
//     order, a negative one in two's complement;
//   - of an int, uint or uintptr, 8 bytes of the same kind on every platform.
//
// Keys of other types have to be converted to one of these: an array like a UUID is
// sliced (id[:]).
type Key interface {
	~string | ~[]byte |
		~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// Codec encodes values of type V and decodes them again, for a [Typed] view. Package
// [github.com/ringcache/ringcache/codec] has codecs for JSON, for types that encode themselves, for
// strings and byte slices, and for a pair of functions; its Memo spares frequent hits the decoding.
// Both methods are called concurrently by the goroutines that use the view, and while no lock is
// held.
type Codec[V any] interface {
	// Append appends the encoding of v to dst and returns the extended slice, as the built-in
	// append does. It must not keep dst. If it returns an error, nothing is stored.
	Append(dst []byte, v V) ([]byte, error)

	// Decode returns the value that data is the encoding of, or an error if it is none. It must
	// cope with any bytes, such as those of another version of the program or of another view.
	// data is a copy in a buffer that will be reused: neither the value nor the error may refer
	// to it. Its capacity is its length.
	Decode(data []byte) (V, error)
}

// TypedOptions are the settings of a [Typed] view. The zero value is the default.
type TypedOptions struct {
	// Prefix begins every key of the view, so that several views, or a view and other users,
	// can share a cache or a namespace. It must not be the beginning of another view's prefix:
	// with "a" and "ab", the keys "bc" and "c" would be the same. End it with a byte that
	// occurs nowhere else in a prefix, as in "user:". Its bytes are stored with every entry,
	// and count towards the 65,535 that a key may have. Default: none.
	Prefix string
}

// Typed is a view of a [Cache] or [Namespace] with keys of type K and values of type V, which a
// [Codec] encodes. It holds no entries itself: any number of views, and the cache's own methods,
// may work on the same cache, and each sees what the others do. A Typed is safe for concurrent
// use if its codec is, and keeps its cache reachable. It is made by [NewTyped]; the zero value is
// not usable. No lock is held while a codec runs.
//
// Methods behave like the [Cache] methods of the same name. A method that stores may also return
// [ErrEncode], with the codec's own error, and one that reads [ErrDecode], with the codec's error
// and the key, cut to 64 bytes. Methods allocate where those of Cache or the codec do, and beyond
// the bounds that [Typed.Set] names.
type Typed[K Key, V any] struct {
	of    view
	codec Codec[V]
	kind  reflect.Kind
}

// NewTyped returns a view of a cache or of a namespace, for keys of type K and values of type V,
// which codec encodes. K has to be given; the other types follow from the arguments:
//
//	users := ringcache.NewTyped[uint64](cache, codec.JSON[User](),
//		ringcache.TypedOptions{Prefix: "user:"})
//
// Calls of a view of a namespace count in the statistics of the namespace too, and its Invalidate
// removes the entries of the view. NewTyped panics if of or codec is nil.
func NewTyped[K Key, V any, Of *Cache | *Namespace](
	of Of, codec Codec[V], o TypedOptions,
) *Typed[K, V] {
	if of == nil || codec == nil {
		panic("ringcache: make typed view: cache, namespace or codec is nil")
	}
	t := &Typed[K, V]{codec: codec, kind: reflect.TypeFor[K]().Kind()}
	switch of := any(of).(type) {
	case *Cache:
		t.of.cache = of
	case *Namespace:
		t.of = of.view
	}
	t.of.prefix = o.Prefix
	return t
}

// intRoom is room for the bytes of an integer key on the stack.
const intRoom = 8

// Get returns the value of key and true, or the zero value and false if key is not there. A
// miss is not an error.
//
// An error is [ErrDecode], with the key and the codec's own error: key is there but the codec
// cannot decode its bytes, which an older version of the program has written, or a view that
// should have had another prefix. The value is then the zero value, ok is false, and the entry
// stays until it is set again: a caller that ignores the error sees a miss. In [Stats] it is a
// hit.
//
// Get does not allocate by itself, within the bounds of [Typed.Set]. It copies the value to a
// buffer that later calls use again, and locks what [Cache.Get] locks.
func (t *Typed[K, V]) Get(key K) (v V, ok bool, err error) {
	var room [intRoom]byte
	s := scratch.Get()
	defer s.Release()
	data, ok := t.of.HasGet(s.Bytes[:0], t.bytes(room[:0], key))
	return t.found(s, "get", key, data, ok)
}

// Peek is [Cache.Peek]: a [Typed.Get] that counts neither in [Stats] nor when the policy decides
// what to evict.
func (t *Typed[K, V]) Peek(key K) (v V, ok bool, err error) {
	var room [intRoom]byte
	s := scratch.Get()
	defer s.Release()
	data, ok := t.of.Peek(s.Bytes[:0], t.bytes(room[:0], key))
	return t.found(s, "peek", key, data, ok)
}

// GetWithTTL is [Cache.GetWithTTL]: a [Typed.Get] that also returns how long the entry still has
// to live at most, 0 if it never expires or is not there. With [ErrDecode] the time is 0.
func (t *Typed[K, V]) GetWithTTL(key K) (v V, ttl time.Duration, ok bool, err error) {
	var room [intRoom]byte
	s := scratch.Get()
	defer s.Release()
	data, ttl, ok := t.of.GetWithTTL(s.Bytes[:0], t.bytes(room[:0], key))
	if v, ok, err = t.found(s, "get", key, data, ok); !ok {
		ttl = 0
	}
	return v, ttl, ok, err
}

// found returns what a lookup of key into s has found.
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

// Has is [Cache.Has]: it reports whether key is there, decoded or not.
func (t *Typed[K, V]) Has(key K) bool {
	var room [intRoom]byte
	return t.of.Has(t.bytes(room[:0], key))
}

// TTL is [Cache.TTL]: it returns how long the entry of key still has to live at most,
// and whether key is there.
func (t *Typed[K, V]) TTL(key K) (time.Duration, bool) {
	var room [intRoom]byte
	return t.of.TTL(t.bytes(room[:0], key))
}

// decode returns the value that data, a copy, is the encoding of.
func (t *Typed[K, V]) decode(verb string, key K, data []byte) (v V, err error) {
	if v, err = t.codec.Decode(data[:len(data):len(data)]); err == nil {
		return v, nil
	}
	var zero V // whatever the codec returns
	return zero, t.decodeError(verb, key, data, err)
}

func (t *Typed[K, V]) decodeError(verb string, key K, data []byte, err error) error {
	return fmt.Errorf("ringcache: %s entry %w", verb, t.decodeCause(key, data, err))
}

// decodeCause returns what is wrong with an entry that cannot be decoded.
func (t *Typed[K, V]) decodeCause(key K, data []byte, err error) error {
	return fmt.Errorf("%s of %d bytes: %w: %w", t.quote(key), len(data), ErrDecode, err)
}

// quote returns a key as errors name it: a number, or a string that is quoted and cut.
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
// found. Keys may repeat. A value that cannot be decoded is not found; all others are, and the
// error is that of the first such key, with its index. GetBatch panics if vals or found is
// shorter than keys. It does not allocate for a key, within the bounds of [Typed.Set].
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
		out, there := t.of.cache.getBlock(&bl, s.Bytes[:0], b.keys[:end-i], b.vals[:end-i])
		s.Bytes = out
		t.of.lookedFor(end-i, there)
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
		t.of.cache.loop(ours, withValue, func(_, data []byte) bool {
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
		t.of.cache.loop(ours, 0, func(_, _ []byte) bool { return yield(key) })
	}
}

// keyBytes returns the key that an entry has in the cache, made in buf: what keys of the view begin
// with, and the bytes of key.
func (t *Typed[K, V]) keyBytes(buf []byte, key K) []byte { return t.bytes(t.of.start(buf), key) }

// bytes appends the bytes of key to buf. If buf is empty, those of a string or byte slice are
// returned where they lie: the result must not be written to.
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

// concat returns buf and k, which is k where it lies if buf is empty.
func concat(buf, k []byte) []byte {
	if len(buf) == 0 {
		return k
	}
	return append(buf, k...)
}

// keyOf returns the key that an entry of the cache has in the view, in its own memory,
// and whether it has one.
func (t *Typed[K, V]) keyOf(raw []byte) (key K, ok bool) {
	if raw, ok = t.of.cutKey(raw); !ok {
		return key, false
	}
	return t.parseKey(raw)
}

// parseKey returns the key that has these bytes, and whether there is one.
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
	return key, back == n // not where an int has 32 bits and the key more
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

// bytesOf returns the bytes of s where they lie. It is sound for a key because a
// Cache reads a key while a call runs, and neither writes to it nor keeps it.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// as returns *k as a T. It is sound because the caller has made sure that the
// underlying type of K is T, or an integer of the same size: a type lies in
// memory as its underlying type does.
func as[T any, K Key](k *K) T { return *(*T)(unsafe.Pointer(k)) }

// put makes v the value of *k. It is sound where as is.
func put[T any, K Key](k *K, v T) { *(*T)(unsafe.Pointer(k)) = v }
