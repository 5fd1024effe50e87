package ringcache

import (
	"encoding"
	"encoding/json"
	"sync"
)

// Codec turns values of type V into bytes and back, for a [Typed] view. Both methods are
// called from as many goroutines at once as use the view. There are codecs for types that
// encode themselves ([BinaryCodec]), for everything that JSON can express ([JSONCodec]), for
// plain bytes and strings ([BytesCodec], [StringCodec]), and for a pair of functions
// ([FuncCodec]).
type Codec[V any] interface {
	// Append appends the encoding of v to dst and returns the extended slice, as the built-in
	// append does. It must not keep dst. If it returns an error, nothing is stored.
	Append(dst []byte, v V) ([]byte, error)

	// Decode returns the value that data is the encoding of, or an error if it is none. It
	// must cope with any bytes: those of another program version, or of another view. data is
	// a copy in a buffer that will be used again: no part of it may stay in V or in the
	// error. Its capacity is its length.
	Decode(data []byte) (V, error)
}

// FuncCodec returns a codec that is a pair of functions, which must do what the
// methods of [Codec] do. It panics if one is nil.
func FuncCodec[V any](
	appendTo func(dst []byte, v V) ([]byte, error),
	decode func(data []byte) (V, error),
) Codec[V] {
	mustBeFunc("FuncCodec", appendTo != nil && decode != nil)
	return funcCodec[V]{appendTo, decode}
}

type funcCodec[V any] struct {
	appendTo func(dst []byte, v V) ([]byte, error)
	decode   func(data []byte) (V, error)
}

func (c funcCodec[V]) Append(dst []byte, v V) ([]byte, error) { return c.appendTo(dst, v) }
func (c funcCodec[V]) Decode(data []byte) (V, error)          { return c.decode(data) }

// StringCodec returns a codec of strings: their bytes as they are. Decode copies them, one
// allocation for each Get of a value that is not empty.
func StringCodec[V ~string]() Codec[V] { return stringCodec[V]{} }

type stringCodec[V ~string] struct{}

func (stringCodec[V]) Append(dst []byte, v V) ([]byte, error) { return append(dst, v...), nil }
func (stringCodec[V]) Decode(data []byte) (V, error)          { return V(data), nil }

// BytesCodec returns a codec of byte slices, as they are. Decode copies them, one allocation
// for each Get of a value that is not empty; [Cache.HasGet] reads into a buffer instead. A nil
// slice that was set is empty and not nil when it is read.
func BytesCodec[V ~[]byte]() Codec[V] { return bytesCodec[V]{} }

type bytesCodec[V ~[]byte] struct{}

func (bytesCodec[V]) Append(dst []byte, v V) ([]byte, error) { return append(dst, v...), nil }
func (bytesCodec[V]) Decode(data []byte) (V, error)          { return append(V{}, data...), nil }

// JSONCodec returns a codec of everything that [encoding/json] can encode, in
// its form. It allocates in both directions, as encoding/json does.
func JSONCodec[V any]() Codec[V] { return jsonCodec[V]{} }

type jsonCodec[V any] struct{}

func (jsonCodec[V]) Append(dst []byte, v V) ([]byte, error) {
	data, err := json.Marshal(v)
	return append(dst, data...), err
}

func (jsonCodec[V]) Decode(data []byte) (V, error) {
	var v V
	err := json.Unmarshal(data, &v)
	return v, err
}

// BinaryCodec returns a codec of types that encode themselves: a V or *V has the methods of
// [encoding.BinaryAppender], and a *V those of [encoding.BinaryUnmarshaler], as do
// [time.Time] and [net/netip.Addr]. P need not be given: BinaryCodec[time.Time]().
// UnmarshalBinary decodes into the zero value, and has to copy what it keeps. The codec does
// not allocate by itself. For a type that has only MarshalBinary, use [FuncCodec].
func BinaryCodec[V any, P interface {
	*V
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
}]() Codec[V] {
	return &binaryCodec[V, P]{sync.Pool{New: func() any { return P(new(V)) }}}
}

// binaryCodec calls the methods through pointers to its own values: a
// pointer to a local value would put that on the heap with every call.
type binaryCodec[V any, P interface {
	*V
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
}] struct{ values sync.Pool }

func (c *binaryCodec[V, P]) Append(dst []byte, v V) ([]byte, error) {
	p := c.values.Get().(P)
	defer c.release(p)
	*p = v
	return p.AppendBinary(dst)
}

func (c *binaryCodec[V, P]) Decode(data []byte) (V, error) {
	p := c.values.Get().(P)
	defer c.release(p)
	err := p.UnmarshalBinary(data)
	return *p, err
}

// release leaves the zero value for the next call, and nothing that would be
// shared with it.
func (c *binaryCodec[V, P]) release(p P) {
	var zero V
	*p = zero
	c.values.Put(p)
}
