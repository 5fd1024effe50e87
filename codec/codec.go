// Package codec provides codecs for the values of typed views of a cache:
//
//	users := ringcache.NewTyped[uint64](cache, codec.JSON[User](), ringcache.TypedOptions{})
//
// [Binary] is for types that encode themselves, [JSON] for everything that JSON can express,
// [String] and [Bytes] for plain text and bytes, and [Func] for a pair of functions. Any other type
// with the methods of [github.com/ringcache/ringcache.Codec] is a codec as well. [Memo] wraps a
// codec and remembers decoded values, so that frequent hits need no decoding.
package codec

import (
	"encoding"
	"encoding/json"
	"sync"
)

// Codec encodes and decodes values of type V. It implements [github.com/ringcache/ringcache.Codec],
// which states the rules for both methods. It is safe for concurrent use, and is made by the
// functions of this package; the methods of the zero value panic.
type Codec[V any] struct {
	appendTo func(dst []byte, v V) ([]byte, error)
	decode   func(data []byte) (V, error)
}

// Append appends the encoding of v to dst and returns the extended slice.
func (c Codec[V]) Append(dst []byte, v V) ([]byte, error) { return c.appendTo(dst, v) }

// Decode returns the value whose encoding is data. The value shares no memory with data.
func (c Codec[V]) Decode(data []byte) (V, error) { return c.decode(data) }

// Func returns a codec that calls the two functions, which must follow the rules for the methods of
// [github.com/ringcache/ringcache.Codec]. It panics if either is nil.
func Func[V any](
	appendTo func(dst []byte, v V) ([]byte, error),
	decode func(data []byte) (V, error),
) Codec[V] {
	if appendTo == nil || decode == nil {
		panic("codec: make codec: function is nil")
	}
	return Codec[V]{appendTo, decode}
}

// String returns a codec that stores the bytes of strings unchanged. Decode copies them, with at
// most one allocation.
func String[V ~string]() Codec[V] {
	return Codec[V]{
		appendTo: func(dst []byte, v V) ([]byte, error) { return append(dst, v...), nil },
		decode:   func(data []byte) (V, error) { return V(data), nil },
	}
}

// Bytes returns a codec that stores byte slices unchanged. Decode copies them, with one allocation
// unless the slice is empty; to read into a buffer, use HasGet of the cache. A nil slice becomes an
// empty slice that is not nil.
func Bytes[V ~[]byte]() Codec[V] {
	return Codec[V]{
		appendTo: func(dst []byte, v V) ([]byte, error) { return append(dst, v...), nil },
		decode:   func(data []byte) (V, error) { return append(V{}, data...), nil },
	}
}

// JSON returns a codec that encodes and decodes values with [encoding/json]. Both methods usually
// allocate, as that package does.
func JSON[V any]() Codec[V] {
	return Codec[V]{
		appendTo: func(dst []byte, v V) ([]byte, error) {
			data, err := json.Marshal(v)
			return append(dst, data...), err
		},
		decode: func(data []byte) (v V, err error) {
			err = json.Unmarshal(data, &v)
			return v, err
		},
	}
}

// Binary returns a codec for types that encode themselves, such as [time.Time] and
// [net/netip.Addr]: V or *V implements [encoding.BinaryAppender], and *V
// [encoding.BinaryUnmarshaler]. P is inferred: Binary[time.Time](). UnmarshalBinary is called on a
// zero value and must copy the data that it keeps. The codec itself rarely allocates. For a type
// that has only MarshalBinary, use [Func].
func Binary[V any, P interface {
	*V
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
}]() Codec[V] {
	// The methods are called through pointers to values of the pool: taking a pointer to a local
	// variable would allocate the variable on the heap in every call.
	pool := sync.Pool{New: func() any { return P(new(V)) }}
	release := func(p P) {
		var zero V // the next call starts from it, and shares nothing with this one
		*p = zero
		pool.Put(p)
	}
	return Codec[V]{
		appendTo: func(dst []byte, v V) ([]byte, error) {
			p := pool.Get().(P)
			defer release(p)
			*p = v
			return p.AppendBinary(dst)
		},
		decode: func(data []byte) (V, error) {
			p := pool.Get().(P)
			defer release(p)
			err := p.UnmarshalBinary(data)
			return *p, err
		},
	}
}
