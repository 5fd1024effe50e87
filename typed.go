package ringcache

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"sync"
)

// Key is what the keys of a [Typed] view may be. Their bytes in the cache are:
//
//   - of a string or byte slice, its own;
//   - of an integer of 8, 16, 32 or 64 bits, its 1, 2, 4 or 8 bytes in big-endian
//     order, a negative one in two's complement;
//   - of an int, uint or uintptr, 8 bytes of the same kind on every platform.
//
// Keys of other types have to be made one of these first: an array like a UUID
// is sliced (id[:]).
type Key interface {
	~string | ~[]byte |
		~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// TypedOptions are the settings of a [Typed] view. The zero value is the
// default of each.
type TypedOptions struct {
	// Prefix begins every key of the view, so that several views, or a view and
	// other users, can share a cache. It should not itself be the beginning of
	// another view's prefix: with "a" and "ab" the keys "bc" and "c" would be
	// one. An end that occurs nowhere else in a prefix sees to that, as in
	// "user:". Its bytes are stored with every entry, and count towards the
	// 65,535 that a key may have. Default: none.
	Prefix string
}

// Typed is a view of a [Cache] in which keys are of type K and values of type
// V, which a [Codec] turns into bytes and back. It holds no entries itself: any
// number of views, and the cache's own methods, may work on the same cache at
// the same time, each seeing what the others do. A Typed is safe for concurrent
// use if its codec is, and keeps its cache reachable. It is made by [NewTyped];
// its zero value is of no use.
//
// What is said of the methods of Cache holds here too: entries may be dropped
// at any time to make room, and Close and Reset of the cache act on all views.
type Typed[K Key, V any] struct {
	cache  *Cache
	codec  Codec[V]
	prefix string
	kind   reflect.Kind
}

const (
	// keyRoom is the bytes of a key that is put together on the stack.
	keyRoom = 128

	// inPlace is the longest value that is decoded where it lies. A longer one is
	// copied first, so that no bucket stays locked while a slow codec works its
	// way through it: a large one would keep every other large Set waiting.
	inPlace = 1 << 10

	// maxScratch is the largest buffer that is kept for the next call.
	maxScratch = 64 << 10
)

// NewTyped returns a view of c for keys of type K, with values of type V in the
// form of codec. K has to be given, V follows from the codec:
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
// again. Beyond 64 KB it does, and for a key that has more than 128 bytes
// together with its prefix; a string or byte slice without a prefix may have any
// length. The codec is called while nothing is locked; then Set locks one of 512
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
// An error means that key is there but the codec cannot decode its bytes: they
// were written in another form, by an older version of the program or by a view
// that should have had another prefix. It is [ErrDecode], with the codec's own
// error. The value is then the zero value, ok is false, and the entry stays as
// it is until it is set anew: a caller that ignores the error sees a miss. In
// [Stats] it is a hit, as the bytes were found.
//
// Get does not allocate by itself, within the bounds of [Typed.Set]. A value
// of up to 1 KB is decoded where it lies, under the lock of one of 512 buckets,
// shared with other readers; a longer one is copied first, and decoded while
// nothing is locked.
func (t *Typed[K, V]) Get(key K) (v V, ok bool, err error) {
	var room [keyRoom]byte
	k := t.keyBytes(room[:0], key)
	var long *scratch
	size := 0
	ok = t.cache.View(k, func(data []byte) {
		if size = len(data); size > inPlace {
			long = scratches.Get().(*scratch)
			long.copy(data)
			return
		}
		v, err = t.codec.Decode(data[:size:size])
	})
	if long != nil {
		defer long.release()
		v, err = t.codec.Decode(long.buf[:size:size])
	}
	if err != nil {
		var zero V
		return zero, false, fmt.Errorf("ringcache: get entry of %d bytes: %w: %w", size, ErrDecode, err)
	}
	return v, ok, nil
}

// Has reports whether key is there, whether or not its value can be decoded. It
// is [Cache.Has], and calls no codec.
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

// keyBytes returns the prefix and the bytes of key, behind each other in buf.
// A string or byte slice without a prefix is returned where it lies: the result
// must not be written to.
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

// scratch is a buffer that calls use one after another.
type scratch struct{ buf []byte }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// fit makes room for n bytes in the next call that gets s. What a codec returned
// does not become the buffer itself: a careless codec may have returned bytes
// of its caller's, and they would be written to.
func (s *scratch) fit(n int) {
	if n > cap(s.buf) && n <= maxScratch {
		s.buf = make([]byte, 0, min(2*n, maxScratch))
	}
}

// copy makes data the content of s.
func (s *scratch) copy(data []byte) {
	s.fit(len(data))
	s.buf = append(s.buf[:0], data...)
}

// release hands s to the next call.
func (s *scratch) release() {
	if cap(s.buf) <= maxScratch {
		scratches.Put(s)
	}
}
