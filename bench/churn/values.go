package churn

import (
	"bytes"
	"encoding/binary"

	"github.com/ringcache/ringcache/bench/load"
	"github.com/ringcache/ringcache/bench/payload"
)

const (
	headBytes  = 8 // of a value, which tell its key and version
	bodyStarts = 4096
)

// values makes the keys and values of a run. A value is a function of its key's id and of a
// version. A longer value of the same version begins with the shorter one.
type values struct {
	pattern []byte           // what bodies are cut from
	content *payload.Payload // what bodies are made of instead, if it is not nil
	want    []byte           // a buffer
}

func newValues(largest int, kind string) (*values, error) {
	v := &values{want: make([]byte, largest)}
	if kind != "" {
		var err error
		v.content, err = payload.New(kind)
		return v, err
	}
	v.pattern = make([]byte, 0, bodyStarts+largest+8)
	for len(v.pattern) < bodyStarts+largest {
		v.pattern = binary.LittleEndian.AppendUint64(v.pattern, load.Mix(uint64(len(v.pattern))))
	}
	return v, nil
}

// key writes the key of id.
func key(dst *[KeyBytes]byte, id int) {
	binary.LittleEndian.PutUint64(dst[:], load.Mix(uint64(id)))
	binary.LittleEndian.PutUint64(dst[8:], uint64(id))
}

func head(id int, version uint32) uint64 { return load.Mix(uint64(id)<<32 | uint64(version)) }

// fill makes dst the value of a version, cut to its length.
func (v *values) fill(dst []byte, id int, version uint32) {
	h := head(id, version)
	binary.LittleEndian.PutUint64(dst, h)
	if v.content != nil {
		v.content.Fill(dst[headBytes:], h)
		return
	}
	copy(dst[headBytes:], v.pattern[load.Mix(h)%bodyStarts:])
}

// isPlausible looks at the first bytes of a value only.
func isPlausible(b []byte, id int, version uint32, size int) bool {
	return len(b) == size && binary.LittleEndian.Uint64(b) == head(id, version)
}

// compare looks at every byte: whole says that b is the value, part that it is what remains of
// it without some of its beginning.
func (v *values) compare(b []byte, id int, version uint32, size int) (whole, part bool) {
	want := v.want[:size]
	v.fill(want, id, version)
	if len(b) == size {
		return bytes.Equal(b, want), false
	}
	return false, len(b) > 0 && bytes.HasSuffix(want, b)
}
