package ringcache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// op is one operation of a stream. It is decoded from opSize bytes, and every
// combination of bytes is some operation, so a fuzzer may write streams too.
type op struct {
	kind  opKind
	id    uint32 // of the key
	class byte   // of the value's size
	flags byte   // which variant of the operation
	arg   uint16 // for the size
}

// opSize is how many bytes an op is decoded from.
const opSize = 7

type opKind byte

const (
	opSet opKind = iota
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
	{opHas, 10}, {opGetBatch, 10}, {opHasGet, 22}, {opGet, 20}, {opSetSame, 20}, {opSet, 49},
	{opSetWithTTL, 21}, {opTouch, 8}, {opTTL, 6}, {opDeleteExpired, 1}, {opWait, 6},
	{opSetIfAbsent, 7}, {opSetIfChanged, 7}, {opCompareAndSwap, 7}, {opUpdate, 6}, {opAppend, 4},
	{opGetAndDel, 4},
	{opAll, 1}, {opSetBatch, 8}, {opGetOrLoad, 10}, {opResize, 1},
}

func decodeOp(b []byte) op {
	o := op{class: b[3], flags: b[4], arg: binary.LittleEndian.Uint16(b[5:])}
	at := int(b[0])
	for _, s := range opShares {
		if at -= s.share; at < 0 {
			o.kind = s.kind
			break
		}
	}
	if o.kind == opReset && o.arg%16 != 0 {
		o.kind = opLen // a cache that is emptied too often never evicts
	}
	// Few keys often, many keys seldom.
	o.id = uint32(binary.LittleEndian.Uint16(b[1:])) >> (4 * (o.flags & 3))
	return o
}

// runner applies operations to a cache and to the model beside it.
type runner struct {
	c       *Cache
	g       geometry
	bound   int // of the cache, as it is now
	model   refModel[uint32, stamp]
	version uint64
	key     []byte
	val     []byte
	dst     []byte

	steps, hits, misses int
	negativeHits        int
	lockFree            int // lookups that were seen to take no lock
	recent              [24]op
	current             op

	life
}

// newRunner returns a runner for a new cache with a separate clock. If told, it
// gives the cache an OnRemove and holds it to what that says.
func newRunner(t testing.TB, g geometry, told bool) *runner {
	r := &runner{bound: g.maxBytes, life: newLife(told)}
	g.now = r.clock
	if told {
		g.onRemove = r.departed
	}
	r.g = g
	r.c = mustCache(t, g)
	return r
}

// MaxValue is the longest value that Set must take.
func (r *runner) maxValue() int { return r.bound / 16 }

// run applies the operations that data holds, and returns an error for the
// first answer that no cache may give.
func (r *runner) run(data []byte) error {
	for ; len(data) >= opSize; data = data[opSize:] {
		o := decodeOp(data)
		r.recent[r.steps%len(r.recent)] = o
		r.steps++
		r.current = o
		clear(r.dropped)
		if err := errors.Join(r.stepLockFree(o), r.complaint, r.withinBound()); err != nil {
			return fmt.Errorf("operation %d: %s of key %d: %w", r.steps, opNames[o.kind], o.id, err)
		}
	}
	return nil
}

// withinBound returns an error if the cache has taken more memory than it may.
func (r *runner) withinBound() error {
	if s := r.c.shared; s.Pool.Used() > s.Bound() {
		return fmt.Errorf("%d bytes are in use, the bound is %d", s.Pool.Used(), s.Bound())
	}
	return nil
}

// stepLockFree is step, and sees to it that lookups take no lock: nobody writes
// meanwhile, and unless the key may be a large one it is in one place.
func (r *runner) stepLockFree(o op) error {
	switch o.kind {
	case opGet, opHasGet, opHas, opView:
	default:
		return r.step(o)
	}
	k, s := r.keyOf(o.id), r.c.shared
	if len(k) == 0 || s.LargeKeysOf(s.Hash(k)).Load() != 0 {
		return r.step(o) // an empty key may seem to lie in dst
	}
	before := r.c.counters.Locked()
	err := r.step(o)
	locked := r.c.counters.Locked() != before
	if locked && s.Compression != nil {
		return err // the key is in the cold part, or a goroutine writes
	}
	if r.lockFree++; locked {
		return errors.Join(err, errors.New("the lookup took the lock"))
	}
	return err
}

// step does one operation.
func (r *runner) step(o op) error {
	if r.g.byHand && o.arg%16 == 0 {
		r.c.compressAll()
	}
	switch o.kind {
	case opGet, opHasGet, opHas, opView, opGetBatch:
		r.reading = true
		defer r.endReading()
	}
	switch o.kind {
	case opSet:
		return r.set(o, r.sizeOf(o))
	case opSetWithTTL:
		return r.setWithTTL(o)
	case opSetSame:
		size := r.sizeOf(o)
		if held := r.model.Candidates(o.id); len(held) > 0 {
			size = min(held[0].size, r.maxValue()) // it may be of a larger cache
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
		return r.found(o.id, r.c.Has(r.keyOf(o.id)))
	case opGetBatch:
		return r.getBatch(o)
	case opView:
		return r.view(o)
	case opDel:
		known := r.before(o.id)
		err := r.answered(known, r.c.Del(r.keyOf(o.id)))
		r.forget(o.id)
		return err
	case opReset:
		r.c.Reset()
		r.model.Reset()
		clear(r.deadlines)
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

// sizeOf returns the length of the value that o sets: mostly small, often
// where chunks and headers end, sometimes as large as a value may be.
func (r *runner) sizeOf(o op) int {
	arg := int(o.arg)
	var size int
	switch class := o.class % 32; {
	case class < 3:
		size = 0
	case class < 14:
		size = arg % 32
	case class < 22:
		size = arg % 300
	case class < 28: // around one, two or three chunks
		size = (1+arg%3)*r.g.chunkSize + arg/3%48 - 40
	case class < 31:
		size = arg * 4
	default:
		return r.maxValue() - arg%2
	}
	return min(size, r.maxValue())
}

// keyOf returns the key with that id: empty for 0, else 4 bytes with the id and
// often more, up to where keys cross chunks.
func (r *runner) keyOf(id uint32) []byte {
	if id == 0 && r.steps%2 == 0 {
		return nil
	}
	r.key = r.makeKey(r.key, id)
	return r.key
}

func (r *runner) makeKey(buf []byte, id uint32) []byte {
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
		size = r.g.chunkSize + int(id)%16
	}
	size = min(max(size, 4), max(4, r.g.maxBytes/16/4)) // whatever the bound is now
	key := stamp{id: id, size: size}.filled(buf, math.MaxUint64)
	binary.LittleEndian.PutUint32(key, id)
	return key
}

// newValue returns a value that was never set before.
func (r *runner) newValue(o op, size int) (stamp, []byte) {
	r.version++
	s := stamp{id: o.id, version: r.version, size: size}
	r.val = s.value(r.val)
	if size == 0 && o.class%2 == 0 {
		return s, nil
	}
	return s, r.val
}

func (r *runner) set(o op, size int) error {
	s, v := r.newValue(o, size)
	k := r.keyOf(o.id)
	if err := r.c.Set(k, v); err != nil {
		return fmt.Errorf("set %d bytes: %w", size, err)
	}
	clear(k) // both are the caller's again
	clear(v)
	return r.stored(o, s, r.g.ttl)
}

// readBack reads what has just been set.
func (r *runner) readBack(o op, size int) error {
	if o.flags&4 != 0 {
		return nil // let some entries live without ever being read
	}
	got, ok := r.c.HasGet(r.dst[:0], r.keyOf(o.id))
	if !ok {
		return fmt.Errorf("set %d bytes: a read right after misses", size)
	}
	r.dst = got
	return r.hit(o.id, got)
}

func (r *runner) setOversize(o op) error {
	v := slices.Grow(r.val[:0], r.maxValue()+1)[:r.maxValue()+1]
	r.val = v
	err := r.c.Set(r.keyOf(o.id), v)
	if !errors.Is(err, ErrTooLarge) {
		return fmt.Errorf("set %d bytes: got %v, want ErrTooLarge", len(v), err)
	}
	r.forget(o.id)
	return nil
}

// get reads into no buffer, a short one, a roomy one, each empty or not.
func (r *runner) get(o op) error {
	var dst []byte
	switch o.arg % 4 {
	case 1:
		dst = make([]byte, 0, o.arg%16)
	case 2:
		dst = slices.Grow(r.dst[:0], r.maxValue()+16)
		r.dst = dst
	case 3:
		dst = append(slices.Grow(r.dst[:0], 16), "held before"...)
	}
	before := bytes.Clone(dst)
	k := r.keyOf(o.id)
	var got []byte
	var ok bool
	if o.kind == opHasGet {
		got, ok = r.c.HasGet(dst, k)
	} else {
		got = r.c.Get(dst, k)
		ok = len(got) > len(dst)
	}
	if !bytes.HasPrefix(got, before) {
		return fmt.Errorf("dst held %q, the result begins with %.32q", before, got)
	}
	if dst == nil && !ok && got != nil && o.kind == opHasGet {
		return fmt.Errorf("a miss of nil dst returned %d bytes, not nil", len(got))
	}
	if roomy := cap(dst) >= len(got) && cap(dst) > 0; roomy && len(got) > 0 && &got[0] != &dst[:1][0] {
		return fmt.Errorf("dst with room for %d bytes was not used for %d", cap(dst), len(got))
	}
	if !ok && o.kind == opGet {
		return nil // a miss or an empty value: Get cannot tell
	}
	if !ok {
		return r.found(o.id, false)
	}
	return r.hit(o.id, got[len(before):])
}

// hit checks that v may be the value of the key.
func (r *runner) hit(id uint32, v []byte) error {
	r.hits++
	if r.model.Hit(id, func(s stamp) bool { return r.wrote(s, v) }) {
		return nil
	}
	is := "that no Set wrote"
	if s, err := readStamp(v); err == nil {
		is = fmt.Sprintf("(%v)", s)
	}
	return fmt.Errorf("found %d bytes %s, want one of %v: %.32x",
		len(v), is, r.model.Candidates(id), v)
}

// found checks a yes or no about the key. What has missed once must not come
// back by itself.
func (r *runner) found(id uint32, ok bool) error {
	return r.answered(r.before(id), ok)
}

// gauges checks what the cache says about itself.
func (r *runner) gauges() error {
	var s Stats
	r.c.UpdateStats(&s)
	n := r.c.Len()
	switch {
	case uint64(n) != s.EntriesCount:
		return fmt.Errorf("Len is %d, EntriesCount %d", n, s.EntriesCount)
	case n > r.model.Len()+len(r.lapsed)+len(r.negatives):
		return fmt.Errorf("Len is %d, at most %d keys can be live, %d expired and %d negative",
			n, r.model.Len(), len(r.lapsed), len(r.negatives))
	case r.told && n != len(r.live):
		return fmt.Errorf("Len is %d, but %d entries were set that OnRemove was not told of",
			n, len(r.live))
	case s.MaxBytesSize != uint64(r.bound):
		return fmt.Errorf("MaxBytesSize is %d, the bound %d", s.MaxBytesSize, r.bound)
	case s.ReservedBytes > s.MaxBytesSize:
		return fmt.Errorf("ReservedBytes %d is above MaxBytesSize %d", s.ReservedBytes, s.MaxBytesSize)
	case s.BytesSize > s.ReservedBytes:
		return fmt.Errorf("BytesSize %d is above ReservedBytes %d", s.BytesSize, s.ReservedBytes)
	case s.IndexBytes > s.ReservedBytes:
		return fmt.Errorf("IndexBytes %d is above ReservedBytes %d", s.IndexBytes, s.ReservedBytes)
	case s.Corruptions > s.Compression.DecompressErrors:
		return fmt.Errorf("%d corruptions", s.Corruptions)
	case s.Misses > s.GetCalls:
		return fmt.Errorf("%d misses in %d reads", s.Misses, s.GetCalls)
	}
	return nil
}

// finish reads everything that may still be there: the cache must hold exactly
// as many entries as it counts.
func (r *runner) finish() error {
	if err := r.gauges(); err != nil {
		return err
	}
	r.c.DeleteExpired()
	clear(r.lapsed)
	n := r.c.Len()
	live := r.countNegatives()
	for _, id := range slices.Sorted(r.model.Keys()) {
		got, ok := r.c.Peek(r.dst[:0], r.keyOf(id)) // a Get may make others leave
		r.dst = got
		if !ok {
			continue
		}
		live++
		if err := r.hit(id, got); err != nil {
			return fmt.Errorf("key %d at the end: %w", id, err)
		}
	}
	var s Stats
	r.c.UpdateStats(&s)
	if live > n || live < n-int(s.Compression.DecompressErrors) {
		return fmt.Errorf("Len is %d, but %d keys or negative entries are found", n, live)
	}
	return nil
}

// trail describes the last operations, oldest first.
func (r *runner) trail() string {
	var b strings.Builder
	fmt.Fprintf(&b, "geometry %s; the last of %d operations:\n", describe(r.g), r.steps)
	for i := max(0, r.steps-len(r.recent)); i < r.steps; i++ {
		o := r.recent[i%len(r.recent)]
		fmt.Fprintf(&b, "  %-12s key=%-5d size=%-7d flags=%#02x arg=%d\n",
			opNames[o.kind], o.id, r.sizeOf(o), o.flags, o.arg)
	}
	return b.String()
}
