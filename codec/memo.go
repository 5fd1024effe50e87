package codec

import "github.com/ringcache/ringcache/internal/memo"

// Memoized is a codec that remembers the values it has decoded. It is made by [Memo]; the zero
// value is not usable. All methods are safe for concurrent use.
type Memoized[V any] struct {
	of     Codec[V]
	values *memo.Table[V]
	handle
}

// handle is how views find the table.
type handle = memo.Handle

// Memo returns a codec that encodes and decodes as c does, and remembers decoded values by their
// encoded bytes, so that frequent hits of a typed view need no decoding. No write to the cache
// makes a remembered value outdated. Get and GetOrLoad of a view often need not even read the bytes
// again. Memo is worthwhile if decoding is slower than hashing and comparing the bytes, and most
// lookups are for a few values.
//
// Callers share the remembered values: don't modify anything that a value refers to, such as the
// elements of a slice or map, nor append to a slice, not even in Update. c must decode equal bytes
// to equal values.
//
// The codec holds at most maxEntries values, whose encodings total at most maxBytes, and none whose
// encoding is longer than 1/16 of maxBytes. If the values in use keep to that, repeated lookups are
// usually hits, of 1,000 values or more about 99 %. The Go heap holds up to about 10 KB, 91 bytes
// for each of maxEntries, and for each remembered value 90 bytes, its encoding and the value itself
// (which maxBytes does not count), each rounded up by the allocator. Memo panics if c is nil,
// maxEntries is below 1, or maxBytes is below maxEntries, as when the two are swapped.
func Memo[V any](
	c interface {
		Append(dst []byte, v V) ([]byte, error)
		Decode(data []byte) (V, error)
	},
	maxEntries, maxBytes int,
) *Memoized[V] {
	if c == nil {
		panic("codec: make memo: codec is nil")
	}
	if maxEntries < 1 || maxBytes < maxEntries {
		panic("codec: make memo: maxEntries is below 1, or maxBytes below maxEntries")
	}
	m := &Memoized[V]{
		of: Func(c.Append, c.Decode), values: memo.New(c.Decode, maxEntries, maxBytes),
	}
	m.handle = memo.NewHandle(m, m.values)
	return m
}

// Append appends the encoding of v to dst and returns the extended slice. It does not remember v,
// which the caller may modify.
func (m *Memoized[V]) Append(dst []byte, v V) ([]byte, error) { return m.of.Append(dst, v) }

// Decode returns the value whose encoding is data. If the value is remembered, Decode takes no lock
// and does not allocate. Otherwise it decodes data, and may remember the value. Errors are the
// codec's, and are not remembered.
func (m *Memoized[V]) Decode(data []byte) (V, error) {
	v, _, err := m.values.Decode(data)
	return v, err
}

// MemoStats are the statistics of a [Memoized] codec.
type MemoStats struct {
	Hits    uint64 // lookups that found the value
	Misses  uint64 // lookups that did not
	Entries uint64 // remembered values
	Bytes   uint64 // of their encodings, without the values themselves
}

// Stats returns the statistics since the codec was made. It takes no lock, so the figures may be
// read at slightly different times. The cache's statistics don't include them: export them
// separately.
func (m *Memoized[V]) Stats() MemoStats {
	s := m.values.Stats()
	return MemoStats{s.Lookups - s.Misses, s.Misses, uint64(s.Entries), uint64(s.Bytes)}
}
