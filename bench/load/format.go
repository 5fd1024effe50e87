// Package load makes the keys and values of the benchmarks, and the order in
// which they are asked for. Everything is a function of small integers, so that
// a hit can be checked without remembering what was stored.
package load

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

const (
	// MaxVersions bounds the version of a value. A value that claims a higher one
	// is wrong, which is what makes a look at its first 8 bytes a real check.
	MaxVersions = 1 << 16

	maxValue   = 100_000
	bodyStarts = 4096
)

// pattern is what the bodies of values are cut from: copying is cheaper than
// computing, and the timed loops pay for it.
var pattern = makePattern()

func makePattern() []byte {
	p := make([]byte, bodyStarts+maxValue)
	for i := 0; i < len(p); i += 8 {
		binary.LittleEndian.PutUint64(p[i:], Mix(uint64(i)))
	}
	return p
}

// Format is a shape of entries. Keys have 4 or 16 bytes; values have 4, or 8 to
// 100,000.
type Format struct {
	KeySize, ValueSize int
}

// Bytes returns the bytes of one key and its value.
func (f Format) Bytes() int { return f.KeySize + f.ValueSize }

// Key writes the key of id to dst, which must have KeySize bytes. Keys of 4 bytes
// are the low bits of id, as in the reference benchmark of fastcache; longer ones
// begin with mixed bits.
func (f Format) Key(dst []byte, id uint64) {
	if f.KeySize == 4 {
		binary.LittleEndian.PutUint32(dst, uint32(id))
		return
	}
	_ = dst[15]
	binary.LittleEndian.PutUint64(dst, Mix(id))
	binary.LittleEndian.PutUint64(dst[8:], id)
}

// Value writes a value of id to dst, which must have ValueSize bytes: a head that
// tells id and version, then a body that follows from the head.
func (f Format) Value(dst []byte, id, version uint64) {
	head := tag(id) + version
	if f.ValueSize == 4 {
		binary.LittleEndian.PutUint32(dst, uint32(head))
		return
	}
	binary.LittleEndian.PutUint64(dst, head)
	copy(dst[8:], f.body(head))
}

// Plausible reports whether v may be a value of id, from its length and its first
// 8 bytes. It is the check of the timed loops.
func (f Format) Plausible(v []byte, id uint64) bool {
	_, ok := f.Version(v, id)
	return ok
}

// Version is Plausible, and returns the version that those bytes tell.
func (f Format) Version(v []byte, id uint64) (version uint64, ok bool) {
	if len(v) != f.ValueSize {
		return 0, false
	}
	version = f.version(v, id)
	return version, version < MaxVersions
}

// Verify checks every byte of v and returns its version.
func (f Format) Verify(v []byte, id uint64) (version uint64, err error) {
	if len(v) != f.ValueSize {
		return 0, fmt.Errorf("id %d: value has %d bytes, want %d", id, len(v), f.ValueSize)
	}
	version = f.version(v, id)
	if version >= MaxVersions {
		return 0, fmt.Errorf("id %d: value is not one of this key", id)
	}
	if f.ValueSize > 4 && !bytes.Equal(v[8:], f.body(tag(id)+version)) {
		return 0, fmt.Errorf("id %d: value of version %d is mixed with other bytes", id, version)
	}
	return version, nil
}

func (f Format) version(v []byte, id uint64) uint64 {
	if f.ValueSize == 4 {
		return uint64(binary.LittleEndian.Uint32(v) - uint32(tag(id)))
	}
	return binary.LittleEndian.Uint64(v) - tag(id)
}

func (f Format) body(head uint64) []byte {
	start := Mix(head) % bodyStarts
	return pattern[start:][:f.ValueSize-8]
}

// tag is the head of the first version of id's value.
func tag(id uint64) uint64 { return Mix(^id) }

// Mix spreads x over 64 bits, one to one: the finalizer of splitmix64.
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
