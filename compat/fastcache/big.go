package fastcache

import (
	"encoding/binary"
	"slices"
)

// A value of SetBig is stored in parts of partSize, as in fastcache, so the numbers of calls and
// entries are the same. The entry under its key identifies the parts, with a trailer by which
// GetBig distinguishes it from a value of Set:
//
//	length, number, partsTrailer
//
// The keys of the parts are partsTrailer + number + index of the part. No two values have the
// same number, so parts never mix.
const (
	partsTrailer = "\x00ringprt"

	partSize  = chunkSize - 16 - 4 - 1
	maxKeyLen = chunkSize - 16 - 4 - 1
)

// SetBig stores v in parts of 64 KB under k. Each part may be evicted, even by the next ones: if
// the cache is full of small entries, GetBig may miss at once. It does nothing if k has more than
// 65,515 bytes. k and v may be changed as soon as SetBig returns.
func (c *Cache) SetBig(k, v []byte) {
	c.big.sets.Add(1)
	if len(k) > maxKeyLen {
		c.big.keys.Add(1)
		return
	}
	inner := c.inner.Load()
	number := c.big.lastNumber.Add(1)
	var key [len(partsTrailer) + 16]byte
	for i := range parts(uint64(len(v))) {
		part := v[i*partSize : min(len(v), (i+1)*partSize)]
		if inner.Set(appendPartKey(key[:0], number, i), part) != nil {
			inner.Del(k) // out of date
			return
		}
	}
	old, _ := inner.Peek(nil, k)
	where := binary.BigEndian.AppendUint64(make([]byte, 0, 16+len(partsTrailer)), uint64(len(v)))
	where = binary.BigEndian.AppendUint64(where, number)
	_ = inner.Set(k, append(where, partsTrailer...))
	if length, number, ok := parseWhere(old); ok && length <= uint64(c.capacity) {
		for i := range parts(length) {
			inner.Del(appendPartKey(key[:0], number, i))
		}
	}
}

// parts returns how many parts a value of that length has.
func parts(length uint64) int { return int((length + partSize - 1) / partSize) }

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
// It does not find values of Set. k may be changed as soon as GetBig returns.
func (c *Cache) GetBig(dst, k []byte) []byte {
	c.big.gets.Add(1)
	found := c.inner.Load().Get(dst, k)
	if len(found) == len(dst) {
		return dst
	}
	// It may lie where the parts go.
	length, number, ok := parseWhere(found[len(dst):])
	if !ok {
		c.big.kinds.Add(1)
		return dst
	}
	return c.getParts(dst, length, number)
}

// getParts appends the parts of a value to dst. It allocates as parts are read and does not
// trust length, because a program may Set a value that looks like the entry of SetBig.
func (c *Cache) getParts(dst []byte, length, number uint64) []byte {
	if length > uint64(c.capacity) {
		c.big.lengths.Add(1)
		return dst
	}
	inner, out := c.inner.Load(), dst
	var key [len(partsTrailer) + 16]byte
	for i := 0; uint64(len(out)-len(dst)) < length; i++ {
		if i == 1 { // the first part was there
			out = slices.Grow(out, int(length)-(len(out)-len(dst)))
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
