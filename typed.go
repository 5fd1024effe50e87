package ringcache

import (
	"fmt"
	"reflect"
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
	// Prefix begins every key of the view, so that several views, or a view and
	// other users, can share a cache. It must not be the beginning of another
	// view's prefix: with "a" and "ab" the keys "bc" and "c" would be one. End it
	// with a byte that occurs nowhere else in a prefix, as in "user:". Its bytes are
	// stored with every entry, and count towards the 65,535 that a key may have.
	// Default: none.
	Prefix string
}

// Typed is a view of a [Cache] in which keys are of type K and values of type V,
// which a [Codec] turns into bytes and back. It holds no entries itself: any number
// of views, and the cache's own methods, may work on the same cache at the same
// time, and each sees what the others do. A Typed is safe for concurrent use if its
// codec is, and keeps its cache reachable. It is made by [NewTyped]; its zero value
// is of no use.
//
// What is said of the methods of Cache holds here too: entries may be dropped at
// any time to make room, and Close and Reset of the cache act on all views. No lock
// is held while a codec runs, so it may call any method of the cache.
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

// Set stores v under key, in place of an older value of key. The cache keeps
// v's encoding and nothing of v itself.
//
// It returns [ErrEncode], with the codec's own error, if the codec cannot encode
// v, and the errors of [Cache.Set]: [ErrTooLarge], [ErrNoMemory], [ErrClosed].
// Whatever the error, an older value of key is gone, so the result may be
// ignored by callers that can do without the entry.
//
// Set does not allocate by itself: it encodes into a buffer that later calls use
// again. It does allocate for more than 1 MB, and for a key that has more than 128
// bytes together with its prefix; a string or byte slice without a prefix may have
// any length. No lock is held while the codec runs; then Set locks one of 512
// buckets.
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

// Get returns the value of key and true, or the zero value and false if key is
// not there. A miss is not an error.
//
// An error means that key is there but the codec cannot decode its bytes: they were
// written in another form, by an older version of the program or by a view that
// should have had another prefix. It is [ErrDecode], with the codec's own error.
// The value is then the zero value, ok is false, and the entry stays as it is until
// it is set again: a caller that ignores the error sees a miss. In [Stats] it is a
// hit, as the bytes were found.
//
// Get does not allocate by itself, within the bounds of [Typed.Set]. It copies the
// value to a buffer that later calls use again, and locks what [Cache.Get] locks.
// No lock is held while the codec runs.
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

// Has reports whether key is there, whether or not its value can be decoded. It is
// [Cache.Has], and calls no codec.
func (t *Typed[K, V]) Has(key K) bool {
	var room [keyRoom]byte
	return t.cache.Has(t.keyBytes(room[:0], key))
}

// Del removes key and reports whether it was there. It is [Cache.Del], and
// calls no codec.
func (t *Typed[K, V]) Del(key K) bool {
	var room [keyRoom]byte
	return t.cache.Del(t.keyBytes(room[:0], key))
}
