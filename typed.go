package ringcache

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"unsafe"
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

// TypedOptions are the settings of a [Typed] view. The zero value is the
// default of each.
type TypedOptions struct {
	// Prefix begins every key of the view, so that several views, or a view and other users,
	// can share a cache. It must not be the beginning of another view's prefix: with "a" and
	// "ab" the keys "bc" and "c" would be one. End it with a byte that occurs nowhere else in
	// a prefix, as in "user:". Its bytes are stored with every entry, and count towards the
	// 65,535 that a key may have. Default: none.
	Prefix string
}

// Typed is a view of a [Cache] in which keys are of type K and values of type V, which a
// [Codec] turns into bytes and back. It holds no entries itself: any number of views, and the
// cache's own methods, may work on the same cache, and each sees what the others do. A Typed
// is safe for concurrent use if its codec is, and keeps its cache reachable. It is made by
// [NewTyped]; its zero value is of no use. No lock is held while a codec runs.
type Typed[K Key, V any] struct {
	cache  *Cache
	codec  Codec[V]
	prefix string
	kind   reflect.Kind
}

// keyRoom is how long a key may be that is put together on the stack.
const keyRoom = 128

// NewTyped returns a view of c for keys of type K and values of type V, which codec
// encodes. K has to be given, V follows from the codec:
//
//	users := ringcache.NewTyped[uint64](cache, ringcache.JSONCodec[User](),
//		ringcache.TypedOptions{Prefix: "user:"})
//
// NewTyped panics if c or codec is nil.
func NewTyped[K Key, V any](c *Cache, codec Codec[V], o TypedOptions) *Typed[K, V] {
	if c == nil || codec == nil {
		panic("ringcache: make typed view: cache or codec is nil")
	}
	return &Typed[K, V]{cache: c, codec: codec, prefix: o.Prefix, kind: reflect.TypeFor[K]().Kind()}
}

// Set stores v under key, in place of an older value of key. The cache keeps v's encoding and
// nothing of v itself. It returns [ErrEncode], with the codec's own error, if the codec cannot
// encode v, and the errors of [Cache.Set]. Whatever the error, an older value of key is gone.
//
// Set does not allocate by itself: it encodes into a buffer that later calls use again. It
// does allocate for more than 1 MB, and for a key that has more than 128 bytes together with
// its prefix; a string or byte slice without a prefix may have any length.
func (t *Typed[K, V]) Set(key K, v V) error {
	var room [keyRoom]byte
	k := t.keyBytes(room[:0], key)
	s := scratches.Get().(*scratch)
	defer s.release()
	data, err := t.codec.Append(s.buf[:0], v)
	if err != nil {
		t.cache.Del(k)
		return fmt.Errorf("ringcache: set entry: %w: %w", ErrEncode, err)
	}
	s.fit(len(data))
	return t.cache.Set(k, data)
}

// Get returns the value of key and true, or the zero value and false if key is not there. A
// miss is not an error.
//
// An error is [ErrDecode], with the codec's own error: key is there but the codec cannot
// decode its bytes, which an older version of the program has written, or a view that should
// have had another prefix. The value is then the zero value, ok is false, and the entry stays
// until it is set again: a caller that ignores the error sees a miss. In [Stats] it is a hit.
//
// Get does not allocate by itself, within the bounds of [Typed.Set]. It copies the value to a
// buffer that later calls use again, and locks what [Cache.Get] locks.
func (t *Typed[K, V]) Get(key K) (v V, ok bool, err error) {
	var room [keyRoom]byte
	k := t.keyBytes(room[:0], key)
	s := scratches.Get().(*scratch)
	defer s.release()
	data, ok := t.cache.HasGet(s.buf[:0], k)
	if !ok {
		return v, false, nil
	}
	s.buf = data
	if v, err = t.codec.Decode(data[:len(data):len(data)]); err != nil {
		var zero V
		err = fmt.Errorf("ringcache: get entry of %d bytes: %w: %w", len(data), ErrDecode, err)
		return zero, false, err
	}
	return v, true, nil
}

// Has is [Cache.Has]: it reports whether key is there, decoded or not.
func (t *Typed[K, V]) Has(key K) bool {
	var room [keyRoom]byte
	return t.cache.Has(t.keyBytes(room[:0], key))
}

// Del is [Cache.Del]: it removes key and reports whether it was there.
func (t *Typed[K, V]) Del(key K) bool {
	var room [keyRoom]byte
	return t.cache.Del(t.keyBytes(room[:0], key))
}

// keyBytes returns the prefix and the bytes of key, one behind the other in buf. A
// string or byte slice without a prefix is returned where it lies: the result must
// not be written to.
func (t *Typed[K, V]) keyBytes(buf []byte, key K) []byte {
	switch t.kind {
	case reflect.String:
		return t.join(buf, bytesOf(as[string](&key)))
	case reflect.Slice:
		return t.join(buf, as[[]byte](&key))
	}
	n, size := t.keyInt(key)
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	return append(append(buf, t.prefix...), b[8-size:]...)
}

// join returns the prefix and k, in buf if there is a prefix.
func (t *Typed[K, V]) join(buf, k []byte) []byte {
	if t.prefix == "" {
		return k
	}
	return append(append(buf, t.prefix...), k...)
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
