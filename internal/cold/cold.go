// Package cold compresses values for the cold part of a cache: it makes dictionaries, measures
// compression ratios, and derives from them which share of the memory the cold part is worth. It
// knows nothing of buckets. The Compressor, which is the user's code, is called without a lock.
package cold

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache/internal/sidefile"
)

// Compression is the state that the buckets of a cache with Options.Compressor share: dictionaries,
// compression ratios, and the queue of its goroutine. It holds no reference to the Cache.
type Compression struct {
	Config
	Dicts [Dicts]atomic.Pointer[ValueCompressor]
	Share atomic.Uint64 // bits of a float64: the cold part's share of the memory

	Buckets chan int32      // numbers of the buckets whose queues are half full
	life    context.Context // of the goroutine
	end     context.CancelFunc
	foreign bool // the file was missing, or another Compressor's

	// Used by the goroutine alone, once the cache is open.
	Dict    uint8  // the dictionary for the next values
	next    uint8  // number of the next dictionary
	built   bool   // Dict was built from samples, if any was needed
	tried   uint64 // values
	Ratio   Ratio  // of the values that were compressed with Dict
	Best    float64
	Samples Samples // for the next dictionary
	Room    []byte  // for results of the Compressor, which may also use it in other ways
	total   Ratio   // of all records

	longest atomic.Int64 // bytes of the longest value that was packed: none longer is unpacked
	Counts  Counts
	Nanos   atomic.Uint64 // that the goroutine has spent compressing
}

// Compressor is the user's Compressor, without its ID.
type Compressor interface {
	BuildDict(samples [][]byte) []byte
	WithDict(dict []byte) (ValueCompressor, error)
}

// ValueCompressor is the user's ValueCompressor: it compresses and decompresses single values.
type ValueCompressor = interface {
	Compress(dst, src []byte) ([]byte, error)
	Decompress(dst, src []byte, size int) ([]byte, error)
}

// Counts are what compression adds to Stats.
type Counts struct {
	Packed, From, To atomic.Uint64 // records, and their bytes before and after
	Failed, Wrong    atomic.Uint64
}

// Config is what a Compression is made from.
type Config struct {
	By          Compressor
	ID          string          // of the Compressor
	WithoutDict ValueCompressor // the Compressor's, for values without a dictionary
	Share       float64         // the cold part's share of the memory; 0: as learned
	Buckets     int
	File        *sidefile.File // of the dictionaries; nil: they are in memory only
}

// New returns the compression of a cache.
func New(g *Config) *Compression {
	s := &Compression{
		Config:  *g,
		Buckets: make(chan int32, g.Buckets),
		next:    1,
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.Share.Store(math.Float64bits(FullShare)) // until the ratio is known
	s.Dicts[0].Store(&s.WithoutDict)
	if s.File != nil {
		s.restore(s.File.Words())
	}
	return s
}

// Recovers reports whether a value that another process has packed, in a record that passes its
// checksum, can be unpacked. The value may be longer than a Set accepts now, but has at most most
// bytes.
func (s *Compression) Recovers(packed []byte, most int) bool {
	p, err := parse(packed, int64(most))
	if err != nil || s.foreign || s.Dicts[p.dict].Load() == nil {
		return false
	}
	s.allow(p.size)
	return true
}

// allow permits values of n bytes to be unpacked.
func (s *Compression) allow(n int) {
	for old := s.longest.Load(); int64(n) > old && !s.longest.CompareAndSwap(old, int64(n)); {
		old = s.longest.Load()
	}
}

// End ends the goroutine.
func (s *Compression) End() { s.end() }

// Signal gives the goroutine a bucket to work on. It reports false if the channel is full.
func (s *Compression) Signal(bucket int32) bool {
	select {
	case s.Buckets <- bucket:
		return true
	default:
		return false // possible, as a bucket may be in it twice: signalled again while being worked on
	}
}

// Next waits for the next bucket to work on. It reports false when the cache is closed.
func (s *Compression) Next() (bucket int32, ok bool) {
	select {
	case <-s.life.Done():
		return 0, false
	case bucket = <-s.Buckets:
		return bucket, true
	}
}

// NextSoon is Next, but polls the channel for a while, and reports false if no bucket comes. A Set
// that wakes a goroutine blocked on the channel takes as long as many Sets.
func (s *Compression) NextSoon() (bucket int32, ok bool) {
	for range looks {
		select {
		case bucket = <-s.Buckets:
			return bucket, true
		default:
			time.Sleep(lookEach)
		}
	}
	return 0, false
}

// Before the goroutine blocks on its channel, it polls it this many times, at this interval.
const (
	looks    = 20
	lookEach = time.Millisecond
)

// ShareOf returns the cold part's share of a bucket's memory: for a scout, from which the ratio is
// known whatever the share is, the full one.
func (s *Compression) ShareOf(scout bool) float64 {
	switch {
	case s.Config.Share > 0:
		return s.Config.Share
	case scout:
		return FullShare
	}
	return math.Float64frombits(s.Share.Load())
}

// Pack returns the packed form of value v of a record of n bytes, or nothing if the value is to be
// left uncompressed. The result is valid until the next call.
func (s *Compression) Pack(v []byte, n int) (packed []byte) {
	const longer = 4 // bytes of a long header instead of a short one
	to := n
	if s.wants(v) {
		if packed = s.compress(v); packed != nil {
			to = n - len(v) + len(packed) + longer
		}
	}
	if to > n-n/8 {
		to, packed = n, nil
	} else {
		s.Counts.Packed.Add(1)
		s.Counts.From.Add(uint64(n))
		s.Counts.To.Add(uint64(to))
	}
	if s.total.Add(n, to); s.total.IsKnown() {
		s.Share.Store(math.Float64bits(shareFor(s.total.Value())))
	}
	return packed
}

// compress returns the packed form of v, or nil if the Compressor fails.
func (s *Compression) compress(v []byte) []byte {
	var buf [MostPrefix]byte
	prefix := appendPrefix(buf[:0], s.Dict, v) // first, in case the Compressor changes v
	packed, err := Guarded(func() ([]byte, error) {
		return (*s.Dicts[s.Dict].Load()).Compress(append(s.Room[:0], prefix...), v)
	})
	if err != nil || len(packed) <= len(prefix) {
		s.Counts.Failed.Add(1)
		s.count(len(v), len(v))
		return nil
	}
	s.count(len(v), min(len(packed), len(v)))
	if cap(packed) <= max(MostRoom, 8*len(v)) {
		s.Room = packed // for the next value: a Compressor may need more room than its result takes
	}
	copy(packed, prefix) // in case the Compressor has written to it
	s.allow(len(v))
	return packed
}

// MostRoom is how many bytes of a Compressor's results are kept for the next one.
const MostRoom = 1 << 20

// Guarded calls fn, which calls the user's Compressor, and turns a panic into an error.
func Guarded[T any](fn func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("compressor panicked: %v", p)
		}
	}()
	return fn()
}

// Unpack appends the value that b is the packed form of to dst. No dictionary is ever replaced by
// another, so the caller needs no lock.
func (s *Compression) Unpack(dst, b []byte) ([]byte, error) {
	p, err := parse(b, s.longest.Load())
	if err != nil {
		return dst, err
	}
	d := s.Dicts[p.dict].Load()
	if d == nil {
		return dst, ErrDamaged
	}
	dst = slices.Grow(dst, p.size)
	at := len(dst)
	v, err := Guarded(func() ([]byte, error) {
		return (*d).Decompress(dst[at:at:at+p.size], p.compressed, p.size)
	})
	if err == nil && len(v) == p.size {
		// The copy is checked, not v: a Compressor may write to v during another call.
		if out := append(dst, v...); check(out[at:]) == p.check {
			return out, nil
		}
	}
	s.Counts.Wrong.Add(1)
	return dst, ErrDamaged
}
