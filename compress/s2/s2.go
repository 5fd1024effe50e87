// Package s2 compresses the cold part of a ringcache with S2, an extension of Snappy, and a
// dictionary of live values (github.com/klauspost/compress/s2). Try it first: in tests, it made
// JSON and HTML of 100 bytes to 10 KB smaller by a factor of 1.3 to 3.5.
//
//	cache, err := ringcache.NewWithOptions(ringcache.Options{
//		MaxBytes:   1 << 30,
//		Compressor: s2.New(),
//	})
package s2

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/compress/internal/rawdict"
)

// New returns a Compressor for [ringcache.Options]. Several caches may share it.
func New() ringcache.Compressor { return compressor{} }

type compressor struct{}

// ID implements [ringcache.Compressor].
func (compressor) ID() string { return "s2 raw dictionary, version 1" }

// BuildDict implements [ringcache.Compressor]. It concatenates the same fraction of each sample,
// counted from its beginning, or returns nil if the samples are too short in total.
func (compressor) BuildDict(samples [][]byte) []byte { return rawdict.Build(samples) }

// WithDict implements [ringcache.Compressor].
func (compressor) WithDict(dict []byte) (ringcache.ValueCompressor, error) {
	if len(dict) == 0 {
		return withoutDict{}, nil
	}
	if len(dict) < rawdict.Least || len(dict) > rawdict.Most {
		return nil, fmt.Errorf("s2: make compressor: dictionary of %d bytes, must have %d to %d",
			len(dict), rawdict.Least, rawdict.Most)
	}
	return withDict{s2.MakeDict(dict, nil)}, nil
}

// withoutDict compresses without a dictionary.
type withoutDict struct{}

func (withoutDict) Compress(dst, src []byte) ([]byte, error) {
	return compress(dst, src, s2.Encode), nil
}

func (withoutDict) Decompress(dst, src []byte, size int) ([]byte, error) {
	return decompress(dst, src, size, s2.Decode)
}

// withDict compresses with a dictionary.
type withDict struct{ *s2.Dict }

func (d withDict) Compress(dst, src []byte) ([]byte, error) {
	return compress(dst, src, d.Encode), nil
}

func (d withDict) Decompress(dst, src []byte, size int) ([]byte, error) {
	return decompress(dst, src, size, d.Decode)
}

// compress calls encode with a destination after dst that has room for the longest possible output.
func compress(dst, src []byte, encode func(dst, src []byte) []byte) []byte {
	at, most := len(dst), s2.MaxEncodedLen(len(src))
	if cap(dst)-at < most {
		dst = append(make([]byte, 0, 2*cap(dst)+most), dst...)
	}
	return dst[:at+len(encode(dst[at:at+most], src))]
}

var errLength = errors.New("s2: decompress value: it has another length")

// decompress calls decode with a destination after dst. It does not allocate for a wrong length.
func decompress(
	dst, src []byte, size int, decode func(dst, src []byte) ([]byte, error),
) ([]byte, error) {
	if n, err := s2.DecodedLen(src); err != nil || n != size {
		return dst, errLength
	}
	at := len(dst)
	if cap(dst)-at < size {
		dst = append(make([]byte, 0, at+size), dst...)
	}
	out, err := decode(dst[at:at+size], src)
	if err != nil {
		return dst[:at], fmt.Errorf("s2: decompress value: %w", err)
	}
	return dst[:at+len(out)], nil
}
