package ringcache

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache/internal/dictfile"
	"github.com/ringcache/ringcache/internal/pack"
)

// compression is what the buckets of a cache with Options.Compressor share: dictionaries, what
// they bring, and what its goroutine is told. It does not lead back to the Cache.
type compression struct {
	by    Compressor
	dicts [pack.Dicts]atomic.Pointer[dictionary]
	share atomic.Uint64 // bits of a float64: the cold part's share of the memory
	fixed float64       // the share in tests; 0: as learned

	buckets chan int32    // numbers of those whose queues are half full
	stop    chan struct{} // closed by end
	mu      sync.Mutex    // of the file
	ended   bool

	// What the goroutine alone knows.
	classes [pack.Classes]class
	room    []byte // for what the Compressor returns, who may do with it what it likes
	total   pack.Ratio
	compare pack.Comparison // of scouts and baseline
	moved   int             // bytes of records since the share was set
	step    int             // bytes after which it is set anew
	highest int             // number that a dictionary has had
	file    string
	id      string // of the Compressor
	foreign bool   // what the cache has found in its file was packed by another one

	longest atomic.Int64 // bytes of the longest value that there may be
	counts  compressionCounts
	nanos   atomic.Uint64 // that the goroutine has spent compressing
}

// compressionCounts are what compression adds to Stats.
type compressionCounts struct {
	packed, from, to             atomic.Uint64 // records, and their bytes before and after
	opaque, short, failed, wrong atomic.Uint64
}

// updateStats adds what was counted to a Stats.
func (s *compression) updateStats(stats *Stats) {
	to := &stats.Compression
	to.Compressed += s.counts.packed.Load()
	to.BytesBefore += s.counts.from.Load()
	to.BytesAfter += s.counts.to.Load()
	to.UncompressedNoGain += s.counts.opaque.Load()
	to.UncompressedShort += s.counts.short.Load()
	to.CompressErrors += s.counts.failed.Load()
	to.DecompressErrors += s.counts.wrong.Load()
	to.CompressTime += time.Duration(s.nanos.Load())
}

// class is a size class of values.
type class struct {
	dict    uint8
	built   bool // dict is of samples
	tried   uint64
	ratio   pack.Ratio
	best    float64 // that it has brought
	samples pack.Samples
}

// dictionary is a dictionary and a compressor that uses it.
type dictionary struct {
	bytes  []byte
	values ValueCompressor
}

// newCompression returns the compression of a cache of that geometry.
func newCompression(g *geometry) *compression {
	s := &compression{
		by:      g.compressor,
		id:      g.compressorID,
		fixed:   g.coldShare,
		buckets: make(chan int32, g.buckets),
		stop:    make(chan struct{}),
		step:    max(g.maxBytes/512, 1),
	}
	if pack.Control {
		s.fixed = pack.FullShare
	}
	s.dicts[0].Store(&dictionary{values: g.withoutDict})
	if g.file != nil {
		s.file = g.dictFile
		s.foreign = g.foreign
		s.restore(g.dicts)
	}
	return s
}

// readDicts reads the dictionaries that another process has left. There may be none, or what
// is of no use; it is an error if something else is in their place, or what cannot be read.
func (g *geometry) readDicts() error {
	if g.compressor == nil {
		return nil
	}
	id, dicts, err := dictfile.Read(g.dictFile)
	if g.foreign = err != nil || id != g.compressorID; !g.foreign {
		g.dicts = dicts
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, dictfile.ErrDamaged) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read dictionaries %s: %w", g.dictFile, err)
	}
	return nil
}

// restore opens the dictionaries that another process has left. What was compressed with
// one that cannot be opened is discarded, and so is all that another Compressor may have
// compressed.
func (s *compression) restore(dicts []dictfile.Dict) {
	for _, d := range dicts {
		if d.Number == 0 || d.Number >= pack.Dicts {
			continue
		}
		opened, err := guarded(func() (*dictionary, error) { return s.open(d.Bytes) })
		if err == nil {
			s.dicts[d.Number].Store(opened)
			s.highest = max(s.highest, int(d.Number))
		}
	}
}

// claim makes the file of dictionaries this Compressor's, when the cache has nothing any more
// that another one has packed: what is packed from now on is not foreign to the next process.
func (s *compression) claim() error {
	if !s.foreign {
		return nil
	}
	s.foreign = false
	return s.write(nil)
}

// keep writes the dictionaries and one more to the file, if there is to be one.
func (s *compression) keep(number uint8, added *dictionary) error {
	all := []dictfile.Dict{{Number: number, Bytes: added.bytes}}
	for i := 1; i < pack.Dicts; i++ {
		if d := s.dicts[i].Load(); d != nil && i != int(number) {
			all = append(all, dictfile.Dict{Number: uint8(i), Bytes: d.bytes})
		}
	}
	return s.write(all)
}

// write writes the file of dictionaries, if there is to be one. Once the cache is closed the
// file may be another's.
func (s *compression) write(all []dictfile.Dict) error {
	if s.file == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return ErrClosed
	}
	return dictfile.Write(s.file, s.id, all)
}

// recovers reports whether a value that another process has packed, and that is whole, can be
// unpacked. It may be longer than one is that can be set now.
func (s *compression) recovers(packed []byte) bool {
	p, _, err := pack.Parse(packed, math.MaxInt)
	if err != nil || s.foreign || !s.has(p.Dict) {
		return false
	}
	s.allow(p.Size)
	return true
}

// allow has values of n bytes be unpacked.
func (s *compression) allow(n int) {
	for old := s.longest.Load(); int64(n) > old && !s.longest.CompareAndSwap(old, int64(n)); {
		old = s.longest.Load()
	}
}

// has reports whether there is a dictionary of that number, or none is needed.
func (s *compression) has(number uint8) bool {
	return number < pack.Dicts && s.dicts[number].Load() != nil
}

// end ends the goroutine.
func (s *compression) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended = true
		close(s.stop)
	}
}

// isEnded reports whether the goroutine is to end.
func (s *compression) isEnded() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// signal tells the goroutine of a bucket.
func (s *compression) signal(bucket int32) bool {
	select {
	case s.buckets <- bucket:
		return true
	default:
		return false // full: a bucket may be in it twice, told of while the goroutine was there
	}
}

// nextSoon returns the next bucket that the goroutine is told of, and waits a moment for it: to
// wake a goroutine that waits for its channel costs a Set as much as many Sets.
func (s *compression) nextSoon() (bucket int32, ok bool) {
	for range looks {
		select {
		case bucket = <-s.buckets:
			return bucket, true
		default:
			time.Sleep(lookEach)
		}
	}
	return 0, false
}

// The goroutine looks so often, and after such a time again, before it waits to be woken.
const (
	looks    = 20
	lookEach = time.Millisecond
)

// shareFor returns the cold part's share of a bucket's memory.
func (s *compression) shareFor(role coldRole) float64 {
	switch {
	case s.fixed > 0:
		return s.fixed
	case role == scout:
		return pack.FullShare
	case role == baseline:
		return 0
	}
	return math.Float64frombits(s.share.Load())
}

// learn counts a record of from bytes that takes to bytes in the cold part.
func (s *compression) learn(from, to int) {
	s.total.Add(from, to)
	s.moved += from
}

// isDue reports whether the share is to be set anew.
func (s *compression) isDue() bool { return s.moved >= s.step }

// setShare moves the share to what the ratio is worth, a 32nd of the memory with each step,
// or to nothing if it does harm.
func (s *compression) setShare() {
	s.moved = 0
	share := math.Float64frombits(s.share.Load())
	want := pack.ShareFor(s.total.Value())
	if s.compare.IsHarmful() {
		want = 0
	}
	const most = 1.0 / 32
	share += min(max(want-share, -most), most)
	s.share.Store(math.Float64bits(share))
}

// pack appends the packed form of value v of a record of n bytes to dst, or nothing if it
// is to stay as it is.
func (s *compression) pack(dst, v []byte, n int) []byte {
	cl := &s.classes[pack.ClassOf(len(v))]
	from, to := len(dst), n
	if s.wants(cl, v) {
		dst = s.compress(dst, cl, v)
	}
	if packed := len(dst) - from; packed > 0 {
		const longer = 4 // bytes of a long header instead of a short one
		if to = n - len(v) + packed + longer; to <= n-n/8 {
			s.counts.packed.Add(1)
			s.counts.from.Add(uint64(n))
			s.counts.to.Add(uint64(to))
		} else {
			s.counts.opaque.Add(1)
			to, dst = n, dst[:from]
		}
	}
	s.learn(n, to)
	return dst
}

// wants reports whether a value is worth a try.
func (s *compression) wants(cl *class, v []byte) bool {
	if len(v) < pack.Shortest {
		s.counts.short.Add(1)
		return false
	}
	cl.tried++
	known := cl.built && cl.ratio.IsKnown(classKnown)
	hopeless := known && !pack.WorthTrying(cl.ratio.Value()) && cl.tried%pack.Probe != 0
	if pack.Control || hopeless || pack.IsOpaque(v) {
		s.counts.opaque.Add(1)
		return false
	}
	if !cl.built || known && pack.IsWorse(cl.ratio.Value(), cl.best) {
		cl.samples.Add(v)
	}
	return true
}

// classKnown is how many bytes of values make the ratio of a class known.
const classKnown = 256 << 10

// compress appends the packed form of v to dst, or nothing if the Compressor fails.
func (s *compression) compress(dst []byte, cl *class, v []byte) []byte {
	d, from := s.dicts[cl.dict].Load(), len(dst)
	prefix := pack.PrefixOf(cl.dict, v) // first: the check is of what was set, whatever becomes of v
	body, err := guarded(func() ([]byte, error) { return d.values.Compress(s.room[:0], v) })
	if err != nil || len(body) == 0 || len(body) >= len(v) {
		if err != nil || len(body) == 0 {
			s.counts.failed.Add(1)
		} else {
			s.counts.opaque.Add(1)
		}
		cl.ratio.Add(len(v), len(v))
		return dst
	}
	if cap(body) <= max(mostRoom, 8*len(v)) {
		s.room = body // for the next value: a Compressor may need more than it returns
	}
	out := append(prefix.Append(dst), body...)
	cl.ratio.Add(len(v), min(len(out)-from, len(v)))
	if cl.ratio.IsKnown(classKnown) {
		cl.best = max(cl.best, cl.ratio.Value())
	}
	return out
}

// mostRoom is how many bytes of a Compressor's results are kept for the next one.
const mostRoom = 1 << 20

// guarded calls fn, which calls the user's Compressor, and makes a panic an error.
func guarded[T any](fn func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("compressor panicked: %v", p)
		}
	}()
	return fn()
}

// dictOf returns the dictionary of a packed value, under the lock of its record: later,
// another one may have its number. It is never nil.
func (s *compression) dictOf(packed []byte) *dictionary {
	if len(packed) > 0 && s.has(packed[0]) {
		return s.dicts[packed[0]].Load()
	}
	return s.dicts[0].Load() // the record is damaged, as unpack will find out
}

// unpack appends the value of a packed one, which d was used for, to dst.
func (s *compression) unpack(dst, packed []byte, d *dictionary) ([]byte, error) {
	p, compressed, err := pack.Parse(packed, int(s.longest.Load()))
	if err != nil {
		return dst, err
	}
	dst = slices.Grow(dst, p.Size)
	at := len(dst)
	v, err := guarded(func() ([]byte, error) {
		return d.values.Decompress(dst[at:at:at+p.Size], compressed, p.Size)
	})
	if err == nil && len(v) == p.Size {
		// The copy is checked: a Compressor may use v again for another call.
		if out := append(dst, v...); p.Is(out[at:]) {
			return out, nil
		}
	}
	s.counts.wrong.Add(1)
	return dst, pack.ErrDamaged
}

// due returns a class that needs another dictionary and has the samples for it.
func (s *compression) due() (cl *class, ok bool) {
	for i := range s.classes {
		if s.classes[i].samples.Enough() {
			return &s.classes[i], true
		}
	}
	return nil, false
}

// renew gives a class a dictionary of its samples, with a number that none has.
func (s *compression) renew(cl *class, number uint8) error {
	samples := cl.samples.Take()
	cl.built, cl.ratio, cl.best = true, pack.Ratio{}, 0
	d, err := guarded(func() (*dictionary, error) {
		bytes := s.by.BuildDict(samples)
		switch {
		case len(bytes) == 0:
			return nil, nil
		case len(bytes) > mostDict:
			return nil, errLongDict
		}
		return s.open(bytes)
	})
	if err != nil {
		s.counts.failed.Add(1)
		return err
	}
	if d == nil {
		cl.dict = 0 // it needs none
		return nil
	}
	if err := s.keep(number, d); err != nil { // before the first value is packed with it
		s.counts.failed.Add(1)
		return err
	}
	s.dicts[number].Store(d)
	cl.dict = number
	return nil
}

// mostDict is how many bytes a dictionary may have: they are not within MaxBytes.
const mostDict = 1 << 20

// errLongDict says that BuildDict has returned more than mostDict bytes.
var errLongDict = errors.New("the dictionary is too long")

// errNoValueCompressor says that WithDict has returned neither one nor an error.
var errNoValueCompressor = errors.New("no ValueCompressor")

// open returns the dictionary with these bytes, ready for use. The file gets its own copy.
func (s *compression) open(bytes []byte) (*dictionary, error) {
	kept := slices.Clone(bytes)
	values, err := s.by.WithDict(bytes)
	if err == nil && values == nil {
		err = errNoValueCompressor
	}
	return &dictionary{kept, values}, err
}
