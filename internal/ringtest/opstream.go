package ringtest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/store"
)

// Op is one operation of a stream. It is decoded from OpSize bytes. Any bytes make an operation, so
// a fuzzer can write streams too.
type Op struct {
	Kind  opKind
	ID    uint32 // of the key
	Class byte   // of the value's size
	flags byte   // selects a variant of the operation
	Arg   uint16 // selects a size within the class
}

// OpSize is the number of bytes that an Op is decoded from.
const OpSize = 7

type opKind byte

const (
	OpSet opKind = iota
	opSetSame
	opSetOversize
	opGet
	opHasGet
	opHas
	opGetBatch
	opView
	opDel
	opReset
	opLen
	opStats
	opSetWithTTL
	opTouch
	opTTL
	opDeleteExpired
	opWait
	opSetIfAbsent
	opSetIfChanged
	opCompareAndSwap
	opUpdate
	opAppend
	opGetAndDel
	opAll
	opSetBatch
	opGetOrLoad
	opResize
)

var opNames = [...]string{
	"Set", "SetSameSize", "SetOversize", "Get", "HasGet", "Has", "GetBatch", "View", "Del",
	"Reset", "Len", "UpdateStats", "SetWithTTL", "Touch", "TTL", "DeleteExpired", "(wait)",
	"SetIfAbsent", "SetIfChanged", "CompareAndSwap", "Update", "Append", "GetAndDel", "All",
	"SetBatch", "GetOrLoad", "Resize",
}

// opShares are the shares of the operations in a random stream, of 256.
var opShares = [...]struct {
	kind  opKind
	share int
}{
	{opReset, 1}, {opLen, 2}, {opStats, 3}, {opSetOversize, 4}, {opDel, 8}, {opView, 10},
	{opHas, 10}, {opGetBatch, 10}, {opHasGet, 22}, {opGet, 20}, {opSetSame, 20}, {OpSet, 49},
	{opSetWithTTL, 21}, {opTouch, 8}, {opTTL, 6}, {opDeleteExpired, 1}, {opWait, 6},
	{opSetIfAbsent, 7}, {opSetIfChanged, 7}, {opCompareAndSwap, 7}, {opUpdate, 6}, {opAppend, 4},
	{opGetAndDel, 4},
	{opAll, 1}, {opSetBatch, 8}, {opGetOrLoad, 10}, {opResize, 1},
}

func decodeOp(b []byte) Op {
	o := Op{Class: b[3], flags: b[4], Arg: binary.LittleEndian.Uint16(b[5:])}
	at := int(b[0])
	for _, s := range opShares {
		if at -= s.share; at < 0 {
			o.Kind = s.kind
			break
		}
	}
	if o.Kind == opReset && o.Arg%16 != 0 {
		o.Kind = opLen // a cache that is emptied too often never evicts
	}
	// Few keys often, many keys seldom.
	o.ID = uint32(binary.LittleEndian.Uint16(b[1:])) >> (4 * (o.flags & 3))
	return o
}

// Runner applies operations to a cache and to a model of it, and compares the two.
type Runner struct {
	C       *ringcache.Cache
	G       Shape
	Bound   int // the cache's current bound
	model   refModel[uint32, Stamp]
	version uint64
	key     []byte
	val     []byte
	dst     []byte

	Steps, Hits, misses int
	negativeHits        int
	lockFree            int // lookups that were checked to take no lock
	recent              [24]Op
	current             Op

	Life
}

// NewRunner returns a Runner for a new cache with its own clock. If told, the cache has an
// OnRemove, and its reports are checked too.
func NewRunner(t testing.TB, g Shape, told bool) *Runner {
	r := &Runner{Bound: g.MaxBytes, Life: NewLife(told)}
	g.Elapsed = r.clock
	if told {
		g.OnRemove = r.departed
	}
	r.G, r.idle = g, g.ExpireAfterAccess
	r.C = MustCache(t, g)
	return r
}

// maxValue returns the length of the longest value that Set must accept.
func (r *Runner) maxValue() int { return r.Bound / 16 }

// Run applies the operations in data. It returns an error for the first answer that is wrong.
func (r *Runner) Run(data []byte) error {
	for ; len(data) >= OpSize; data = data[OpSize:] {
		o := decodeOp(data)
		r.recent[r.Steps%len(r.recent)] = o
		r.Steps++
		r.current = o
		clear(r.dropped)
		if err := errors.Join(r.stepLockFree(o), r.complaint, r.WithinBound()); err != nil {
			return fmt.Errorf("operation %d: %s of key %d: %w", r.Steps, opNames[o.Kind], o.ID, err)
		}
	}
	return nil
}

// stepLockFree is Step, and checks that lookups take no lock. They need none, since nothing writes
// meanwhile; only a key that may be in a large bucket too is looked up under the lock.
func (r *Runner) stepLockFree(o Op) error {
	switch o.Kind {
	case opGet, opHasGet, opHas, opView:
	default:
		return r.Step(o)
	}
	k, s := r.KeyOf(o.ID), Shared(r.C)
	if len(k) == 0 || s.LargeKeysOf(s.HashOf(k, record.Value)).Load() != 0 {
		return r.Step(o) // an empty key may seem to overlap dst
	}
	before, renewals := Counters(r.C).Sum().Locked, r.renewals
	err := r.Step(o)
	locked := Counters(r.C).Sum().Locked != before
	if locked && (s.Compression != nil || r.renewals != renewals) {
		return err // the key is in the cold part, or a goroutine writes, or the lookup itself
	}
	if r.lockFree++; locked {
		return errors.Join(err, errors.New("the lookup took the lock"))
	}
	return err
}

// Step does one operation.
func (r *Runner) Step(o Op) error {
	if r.G.ByHand && o.Arg%16 == 0 {
		CompressAll(r.C)
	}
	switch o.Kind {
	case opGet, opHasGet, opHas, opView, opGetBatch:
		r.reading = true
		defer r.endReading()
	}
	switch o.Kind {
	case OpSet:
		return r.set(o, r.sizeOf(o))
	case opSetWithTTL:
		return r.setWithTTL(o)
	case opSetSame:
		size := r.sizeOf(o)
		if held := r.model.Candidates(o.ID); len(held) > 0 {
			size = min(held[0].Size, r.maxValue()) // it may be of a larger cache
		}
		return r.set(o, size)
	case opSetOversize:
		return r.setOversize(o)
	case opGet, opHasGet:
		return r.get(o)
	case opHas:
		if o.flags&4 != 0 {
			return r.peek(o)
		}
		return r.has(o.ID)
	case opGetBatch:
		return r.getBatch(o)
	case opView:
		return r.view(o)
	case opDel:
		known := r.before(o.ID)
		err := r.answered(known, r.C.Del(r.KeyOf(o.ID)))
		r.forget(o.ID)
		return err
	case opReset:
		r.C.Reset()
		r.model.Reset()
		clear(r.Deadlines)
		clear(r.lapsed)
		clear(r.negatives)
		return r.gauges()
	case opLen, opStats:
		return r.gauges()
	case opAll:
		return r.all()
	case opSetBatch:
		return r.setBatch(o)
	case opResize:
		return r.resize(o)
	default:
		return r.stepOfLife(o)
	}
}

// sizeOf returns the length of the value that o sets. Most are small, many are near the size of a
// chunk, and some are the longest that the cache accepts.
func (r *Runner) sizeOf(o Op) int {
	arg := int(o.Arg)
	var size int
	switch class := o.Class % 32; {
	case class < 3:
		size = 0
	case class < 14:
		size = arg % 32
	case class < 22:
		size = arg % 300
	case class < 28: // around one, two or three chunks
		size = (1+arg%3)*r.G.ChunkSize + arg/3%48 - 40
	case class < 31:
		size = arg * 4
	default:
		return r.maxValue() - arg%2
	}
	return min(size, r.maxValue())
}

// KeyOf returns the key with that id. It begins with the 4 bytes of the id, and may be longer than
// a chunk. The key of id 0 is empty.
func (r *Runner) KeyOf(id uint32) []byte {
	if id == 0 && r.Steps%2 == 0 {
		return nil
	}
	r.key = r.makeKey(r.key, id)
	return r.key
}

// makeKey is KeyOf with a buffer.
func (r *Runner) makeKey(buf []byte, id uint32) []byte {
	if id == 0 {
		return buf[:0]
	}
	size := 0
	switch id % 8 {
	case 5:
		size = int(id) % 80 // around the longest key of a short header
	case 6:
		size = 256 + int(id)%64
	case 7:
		size = r.G.ChunkSize + int(id)%16
	}
	size = min(max(size, 4), max(4, r.G.MaxBytes/16/4)) // the same after a Resize
	key := Stamp{ID: id, Size: size}.filled(buf, math.MaxUint64)
	binary.LittleEndian.PutUint32(key, id)
	return key
}

// newValue returns a value of a new version, which was never set before.
func (r *Runner) newValue(o Op, size int) (Stamp, []byte) {
	r.version++
	s := Stamp{ID: o.ID, Version: r.version, Size: size}
	r.val = s.Value(r.val)
	if size == 0 && o.Class%2 == 0 {
		return s, nil
	}
	return s, r.val
}

func (r *Runner) set(o Op, size int) error {
	s, v := r.newValue(o, size)
	k := r.KeyOf(o.ID)
	if err := r.C.Set(k, v); err != nil {
		return fmt.Errorf("set %d bytes: %w", size, err)
	}
	clear(k) // both are the caller's again
	clear(v)
	return r.stored(o, s, r.G.TTL)
}

// readBack checks that a value that was just set is found.
func (r *Runner) readBack(o Op, size int) error {
	if o.flags&4 != 0 {
		return nil // some entries are never read
	}
	got, ok := r.C.HasGet(r.dst[:0], r.KeyOf(o.ID))
	if !ok {
		return fmt.Errorf("set %d bytes: a read right after misses", size)
	}
	r.dst = got
	r.read(o.ID)
	return r.hit(o.ID, got)
}

func (r *Runner) setOversize(o Op) error {
	v := slices.Grow(r.val[:0], r.maxValue()+1)[:r.maxValue()+1]
	r.val = v
	err := r.C.Set(r.KeyOf(o.ID), v)
	if !errors.Is(err, ringcache.ErrTooLarge) {
		return fmt.Errorf("set %d bytes: got %v, want ErrTooLarge", len(v), err)
	}
	r.forget(o.ID)
	return nil
}

// get reads into a nil, a short, a long, or a partly filled buffer.
func (r *Runner) get(o Op) error {
	var dst []byte
	switch o.Arg % 4 {
	case 1:
		dst = make([]byte, 0, o.Arg%16)
	case 2:
		dst = slices.Grow(r.dst[:0], r.maxValue()+16)
		r.dst = dst
	case 3:
		dst = append(slices.Grow(r.dst[:0], 16), "held before"...)
	}
	before := bytes.Clone(dst)
	k := r.KeyOf(o.ID)
	var got []byte
	var ok bool
	if o.Kind == opHasGet {
		got, ok = r.C.HasGet(dst, k)
	} else {
		got = r.C.Get(dst, k)
		ok = len(got) > len(dst)
	}
	if !bytes.HasPrefix(got, before) {
		return fmt.Errorf("dst held %q, the result begins with %.32q", before, got)
	}
	if dst == nil && !ok && got != nil && o.Kind == opHasGet {
		return fmt.Errorf("a miss of nil dst returned %d bytes, not nil", len(got))
	}
	if roomy := cap(dst) >= len(got) && cap(dst) > 0; roomy && len(got) > 0 && &got[0] != &dst[:1][0] {
		return fmt.Errorf("dst with room for %d bytes was not used for %d", cap(dst), len(got))
	}
	if !ok && o.Kind == opGet {
		if r.idle == 0 {
			return nil // a miss or an empty value: Get cannot tell
		}
		return r.has(o.ID) // if it is there, it was read
	}
	if !ok {
		return r.found(o.ID, false)
	}
	r.read(o.ID)
	return r.hit(o.ID, got[len(before):])
}

// hit checks that v may be the value of the key.
func (r *Runner) hit(id uint32, v []byte) error {
	r.Hits++
	if r.model.Hit(id, func(s Stamp) bool { return r.wrote(s, v) }) {
		return nil
	}
	is := "that no Set wrote"
	if s, err := ReadStamp(v); err == nil {
		is = fmt.Sprintf("(%v)", s)
	}
	return fmt.Errorf("found %d bytes %s, want one of %v: %.32x",
		len(v), is, r.model.Candidates(id), v)
}

// found is answered for a call that changes nothing.
func (r *Runner) found(id uint32, ok bool) error {
	return r.answered(r.before(id), ok)
}

// Exercised returns an error if the run was too short to prove much: without enough hits, misses,
// evictions, expiries and loads or, if wraps, without positions that came round twice.
func (r *Runner) Exercised(wraps bool) error {
	var s ringcache.Stats
	r.C.UpdateStats(&s)
	if r.Hits < 100 || r.misses < 100 {
		return fmt.Errorf("%d hits and %d misses", r.Hits, r.misses)
	}
	if r.G.Seed == ([2]uint64{}) {
		if s.Collisions == 0 {
			return fmt.Errorf("no collisions although all hashes are equal")
		}
		return nil
	}
	if r.lockFree < 100 {
		return fmt.Errorf("%d lookups without the lock", r.lockFree)
	}
	if r.G.ByHand && (s.Compression.ColdHits < 10 || s.Compression.Compressed < 10) {
		return fmt.Errorf("%d hits in the cold part, %d compressed",
			s.Compression.ColdHits, s.Compression.Compressed)
	}
	if s.EvictedEntries < 100 {
		return fmt.Errorf("%d entries evicted", s.EvictedEntries)
	}
	// Counted over all buckets, so that at least one has wrapped.
	want := uint64(2*(r.G.Buckets+store.LargeBuckets)) << r.G.PosBits
	if wraps && s.EvictedBytes < want {
		return fmt.Errorf("%d bytes evicted, want %d: positions did not wrap twice", s.EvictedBytes, want)
	}
	if s.Loads.Started < 100 || r.negativeHits < 10 && !r.told {
		return fmt.Errorf("%d loads, and %d negative entries found", s.Loads.Started, r.negativeHits)
	}
	if s.ExpiredEntries < 100 {
		return fmt.Errorf("%d entries expired", s.ExpiredEntries)
	}
	if r.idle != 0 && r.renewals < 50 {
		return fmt.Errorf("%d reads that put off an expiry", r.renewals)
	}
	for reason := ringcache.RemovedEvicted; r.told && reason <= ringcache.RemovedReset; reason++ {
		if r.reasons[reason] == 0 {
			return fmt.Errorf("no entry left with the reason %s", reason)
		}
	}
	return nil
}
