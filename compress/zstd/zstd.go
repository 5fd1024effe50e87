// Package zstd compresses the cold part of a ringcache with Zstandard and a dictionary of live
// values (github.com/klauspost/compress/zstd, without cgo). It is meant for values of a few
// kilobytes, which it usually compresses better than package s2 does, but more slowly.
//
//	compressor, err := zstd.New()
//	...
//	cache, err := ringcache.NewWithOptions(ringcache.Options{
//		MaxBytes:   1 << 30,
//		Compressor: compressor,
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

// WithLevel sets the compression level. The default is [zstd.SpeedFastest]; each higher level
// usually takes more time and memory. Values compressed at any level can be decompressed at any
// other.
func WithLevel(level zstd.EncoderLevel) Option {
	return func(c *compressor) { c.level = level }
}

// New returns a Compressor for [ringcache.Options]. Several caches may share it. New fails if the
// level does not exist.
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

// window is the distance over which Compress finds repetitions, the dictionary included. It
// determines the memory of an encoder.
const window = 128 << 10

// ID implements [ringcache.Compressor].
func (compressor) ID() string { return "zstd raw dictionary, version 1" }

// BuildDict implements [ringcache.Compressor]. It concatenates the same fraction of each sample,
// counted from its beginning, or returns nil if the samples are too short in total.
func (compressor) BuildDict(samples [][]byte) []byte { return rawdict.Build(samples) }

// WithDict implements [ringcache.Compressor].
func (c compressor) WithDict(dict []byte) (ringcache.ValueCompressor, error) {
	encoding := []zstd.EOption{
		zstd.WithEncoderLevel(c.level),
		zstd.WithEncoderConcurrency(1), // the cache has one goroutine that compresses
		zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(window),
		zstd.WithSingleSegment(true), // the window to decode is the value, as isFrame requires
		zstd.WithZeroFrames(true),
		zstd.WithEncoderCRC(false), // the cache has a checksum
	}
	decoding := []zstd.DOption{
		zstd.WithDecoderConcurrency(0), // as many as run concurrently
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

// dictID is the number of every dictionary in a frame. Number 0 takes no byte, and the cache knows
// which dictionary a value has.
const dictID = 0

// values compresses with a dictionary, or without one.
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
	// The decoder appends no more than there is room for.
	out, err := v.decoder.DecodeAll(src, dst[at:at:at+size])
	if err != nil {
		return dst[:at], fmt.Errorf("zstd: decompress value: %w", err)
	}
	if len(out) != size {
		return dst[:at], errFrame
	}
	return dst[:at+size], nil
}

// isFrame reports whether src begins like the output of Compress for size bytes. A decoder
// allocates as much as the header of a frame says, so the header must be checked first.
func isFrame(src []byte, size int) bool {
	var h zstd.Header
	return h.Decode(src) == nil && h.SingleSegment && h.FrameContentSize == uint64(size)
}
