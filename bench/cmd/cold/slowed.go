package main

import (
	"time"

	"github.com/ringcache/ringcache"
)

// slowed is a Compressor that computes for a while more with each value.
type slowed struct {
	ringcache.Compressor
	by time.Duration
}

func (s slowed) WithDict(dict []byte) (ringcache.ValueCompressor, error) {
	v, err := s.Compressor.WithDict(dict)
	if err != nil || s.by == 0 {
		return v, err
	}
	return slowedValues{v, s.by}, nil
}

type slowedValues struct {
	ringcache.ValueCompressor
	by time.Duration
}

func (s slowedValues) Compress(dst, src []byte) ([]byte, error) {
	work(s.by)
	return s.ValueCompressor.Compress(dst, src)
}
