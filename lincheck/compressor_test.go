package lincheck

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"

	"github.com/ringcache/ringcache"
)

// watched is a Compressor that counts the values that it unpacks. One in so many of its calls
// fails in one of several ways; none if that is 0.
type watched struct {
	ringcache.Compressor
	one      int
	unpacked atomic.Int64
}

var errFails = errors.New("it fails at times")

func (w *watched) fails() bool { return w.one > 0 && rand.IntN(w.one) == 0 }

func (w *watched) WithDict(dict []byte) (ringcache.ValueCompressor, error) {
	if dict != nil && w.fails() {
		return nil, errFails
	}
	v, err := w.Compressor.WithDict(dict)
	return &watchedValues{v, w}, err
}

type watchedValues struct {
	ringcache.ValueCompressor
	w *watched
}

func (v *watchedValues) Compress(dst, src []byte) ([]byte, error) {
	if !v.w.fails() {
		return v.ValueCompressor.Compress(dst, src)
	}
	return wrong(dst, len(src)/2)
}

func (v *watchedValues) Decompress(dst, src []byte, size int) ([]byte, error) {
	if v.w.fails() {
		return wrong(dst, size)
	}
	dst, err := v.ValueCompressor.Decompress(dst, src, size)
	if err == nil {
		v.w.unpacked.Add(1)
	}
	return dst, err
}

// wrong is what a call returns that fails: an error, a panic, or n other bytes.
func wrong(dst []byte, n int) ([]byte, error) {
	switch rand.IntN(3) {
	case 0:
		panic(errFails)
	case 1:
		return dst, errFails
	default:
		return append(dst, make([]byte, n)...), nil
	}
}
