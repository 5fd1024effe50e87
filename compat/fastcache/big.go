package fastcache

import (
	"encoding/binary"
	"slices"
)

// A value of SetBig is stored in parts, as long as inner accepts: the fewer there are, the less
// often one is evicted. The entry under its key identifies them, with a trailer by which GetBig
// distinguishes it from a value of Set:
//
//	length, number, partsTrailer
//
// The keys of the parts are partsTrailer + number + index of the part. No two values have the
// same number, so parts never mix.
const (
	partsTrailer = "\x00ringprt"

	partShare = 16 // a value of inner may be 1/partShare of its bound, and nearly 4 GB
	maxPart   = 1 << 30
	maxKeyLen = chunkSize - 16 - 4 - 1
)

// SetBig stores v under k, in parts of up to 1/16 of the cache. Each may be evicted, even by later
// ones. It stores nothing if k has more than 65,515 bytes. k and v may be changed as soon as SetBig
// returns.
func (c *Cache) SetBig(k, v []byte) {
	c.big.sets.Add(1)
	if len(k) > maxKeyLen {
		c.big.keys.Add(1)
		return
	}
	inner := c.inner.Load()
	size, number := min(inner.Options().MaxBytes/partShare, maxPart), c.big.lastNumber.Add(1)
	var key [len(partsTrailer) + 16]byte
	for at := 0; at < len(v); at += size {
		part := v[at:min(len(v), at+size)]
		if inner.Set(appendPartKey(key[:0], number, at/size), part) != nil {
			inner.Del(k) // out of date
			return
		}
	}
	old, _ := inner.Peek(nil, k)
	where := binary.BigEndian.AppendUint64(make([]byte, 0, 16+len(partsTrailer)), uint64(len(v)))
	where = binary.BigEndian.AppendUint64(where, number)
	_ = inner.Set(k, append(where, partsTrailer...))
	if length, number, ok := parseWhere(old); ok && length <= uint64(c.capacity) {
		for i := range (int(length) + size - 1) / size {
			inner.Del(appendPartKey(key[:0], number, i))
		}
	}
}

// parseWhere parses what is under the key of a value in parts.
func parseWhere(v []byte) (length, number uint64, ok bool) {
	if len(v) != 16+len(partsTrailer) || string(v[16:]) != partsTrailer {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(v), binary.BigEndian.Uint64(v[8:]), true
}

func appendPartKey(dst []byte, number uint64, i int) []byte {
	dst = append(dst, partsTrailer...)
	dst = binary.BigEndian.AppendUint64(dst, number)
	return binary.BigEndian.AppendUint64(dst, uint64(i))
}

// GetBig appends the value that SetBig stored under k to dst and returns the result. If
// there is none, it returns dst unchanged, which is nil for a nil dst, as for an empty value.
// It is not for values of Set. k may be changed as soon as GetBig returns.
func (c *Cache) GetBig(dst, k []byte) []byte {
	c.big.gets.Add(1)
	found := c.inner.Load().Get(dst, k)
	for len(found) > len(dst) {
		// It may lie where the parts go.
		length, number, ok := parseWhere(found[len(dst):])
		if !ok {
			c.big.kinds.Add(1)
			return dst
		}
		if value, ok := c.getParts(dst, length, number); ok {
			return value
		}
		// SetBig may have replaced the value and removed these parts.
		found, _ = c.inner.Load().Peek(dst, k)
		if _, now, ok := parseWhere(found[len(dst):]); ok && now == number {
			return dst
		}
	}
	return dst
}

// getParts appends the parts of a value to dst. It returns false if one is missing. It allocates as
// parts are read and does not trust length, because a program may Set a value that looks like the
// entry of SetBig.
func (c *Cache) getParts(dst []byte, length, number uint64) (value []byte, ok bool) {
	if length > uint64(c.capacity) {
		c.big.lengths.Add(1)
		return dst, true
	}
	inner, out := c.inner.Load(), dst
	var key [len(partsTrailer) + 16]byte
	for i := 0; uint64(len(out)-len(dst)) < length; i++ {
		if i == 1 { // the first part was there
			out = slices.Grow(out, int(length)-(len(out)-len(dst)))
		}
		part, ok := inner.HasGet(out, appendPartKey(key[:0], number, i))
		if !ok || len(part) == len(out) {
			return dst, false
		}
		out = part
	}
	if uint64(len(out)-len(dst)) != length {
		c.big.lengths.Add(1)
		return dst, true
	}
	return out, true
}
