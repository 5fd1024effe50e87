// Package cold compresses values for the cold part of a cache: it makes dictionaries, measures
// compression ratios, and derives from them which share of the memory the cold part is worth. It
// knows nothing of buckets. The Compressor, which is the user's code, is called without a lock.
package cold

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache/internal/pack"
)

// Compression is the state that the buckets of a cache with Options.Compressor share: dictionaries,
// compression ratios, and the queue of its goroutine. It holds no reference to the Cache.
type Compression struct {
	by    Compressor
	Dicts [pack.Dicts]atomic.Pointer[Dictionary]
	Share atomic.Uint64 // bits of a float64: the cold part's share of the memory
	fixed float64       // the share in tests; 0: as learned

	Buckets chan int32    // numbers of the buckets whose queues are half full
	stop    chan struct{} // closed by End
	mu      sync.Mutex    // of the file
	ended   bool

	// Used by the goroutine alone, once the cache is open.
	Classes [pack.Classes]class
	Room    []byte // for results of the Compressor, which may also use it in other ways
	total   pack.Ratio
	File    string
	id      string // of the Compressor
	foreign bool   // values found in the cache's file were packed by another Compressor

	Longest atomic.Int64 // bytes of the longest value that is unpacked
	Counts  Counts
	Nanos   atomic.Uint64 // that the goroutine has spent compressing
}

// Compressor is the user's Compressor, without its ID.
type Compressor interface {
	BuildDict(samples [][]byte) []byte
	WithDict(dict []byte) (ValueCompressor, error)
}

// ValueCompressor is the user's ValueCompressor: it compresses and decompresses single values.
type ValueCompressor interface {
	Compress(dst, src []byte) ([]byte, error)
	Decompress(dst, src []byte, size int) ([]byte, error)
}

// Counts are what compression adds to Stats.
type Counts struct {
	Packed, From, To                     atomic.Uint64 // records, and their bytes before and after
	Incompressible, Short, Failed, Wrong atomic.Uint64
}

// class is a size class of values.
type class struct {
	Dict    uint8
	next    uint8 // number of the next dictionary
	built   bool  // Dict was built from samples, if any was needed
	tried   uint64
	Ratio   pack.Ratio
	Best    float64 // best ratio of this dictionary
	Samples pack.Samples
}

// Config is what a Compression is made from.
type Config struct {
	By          Compressor
	ID          string          // of the Compressor
	WithoutDict ValueCompressor // the Compressor's, for values without a dictionary
	Share       float64         // the cold part's share of the memory; 0: as learned
	Buckets     int
	File        string   // of the dictionaries; empty: they are in memory only
	Dicts       []string // those found in File
	Foreign     bool     // there was no such file, or it is of another Compressor
}

// New returns the compression of a cache.
func New(g *Config) *Compression {
	s := &Compression{
		by:      g.By,
		id:      g.ID,
		fixed:   g.Share,
		Buckets: make(chan int32, g.Buckets),
		stop:    make(chan struct{}),
		File:    g.File,
		foreign: g.Foreign,
	}
	if pack.Control {
		s.fixed = pack.FullShare
	}
	s.Share.Store(math.Float64bits(pack.FullShare)) // until the ratio is known
	s.Dicts[0].Store(&Dictionary{values: g.WithoutDict})
	for i := range s.Classes {
		s.Classes[i].next = uint8(1 + i)
	}
	s.restore(g.Dicts)
	return s
}

// Recovers reports whether a value that another process has packed, in a record that passes its
// checksum, can be unpacked. The value may be longer than a Set accepts now.
func (s *Compression) Recovers(packed []byte) bool {
	p, _, err := pack.Parse(packed, math.MaxInt)
	if err != nil || s.foreign || !s.has(p.Dict) {
		return false
	}
	s.Allow(p.Size)
	return true
}

// Allow permits values of n bytes to be unpacked.
func (s *Compression) Allow(n int) {
	for old := s.Longest.Load(); int64(n) > old && !s.Longest.CompareAndSwap(old, int64(n)); {
		old = s.Longest.Load()
	}
}

// End ends the goroutine.
func (s *Compression) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended = true
		close(s.stop)
	}
}

// isEnded reports whether the goroutine is to end.
func (s *Compression) isEnded() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

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
	case <-s.stop:
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
	case s.fixed > 0:
		return s.fixed
	case scout:
		return pack.FullShare
	}
	return math.Float64frombits(s.Share.Load())
}

// learn counts a record of from bytes that takes to bytes in the cold part.
func (s *Compression) learn(from, to int) {
	s.total.Add(from, to)
	if s.total.IsKnown(ClassKnown) {
		s.Share.Store(math.Float64bits(pack.ShareFor(s.total.Value())))
	}
}

// Pack appends the packed form of value v of a record of n bytes to dst, or nothing if the value is
// to be left uncompressed.
func (s *Compression) Pack(dst, v []byte, n int) []byte {
	cl := &s.Classes[pack.ClassOf(len(v))]
	from, to := len(dst), n
	if s.wants(cl, v) {
		dst = s.compress(dst, cl, v)
	}
	if packed := len(dst) - from; packed > 0 {
		const longer = 4 // bytes of a long header instead of a short one
		if to = n - len(v) + packed + longer; to <= n-n/8 {
			s.Counts.Packed.Add(1)
			s.Counts.From.Add(uint64(n))
			s.Counts.To.Add(uint64(to))
		} else {
			s.Counts.Incompressible.Add(1)
			to, dst = n, dst[:from]
		}
	}
	s.learn(n, to)
	return dst
}

// wants reports whether a value is worth a try.
func (s *Compression) wants(cl *class, v []byte) bool {
	if len(v) < pack.Shortest {
		s.Counts.Short.Add(1)
		return false
	}
	cl.tried++
	known := cl.built && cl.Ratio.IsKnown(ClassKnown)
	hopeless := known && !pack.WorthTrying(cl.Ratio.Value()) && cl.tried%pack.Probe != 0
	if pack.Control || hopeless || pack.IsIncompressible(v) {
		s.Counts.Incompressible.Add(1)
		return false
	}
	worse := known && pack.IsWorse(cl.Ratio.Value(), cl.Best)
	if cl.next < pack.Dicts && (!cl.built || worse) {
		cl.Samples.Add(v)
	}
	return true
}

// ClassKnown is how many bytes of values make the ratio of a class known.
const ClassKnown = 256 << 10

// compress appends the packed form of v to dst, or nothing if the Compressor fails.
func (s *Compression) compress(dst []byte, cl *class, v []byte) []byte {
	d, from := s.Dicts[cl.Dict].Load(), len(dst)
	prefix := pack.PrefixOf(cl.Dict, v) // first, in case the Compressor changes v
	body, err := Guarded(func() ([]byte, error) { return d.values.Compress(s.Room[:0], v) })
	if err != nil || len(body) == 0 || len(body) >= len(v) {
		if err != nil || len(body) == 0 {
			s.Counts.Failed.Add(1)
		} else {
			s.Counts.Incompressible.Add(1)
		}
		cl.Ratio.Add(len(v), len(v))
		return dst
	}
	if cap(body) <= max(MostRoom, 8*len(v)) {
		s.Room = body // for the next value: a Compressor may need more room than its result takes
	}
	out := append(prefix.Append(dst), body...)
	cl.Ratio.Add(len(v), min(len(out)-from, len(v)))
	if cl.Ratio.IsKnown(ClassKnown) {
		cl.Best = max(cl.Best, cl.Ratio.Value())
	}
	return out
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

// Unpack appends the value of packed, which was compressed with d, to dst.
func (s *Compression) Unpack(dst, packed []byte, d *Dictionary) ([]byte, error) {
	p, compressed, err := pack.Parse(packed, int(s.Longest.Load()))
	if err != nil {
		return dst, err
	}
	dst = slices.Grow(dst, p.Size)
	at := len(dst)
	v, err := Guarded(func() ([]byte, error) {
		return d.values.Decompress(dst[at:at:at+p.Size], compressed, p.Size)
	})
	if err == nil && len(v) == p.Size {
		// The copy is checked, not v: a Compressor may write to v during another call.
		if out := append(dst, v...); p.Is(out[at:]) {
			return out, nil
		}
	}
	s.Counts.Wrong.Add(1)
	return dst, pack.ErrDamaged
}
