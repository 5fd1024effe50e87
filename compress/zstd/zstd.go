// Package zstd compresses the cold part of a ringcache with Zstandard and a dictionary of
// live values (github.com/klauspost/compress/zstd, in Go alone). It is for values of some
// KB, which it makes smaller than package s2 does, in three to seven times the time.
//
//	by, err := zstd.New()
//	...
//	cache, err := ringcache.NewWithOptions(ringcache.Options{
//		MaxBytes:   1 << 30,
//		Compressor: by,
//	})
package zstd

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/compress/internal/rawdict"
)

// Option is an option of [New].
type Option func(*compressor)

// WithLevel sets how hard Compress tries. The default is [zstd.SpeedFastest]; each level
// above takes more time and memory. Decompress takes what any level has compressed.
func WithLevel(level zstd.EncoderLevel) Option {
	return func(c *compressor) { c.level = level }
}

// New returns a Compressor for [ringcache.Options]. It may serve several caches. It fails
// if there is no such level.
func New(options ...Option) (ringcache.Compressor, error) {
	c := compressor{level: zstd.SpeedFastest}
	for _, set := range options {
		set(&c)
	}
	if _, err := c.WithDict(nil); err != nil {
		return nil, err
	}
	return c, nil
}

type compressor struct{ level zstd.EncoderLevel }

// window is how far back Compress looks, the dictionary included. It is what decides on the
// memory of an encoder.
const window = 128 << 10

// ID implements [ringcache.Compressor].
func (compressor) ID() string { return "zstd raw dictionary, version 1" }

// BuildDict returns the same part of each sample, from its beginning, one behind the other,
// or nil if there is too little.
func (compressor) BuildDict(samples [][]byte) []byte { return rawdict.Build(samples) }

// WithDict implements [ringcache.Compressor].
func (c compressor) WithDict(dict []byte) (ringcache.ValueCompressor, error) {
	encoding := []zstd.EOption{
		zstd.WithEncoderLevel(c.level),
		zstd.WithEncoderConcurrency(1), // the cache has one goroutine that compresses
		zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(window),
		zstd.WithSingleSegment(true), // the window to decode is the value, as isFrame wants
		zstd.WithZeroFrames(true),
		zstd.WithEncoderCRC(false), // the cache has a checksum
	}
	decoding := []zstd.DOption{
		zstd.WithDecoderConcurrency(0), // as many as run at once
		zstd.WithDecoderLowmem(true),
		zstd.WithDecodeAllCapLimit(true),
	}
	if len(dict) > 0 {
		if len(dict) < rawdict.Least || len(dict) > rawdict.Most {
			return nil, fmt.Errorf("zstd: make compressor: dictionary of %d bytes, must have %d to %d",
				len(dict), rawdict.Least, rawdict.Most)
		}
		encoding = append(encoding, zstd.WithEncoderDictRaw(dictID, dict))
		decoding = append(decoding, zstd.WithDecoderDictRaw(dictID, dict))
	}
	encoder, err := zstd.NewWriter(nil, encoding...)
	if err != nil {
		return nil, fmt.Errorf("zstd: make encoder: %w", err)
	}
	decoder, err := zstd.NewReader(nil, decoding...)
	if err != nil {
		return nil, fmt.Errorf("zstd: make decoder: %w", err)
	}
	return &values{encoder, decoder}, nil
}

// dictID is the number of every dictionary in a frame. That of none takes no byte, and the
// cache knows which dictionary a value has.
const dictID = 0

// values compresses with a dictionary, or with none.
type values struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// Compress implements [ringcache.ValueCompressor]. One call runs at a time, others wait.
func (v *values) Compress(dst, src []byte) ([]byte, error) {
	return v.encoder.EncodeAll(src, dst), nil
}

var errFrame = errors.New("zstd: decompress value: it has another length, or is damaged")

// Decompress implements [ringcache.ValueCompressor].
func (v *values) Decompress(dst, src []byte, size int) ([]byte, error) {
	if !isFrame(src, size) {
		return dst, errFrame
	}
	at := len(dst)
	if cap(dst)-at < size {
		dst = append(make([]byte, 0, at+size), dst...)
	}
	// The decoder appends no more than what there is room for.
	out, err := v.decoder.DecodeAll(src, dst[at:at:at+size])
	if err != nil {
		return dst[:at], fmt.Errorf("zstd: decompress value: %w", err)
	}
	if len(out) != size {
		return dst[:at], errFrame
	}
	return dst[:at+size], nil
}

// isFrame reports whether src begins as what Compress makes of size bytes. A decoder
// allocates for what the header of a frame says, so it must say what is right.
func isFrame(src []byte, size int) bool {
	var h zstd.Header
	return h.Decode(src) == nil && h.SingleSegment && h.FrameContentSize == uint64(size)
}
