package ringcache

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
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/testhook"
)

// Compressors of tests.

// untold is the reason of what OnRemove is not told of.
const untold RemovalReason = 0

// withCold returns g with a compressor, and a cold part of its full share.
func withCold(g geometry, by Compressor) geometry {
	g.compressor, g.coldShare = by, 0.5
	g.withoutDict, _ = by.WithDict(nil)
	g.compressorID = by.ID()
	return g
}

// compressAll does what the goroutine of a cache does that has none.
func (c *Cache) compressAll() {
	var batch store.ColdBatch
	for i := range c.shared.Buckets {
		testhook.CompressQueue(c, i, &batch)
		c.renewDicts()
	}
}

// countPacked returns how many records are packed.
func (c *Cache) countPacked() (n uint64) {
	for i := range c.shared.Buckets {
		b := &c.buckets[i]
		b.mu.Lock()
		for _, uses := range b.Cold.Uses {
			n += uint64(uses)
		}
		b.mu.Unlock()
	}
	return n
}

// sinkAll has the policy drop what it holds in small buckets, as long as there is room for it
// in the cold part, if there is one, and compresses it. It returns how many bytes of records
// went there. With -ringcache.cold it does nothing: it may be the goroutine's work.
func (c *Cache) sinkAll() (bytes int) {
	if c.shared.Compression == nil || *coldOn {
		return 0
	}
	var batch store.ColdBatch
	for i := range c.shared.Buckets {
		for n := c.sinkNext(i); n > 0; n = c.sinkNext(i) {
			bytes += n
			testhook.CompressQueue(c, i, &batch)
		}
	}
	c.renewDicts()
	return bytes
}

// sinkNext has the policy drop the oldest record of a ring of a bucket, and returns its length,
// or 0 if none can go to the cold part.
func (c *Cache) sinkNext(bucket int) (n int) {
	testhook.Change(c, bucket, func(b *store.Store) { n = sinkLocked(b) })
	return n
}

func sinkLocked(b *store.Store) int {
	b.Cold.Begun = true
	b.ShapeCold()
	for in := range b.Rings {
		for r := &b.Rings[in]; r.Size > 0; {
			hd, _ := r.Header(r.Tail)
			if hd.Dead {
				r.ReleaseDead(hd)
				continue
			}
			p, _ := b.Index.Find(b.KeyHash(r, r.Tail, hd), policy.Ring(in), r.Tail)
			if b.Demote(policy.Ring(in), p, hd) {
				return hd.Total()
			}
			break
		}
	}
	return 0
}

// flateCompressor is one of the standard library's, with a dictionary of all samples.
type flateCompressor struct{}

// ID names it.
func (flateCompressor) ID() string { return "flate of tests" }

// BuildDict returns some bytes of the samples.
func (flateCompressor) BuildDict(samples [][]byte) []byte {
	dict := bytes.Join(samples, nil)
	return dict[:min(len(dict), 2<<10)]
}

// WithDict returns what compresses with a dictionary.
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

// badCompressor is flateCompressor, but one in so many calls of each function fails in one
// of all ways that there are. Equal calls in equal order fail in the same way.
type badCompressor struct {
	flateCompressor
	one   int
	draws atomic.Uint64
}

// ID names it.
func (b *badCompressor) ID() string { return "bad" }

func (b *badCompressor) fails() bool { return b.draw(b.one) == 0 }

// draw draws one of n numbers.
func (b *badCompressor) draw(n int) int {
	return rand.New(rand.NewPCG(1, b.draws.Add(1))).IntN(n)
}

// BuildDict returns a dictionary, or panics.
func (b *badCompressor) BuildDict(samples [][]byte) []byte {
	if b.fails() {
		panic("no dictionary")
	}
	return b.flateCompressor.BuildDict(samples)
}

// WithDict returns what compresses with a dictionary, or an error.
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

// countingCompressor counts the values that come back from a Compressor.
type countingCompressor struct {
	Compressor
	unpacked atomic.Uint64
}

// WithDict returns what compresses with a dictionary, and counts.
func (c *countingCompressor) WithDict(dict []byte) (ValueCompressor, error) {
	v, err := c.Compressor.WithDict(dict)
	return &countingValues{v, c}, err
}

type countingValues struct {
	ValueCompressor
	c *countingCompressor
}

func (v *countingValues) Decompress(dst, src []byte, size int) ([]byte, error) {
	dst, err := v.ValueCompressor.Decompress(dst, src, size)
	if err == nil {
		v.c.unpacked.Add(1)
	}
	return dst, err
}

// packedCache is a cache of one bucket whose goroutine is the test.
type packedCache struct {
	*Cache
	fillers int
	size    int // of their values
	now     time.Duration
	left    []departure
}

// departure is what OnRemove was told of an entry.
type departure struct {
	k, v   string
	reason RemovalReason
}

// newPackedCache returns one, made by that Compressor and as shape says.
func newPackedCache(t testing.TB, by Compressor, shape func(g *geometry)) *packedCache {
	t.Helper()
	skipUnderRace(t)
	p := &packedCache{now: time.Minute, size: 300}
	g := withCold(tiny(1, 1024, 256), by)
	g.byHand = true
	g.now = func() time.Duration { return p.now }
	g.onRemove = func(k, v []byte, reason RemovalReason) {
		p.left = append(p.left, departure{string(k), string(v), reason})
	}
	if shape != nil {
		shape(&g)
	}
	p.Cache = mustCache(t, g)
	for range 3000 { // the first that the policy drops find no cold part yet
		p.fill(t)
		p.compressAll()
	}
	require.NotZero(t, p.Stats().Compression.Compressed)
	return p
}

// text returns a value of n bytes that can be compressed, another one for each seed.
func text(seed, n int) []byte {
	var b []byte
	for i := 0; len(b) < n; i++ {
		b = fmt.Appendf(b, `{"user":%d,"name":"somebody","visits":%d},`, seed, seed*7+i)
	}
	return b[:n]
}

// fill sets an entry that nobody asks for.
func (p *packedCache) fill(t testing.TB) {
	t.Helper()
	p.fillers++
	require.NoError(t, p.Set(fmt.Appendf(nil, "filler %d", p.fillers), text(p.fillers, p.size)))
}

// setPacked sets an entry by set, and has it packed by the time that it returns.
func (p *packedCache) setPacked(t testing.TB, k []byte, set func() error) {
	t.Helper()
	require.NoError(t, set())
	p.sink(t, k)
	kind, in := p.stored(k)
	require.Equal(t, [2]any{record.Packed, policy.Cold}, [2]any{kind, in}, "%s is not packed", k)
}

// sink has the policy drop the entry of k, and compresses what was dropped.
func (p *packedCache) sink(t testing.TB, k []byte) {
	t.Helper()
	p.queue(t, k)
	p.compressAll()
}

// queue has the policy drop the entry of k: it is in the queue then.
func (p *packedCache) queue(t testing.TB, k []byte) {
	t.Helper()
	_, in := p.stored(k)
	for in < policy.Queue {
		p.compressAll() // the queue has room
		p.fill(t)
		_, in = p.stored(k)
	}
	require.Equal(t, policy.Queue, in, "%s is not in the queue", k)
}

// noRing stands for that of a key which is not there.
const noRing = policy.Rings

// stored returns how the cache has a key, without a trace.
func (c *Cache) stored(k []byte) (record.Kind, policy.Ring) {
	h := c.shared.Hash(k)
	b := c.bucket(h)
	b.mu.Lock()
	defer b.mu.Unlock()
	var f store.Found
	if !b.Find(&f, k, h) {
		return 0, noRing
	}
	return f.Kind, index.Ring(f.Slot)
}
