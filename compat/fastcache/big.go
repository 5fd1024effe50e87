package fastcache

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"
)

// A value of SetBig is stored with a trailer, by which GetBig tells it from one of Set:
//
//	value, wholeTrailer                      if ringcache takes it as one entry
//	length, number, partsTrailer             otherwise; the value is in parts of partSize
//
// under the keys partsTrailer + number + index of the part. No two values have the same
// number, so parts never mix.
const (
	wholeTrailer = "\x00ringbig"
	partsTrailer = "\x00ringprt"

	partSize  = 1 << 20 // below what every cache takes as one entry
	maxKeyLen = chunkSize - 16 - 4 - 1
)

// buffers holds the copies that SetBig puts a trailer to.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// SetBig stores v, of any length that the cache has room for, under k. It does nothing
// if k has more than 65,515 bytes. k and v may be changed as soon as SetBig returns.
func (c *Cache) SetBig(k, v []byte) {
	c.big.sets.Add(1)
	if len(k) > maxKeyLen {
		c.big.keys.Add(1)
		return
	}
	buf := buffers.Get().(*[]byte)
	defer putBuffer(buf)
	if len(v)+len(wholeTrailer) <= c.maxWhole() {
		*buf = append(append((*buf)[:0], v...), wholeTrailer...)
		_ = c.inner.Load().Set(k, *buf)
		return
	}
	c.setParts(buf, k, v)
}

// maxWhole is the longest value that ringcache takes as one entry.
func (c *Cache) maxWhole() int { return c.capacity / 16 }

// setParts stores v in parts, and under k where they are. Parts of an older value stay
// until they are evicted.
func (c *Cache) setParts(buf *[]byte, k, v []byte) {
	inner := c.inner.Load()
	number := c.big.lastNumber.Add(1)
	for i := 0; i*partSize < len(v); i++ {
		*buf = appendPartKey((*buf)[:0], number, i)
		if inner.Set(*buf, v[i*partSize:min(len(v), (i+1)*partSize)]) != nil {
			inner.Del(k) // out of date
			return
		}
	}
	*buf = binary.BigEndian.AppendUint64((*buf)[:0], uint64(len(v)))
	*buf = binary.BigEndian.AppendUint64(*buf, number)
	*buf = append(*buf, partsTrailer...)
	_ = inner.Set(k, *buf)
}

func appendPartKey(dst []byte, number uint64, i int) []byte {
	dst = append(dst, partsTrailer...)
	dst = binary.BigEndian.AppendUint64(dst, number)
	return binary.BigEndian.AppendUint64(dst, uint64(i))
}

// GetBig appends the value that SetBig stored under k to dst and returns the result: dst
// as it is if there is none, so nil for a nil dst, as for an empty value. A value of Set
// is none. k may be changed as soon as GetBig returns.
func (c *Cache) GetBig(dst, k []byte) []byte {
	c.big.gets.Add(1)
	found, ok := c.inner.Load().HasGet(dst, k)
	if !ok {
		return dst
	}
	v := found[len(dst):]
	switch {
	case bytes.HasSuffix(v, []byte(wholeTrailer)):
		if len(v) == len(wholeTrailer) {
			return dst
		}
		return found[:len(found)-len(wholeTrailer)]
	case len(v) == 16+len(partsTrailer) && bytes.HasSuffix(v, []byte(partsTrailer)):
		// v may lie where the parts go.
		return c.getParts(dst, binary.BigEndian.Uint64(v), binary.BigEndian.Uint64(v[8:]))
	}
	c.big.kinds.Add(1)
	return dst
}

// getParts appends the parts of a value to dst. Room is made as they come, not on the
// word of length: anybody may Set what looks like a value in parts.
func (c *Cache) getParts(dst []byte, length, number uint64) []byte {
	if length > uint64(c.capacity) {
		c.big.lengths.Add(1)
		return dst
	}
	inner, out := c.inner.Load(), dst
	var key [len(partsTrailer) + 16]byte
	for i := 0; uint64(len(out)-len(dst)) < length; i++ {
		if i == 1 { // the first part was there
			out = slices.Grow(out, int(length)-partSize)
		}
		part, ok := inner.HasGet(out, appendPartKey(key[:0], number, i))
		if !ok || len(part) == len(out) {
			return dst
		}
		out = part
	}
	if uint64(len(out)-len(dst)) != length {
		c.big.lengths.Add(1)
		return dst
	}
	return out
}

// putBuffer keeps buf for another SetBig, unless it holds a lot of memory.
func putBuffer(buf *[]byte) {
	if cap(*buf) <= partSize {
		buffers.Put(buf)
	}
}
