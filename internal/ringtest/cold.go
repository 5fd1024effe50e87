package ringtest

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/store"
)

// Compressors of tests.

// Untold is the reason of what OnRemove is not told of.
const Untold ringcache.RemovalReason = 0

// CompressAll does what the goroutine of a cache does that has none.
func CompressAll(c *ringcache.Cache) {
	var w store.Waiting
	for i := range Shared(c).Buckets {
		CompressQueue(c, i, &w)
		RenewDicts(c)
	}
}

// CountPacked returns how many records are packed.
func CountPacked(c *ringcache.Cache) (n uint64) {
	for i := range Shared(c).Buckets {
		b := Nth(c, i)
		b.Mu.Lock()
		b.Index.Each(func(slot, _ uint64) {
			r := b.Ring(index.Ring(slot))
			if index.Ring(slot) != policy.Cold || !r.Live(slot) {
				return
			}
			if hd, ok := r.Header(index.Pos(slot)); ok && hd.Kind == record.Packed {
				n++
			}
		})
		b.Mu.Unlock()
	}
	return n
}

// SinkAll has the policy drop what it holds in small buckets, as long as there is room for it
// in the cold part, if there is one, and compresses it. It returns how many bytes of records
// went there. With -ringcache.cold it does nothing: it may be the goroutine's work.
func SinkAll(c *ringcache.Cache) (bytes int) {
	if Shared(c).Compression == nil || *ColdOn {
		return 0
	}
	var w store.Waiting
	for i := range Shared(c).Buckets {
		for n := SinkNext(c, i); n > 0; n = SinkNext(c, i) {
			bytes += n
			CompressQueue(c, i, &w)
		}
	}
	RenewDicts(c)
	return bytes
}

// SinkNext has the policy drop the oldest record of a ring of a bucket, and returns its length,
// or 0 if none can go to the cold part.
func SinkNext(c *ringcache.Cache, bucket int) (n int) {
	Change(c, bucket, func(b *store.Store) { n = b.Sink() })
	return n
}

// FlateCompressor is one of the standard library's, with a dictionary of all samples.
type FlateCompressor struct{}

// ID names it.
func (FlateCompressor) ID() string { return "flate of tests" }

// BuildDict returns some bytes of the samples.
func (FlateCompressor) BuildDict(samples [][]byte) []byte {
	dict := bytes.Join(samples, nil)
	return dict[:min(len(dict), 2<<10)]
}

// WithDict returns what compresses with a dictionary.
func (FlateCompressor) WithDict(dict []byte) (ringcache.ValueCompressor, error) {
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
		w, _ = flate.NewWriter(nil, 1)
	}
	w.Reset(to)
	_, err := w.Write(src)
	err = errors.Join(err, w.Close())
	f.writers.Put(w)
	f.mask(to.Bytes()[len(dst):])
	return to.Bytes(), err
}

// mask has the bytes b depend on the dictionary. (At the level that is fast, flate makes no
// use of one.)
func (f *flateValues) mask(b []byte) {
	for i := range b {
		if len(f.dict) > 0 {
			b[i] ^= f.dict[i%len(f.dict)]
		}
	}
}

func (f *flateValues) Decompress(dst, src []byte, size int) ([]byte, error) {
	r, ok := f.readers.Get().(io.Reader)
	if !ok {
		r = flate.NewReader(nil)
	}
	src = bytes.Clone(src)
	f.mask(src)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(src), nil); err != nil {
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

// BadCompressor is FlateCompressor, but one in so many calls of each function fails in one
// of all ways that there are. Equal calls in equal order fail in the same way.
type BadCompressor struct {
	FlateCompressor
	One   int
	draws atomic.Uint64
}

// ID names it.
func (b *BadCompressor) ID() string { return "bad" }

func (b *BadCompressor) fails() bool { return b.draw(b.One) == 0 }

// draw draws one of n numbers.
func (b *BadCompressor) draw(n int) int {
	return rand.New(rand.NewPCG(1, b.draws.Add(1))).IntN(n)
}

// BuildDict returns a dictionary, or panics.
func (b *BadCompressor) BuildDict(samples [][]byte) []byte {
	if b.fails() {
		panic("no dictionary")
	}
	return b.FlateCompressor.BuildDict(samples)
}

// WithDict returns what compresses with a dictionary, or an error.
func (b *BadCompressor) WithDict(dict []byte) (ringcache.ValueCompressor, error) {
	if dict != nil && b.fails() {
		return nil, errors.New("no such dictionary")
	}
	v, err := b.FlateCompressor.WithDict(dict)
	return &badValues{v, b}, err
}

type badValues struct {
	good ringcache.ValueCompressor
	b    *BadCompressor
}

func (v *badValues) Compress(dst, src []byte) ([]byte, error) {
	if !v.b.fails() {
		return v.good.Compress(dst, src)
	}
	switch v.b.draw(5) {
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
	switch v.b.draw(5) {
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

// CountingCompressor counts the values that come back from a Compressor.
type CountingCompressor struct {
	ringcache.Compressor
	Unpacked atomic.Uint64
}

// WithDict returns what compresses with a dictionary, and counts.
func (c *CountingCompressor) WithDict(dict []byte) (ringcache.ValueCompressor, error) {
	v, err := c.Compressor.WithDict(dict)
	return &countingValues{v, c}, err
}

type countingValues struct {
	ringcache.ValueCompressor
	c *CountingCompressor
}

func (v *countingValues) Decompress(dst, src []byte, size int) ([]byte, error) {
	dst, err := v.ValueCompressor.Decompress(dst, src, size)
	if err == nil {
		v.c.Unpacked.Add(1)
	}
	return dst, err
}

// Fill sets an entry that nobody asks for.
func (p *PackedCache) Fill(t testing.TB) {
	t.Helper()
	p.Fillers++
	require.NoError(t, p.Set(fmt.Appendf(nil, "filler %d", p.Fillers), Text(p.Fillers, p.Size)))
}

// SetPacked sets an entry by set, and has it packed by the time that it returns.
func (p *PackedCache) SetPacked(t testing.TB, k []byte, set func() error) {
	t.Helper()
	require.NoError(t, set())
	p.Sink(t, k)
	kind, in := Stored(p.Cache, k)
	require.Equal(t, [2]any{record.Packed, policy.Cold}, [2]any{kind, in}, "%s is not packed", k)
}

// Sink has the policy drop the entry of k, and compresses what was dropped.
func (p *PackedCache) Sink(t testing.TB, k []byte) {
	t.Helper()
	p.Queue(t, k)
	CompressAll(p.Cache)
}

// Queue has the policy drop the entry of k: it is in the queue then.
func (p *PackedCache) Queue(t testing.TB, k []byte) {
	t.Helper()
	_, in := Stored(p.Cache, k)
	for in < policy.Queue {
		CompressAll(p.Cache) // the queue has room
		p.Fill(t)
		_, in = Stored(p.Cache, k)
	}
	require.Equal(t, policy.Queue, in, "%s is not in the queue", k)
}

// Stored returns how the cache has a key, without a trace.
func Stored(c *ringcache.Cache, k []byte) (record.Kind, policy.Ring) {
	k, h := KeyOf(c, k)
	b := BucketOf(c, h)
	b.Mu.Lock()
	defer b.Mu.Unlock()
	var f store.Found
	if !b.Find(&f, k, h) {
		return 0, NoRing
	}
	return f.Kind.Base(), index.Ring(f.Slot)
}

// NamedCompressor has an ID of a test's.
type NamedCompressor struct {
	FlateCompressor
	Name func() string
}

// ID returns what the test says.
func (n NamedCompressor) ID() string { return n.Name() }
