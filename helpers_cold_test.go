package ringcache

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
)

// Compressors of tests.

// withCold returns g with a compressor, and a cold part of its full share.
func withCold(g geometry, by Compressor) geometry {
	g.compressor, g.coldShare = by, 0.5
	g.withoutDict, _ = by.WithDict(nil)
	return g
}

// compressAll does what the goroutine of a cache does that has none.
func (c *Cache) compressAll() {
	var batch coldBatch
	for i := range c.shared.buckets {
		c.buckets[i].compressQueue(&batch)
		c.renewDicts()
	}
}

// countPacked returns how many records are packed.
func (c *Cache) countPacked() (n uint64) {
	for i := range c.shared.buckets {
		b := &c.buckets[i]
		b.mu.Lock()
		for _, uses := range b.cold.uses {
			n += uint64(uses)
		}
		b.mu.Unlock()
	}
	return n
}

// flateCompressor is one of the standard library's, with a dictionary of all samples.
type flateCompressor struct{}

func (flateCompressor) ID() string { return "flate of tests" }

func (flateCompressor) BuildDict(samples [][]byte) []byte {
	dict := bytes.Join(samples, nil)
	return dict[:min(len(dict), 32<<10)]
}

func (flateCompressor) WithDict(dict []byte) (ValueCompressor, error) {
	return &flateValues{dict: dict}, nil
}

// flateValues compresses with one dictionary. Writers are large, and so used again.
type flateValues struct {
	dict    []byte
	writers sync.Pool
	readers sync.Pool
}

func (f *flateValues) Compress(dst, src []byte) ([]byte, error) {
	to := bytes.NewBuffer(dst)
	w, ok := f.writers.Get().(*flate.Writer)
	if !ok {
		w, _ = flate.NewWriterDict(nil, 1, f.dict)
	}
	w.Reset(to)
	_, err := w.Write(src)
	err = errors.Join(err, w.Close())
	f.writers.Put(w)
	return to.Bytes(), err
}

func (f *flateValues) Decompress(dst, src []byte, size int) ([]byte, error) {
	r, ok := f.readers.Get().(io.Reader)
	if !ok {
		r = flate.NewReaderDict(nil, f.dict)
	}
	if err := r.(flate.Resetter).Reset(bytes.NewReader(src), f.dict); err != nil {
		return dst, err
	}
	defer f.readers.Put(r)
	at := len(dst)
	dst = append(dst, make([]byte, size)...)
	if _, err := io.ReadFull(r, dst[at:]); err != nil {
		return dst[:at], err
	}
	if n, _ := r.Read(make([]byte, 1)); n > 0 {
		return dst[:at], fmt.Errorf("more than %d bytes", size)
	}
	return dst, nil
}

// badCompressor is flateCompressor, but one in so many calls of each function fails in one
// of all ways that there are.
type badCompressor struct {
	flateCompressor
	one int
}

func (b *badCompressor) ID() string { return "bad" }

func (b *badCompressor) fails() bool { return rand.IntN(b.one) == 0 }

func (b *badCompressor) BuildDict(samples [][]byte) []byte {
	if b.fails() {
		panic("no dictionary")
	}
	return b.flateCompressor.BuildDict(samples)
}

func (b *badCompressor) WithDict(dict []byte) (ValueCompressor, error) {
	if dict != nil && b.fails() {
		return nil, errors.New("no such dictionary")
	}
	v, err := b.flateCompressor.WithDict(dict)
	return &badValues{v, b}, err
}

type badValues struct {
	good ValueCompressor
	b    *badCompressor
}

func (v *badValues) Compress(dst, src []byte) ([]byte, error) {
	if !v.b.fails() {
		return v.good.Compress(dst, src)
	}
	switch rand.IntN(5) {
	case 0:
		panic("cannot compress")
	case 1:
		return dst, errors.New("cannot compress")
	case 2:
		return append(append(dst, src...), src...), nil // more than it was given
	case 3:
		return nil, nil
	default:
		return append(dst, src[:len(src)/2]...), nil // other bytes
	}
}

func (v *badValues) Decompress(dst, src []byte, size int) ([]byte, error) {
	if !v.b.fails() {
		return v.good.Decompress(dst, src, size)
	}
	switch rand.IntN(5) {
	case 0:
		panic("cannot decompress")
	case 1:
		return dst, errors.New("cannot decompress")
	case 2:
		return append(dst, make([]byte, size+1)...), nil
	case 3:
		return nil, nil
	default:
		return append(dst, make([]byte, size)...), nil
	}
}
