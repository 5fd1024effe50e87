// Package cold compresses the cold part of a cache: dictionaries, what they bring, and the share
// of the memory that is worth it. It knows nothing of buckets. The compressor, which is code of the
// user's, is called without a lock.
package cold

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache/internal/dictfile"
	"github.com/ringcache/ringcache/internal/pack"
)

// Compression is what the buckets of a cache with Options.Compressor share: dictionaries, what
// they bring, and what its goroutine is told. It does not lead back to the Cache.
type Compression struct {
	by    Compressor
	Dicts [pack.Dicts]atomic.Pointer[Dictionary]
	Share atomic.Uint64 // bits of a float64: the cold part's share of the memory
	fixed float64       // the share in tests; 0: as learned

	Buckets chan int32    // numbers of those whose queues are half full
	stop    chan struct{} // closed by end
	mu      sync.Mutex    // of the file
	ended   bool

	// What the goroutine alone knows.
	Classes [pack.Classes]class
	Room    []byte // for what the Compressor returns, who may do with it what it likes
	total   pack.Ratio
	compare pack.Comparison // of scouts and baseline
	moved   int             // bytes of records since the share was set
	step    int             // bytes after which it is set anew
	Highest int             // number that a dictionary has had
	File    string
	id      string // of the Compressor
	foreign bool   // what the cache has found in its file was packed by another one

	Longest atomic.Int64 // bytes of the longest value that there may be
	Counts  Counts
	Nanos   atomic.Uint64 // that the goroutine has spent compressing
}

// Compressor is a Compressor of the user's, without its ID.
type Compressor interface {
	BuildDict(samples [][]byte) []byte
	WithDict(dict []byte) (ValueCompressor, error)
}

// ValueCompressor compresses and decompresses single values: a ValueCompressor of the user's.
type ValueCompressor interface {
	Compress(dst, src []byte) ([]byte, error)
	Decompress(dst, src []byte, size int) ([]byte, error)
}

// Role tells how the cold part's share of a bucket is found. Some buckets try what the others
// learn from.
type Role uint8

const (
	Follower Role = iota // its share is learned from the others
	With                 // always the full share
	Without              // always none
)

// Counts are what compression adds to Stats.
type Counts struct {
	Packed, From, To             atomic.Uint64 // records, and their bytes before and after
	Opaque, Short, Failed, Wrong atomic.Uint64
}

// class is a size class of values.
type class struct {
	Dict    uint8
	built   bool // dict is of samples
	tried   uint64
	Ratio   pack.Ratio
	Best    float64 // that it has brought
	Samples pack.Samples
}

// Config is what a Compression is made from.
type Config struct {
	By          Compressor
	ID          string          // of the Compressor
	WithoutDict ValueCompressor // what it has without a dictionary
	Share       float64         // the cold part's share of the memory; 0: as learned
	Buckets     int
	MaxBytes    int
	File        string          // of the dictionaries; empty: they are in memory only
	Dicts       []dictfile.Dict // that were found there
	Foreign     bool            // none were, or those of another Compressor
}

// New returns the compression of a cache.
func New(g *Config) *Compression {
	s := &Compression{
		by:      g.By,
		id:      g.ID,
		fixed:   g.Share,
		Buckets: make(chan int32, g.Buckets),
		stop:    make(chan struct{}),
		step:    max(g.MaxBytes/512, 1),
		File:    g.File,
		foreign: g.Foreign,
	}
	if pack.Control {
		s.fixed = pack.FullShare
	}
	s.Dicts[0].Store(&Dictionary{values: g.WithoutDict})
	s.restore(g.Dicts)
	return s
}

// Recovers reports whether a value that another process has packed, and that is whole, can be
// unpacked. It may be longer than one is that can be set now.
func (s *Compression) Recovers(packed []byte) bool {
	p, _, err := pack.Parse(packed, math.MaxInt)
	if err != nil || s.foreign || !s.has(p.Dict) {
		return false
	}
	s.Allow(p.Size)
	return true
}

// Allow has values of n bytes be unpacked.
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

// Signal tells the goroutine of a bucket.
func (s *Compression) Signal(bucket int32) bool {
	select {
	case s.Buckets <- bucket:
		return true
	default:
		return false // full: a bucket may be in it twice, told of while the goroutine was there
	}
}

// Next waits for the next bucket that the goroutine is told of. It reports false when the cache is
// closed.
func (s *Compression) Next() (bucket int32, ok bool) {
	select {
	case <-s.stop:
		return 0, false
	case bucket = <-s.Buckets:
		return bucket, true
	}
}

// NextSoon returns the next bucket that the goroutine is told of, and waits a moment for it: to
// wake a goroutine that waits for its channel costs a Set as much as many Sets.
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

// ShareFor returns the cold part's share of a bucket's memory.
func (s *Compression) ShareFor(role Role) float64 {
	switch {
	case s.fixed > 0:
		return s.fixed
	case role == With:
		return pack.FullShare
	case role == Without:
		return 0
	}
	return math.Float64frombits(s.Share.Load())
}

// learn counts a record of from bytes that takes to bytes in the cold part.
func (s *Compression) learn(from, to int) {
	s.total.Add(from, to)
	s.moved += from
}

// IsDue reports whether the share is to be set anew.
func (s *Compression) IsDue() bool { return s.moved >= s.step }

// SetShare moves the share to what the ratio is worth, a 32nd of the memory with each step,
// or to nothing if it does harm: if buckets with a cold part have had to insert more entries, under
// equal loads, than those without.
func (s *Compression) SetShare(with, without uint64) {
	s.compare.Note(with, without)
	s.moved = 0
	share := math.Float64frombits(s.Share.Load())
	want := pack.ShareFor(s.total.Value())
	if s.compare.IsHarmful() {
		want = 0
	}
	const most = 1.0 / 32
	share += min(max(want-share, -most), most)
	s.Share.Store(math.Float64bits(share))
}

// Pack appends the packed form of value v of a record of n bytes to dst, or nothing if it
// is to stay as it is.
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
			s.Counts.Opaque.Add(1)
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
	if pack.Control || hopeless || pack.IsOpaque(v) {
		s.Counts.Opaque.Add(1)
		return false
	}
	if !cl.built || known && pack.IsWorse(cl.Ratio.Value(), cl.Best) {
		cl.Samples.Add(v)
	}
	return true
}

// ClassKnown is how many bytes of values make the ratio of a class known.
const ClassKnown = 256 << 10

// compress appends the packed form of v to dst, or nothing if the Compressor fails.
func (s *Compression) compress(dst []byte, cl *class, v []byte) []byte {
	d, from := s.Dicts[cl.Dict].Load(), len(dst)
	prefix := pack.PrefixOf(cl.Dict, v) // first: the check is of what was set, whatever becomes of v
	body, err := Guarded(func() ([]byte, error) { return d.values.Compress(s.Room[:0], v) })
	if err != nil || len(body) == 0 || len(body) >= len(v) {
		if err != nil || len(body) == 0 {
			s.Counts.Failed.Add(1)
		} else {
			s.Counts.Opaque.Add(1)
		}
		cl.Ratio.Add(len(v), len(v))
		return dst
	}
	if cap(body) <= max(MostRoom, 8*len(v)) {
		s.Room = body // for the next value: a Compressor may need more than it returns
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

// Guarded calls fn, which calls the user's Compressor, and makes a panic an error.
func Guarded[T any](fn func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("compressor panicked: %v", p)
		}
	}()
	return fn()
}

// Unpack appends the value of a packed one, which d was used for, to dst.
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
		// The copy is checked: a Compressor may use v again for another call.
		if out := append(dst, v...); p.Is(out[at:]) {
			return out, nil
		}
	}
	s.Counts.Wrong.Add(1)
	return dst, pack.ErrDamaged
}
