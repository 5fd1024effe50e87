package ringcache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/store"
)

// ReadSnapshot adds entries of a snapshot whose keys are absent, and returns the number of bytes
// read. Unlike ReadFrom of an [io.ReaderFrom], it stops at the end mark of the snapshot, not at the
// end of r.
//
// The caller's goroutine reads each block once, and uses a few megabytes, more for longer values.
// Other goroutines may use the cache meanwhile.
//
// ReadSnapshot returns the errors of [LoadFromFile], but [ErrVersion] if
// [Options].Version differs; r's error, except [io.ErrUnexpectedEOF]; [ErrClosed] after Close; and
// [io.ErrNoProgress] if r returns neither bytes nor an error a hundred times in a row. An error
// removes none of the entries read before.
func (c *Cache) ReadSnapshot(r io.Reader) (int64, error) {
	n, err := c.readSnapshot(r)
	if err == nil {
		return n, nil
	}
	name := "stream"
	if f, ok := r.(interface{ Name() string }); ok {
		name = f.Name()
	}
	return n, fmt.Errorf("ringcache: read snapshot: %s: %w", name, err)
}

func (c *Cache) readSnapshot(r io.Reader) (int64, error) {
	if c.space != nil {
		return 0, ErrNamespace
	}
	if c.isClosed() {
		return 0, ErrClosed
	}
	s, err := snapshot.NewStream(r)
	if err == nil {
		err = checkProgram(&s.Header, c.options.Version)
	}
	if err != nil {
		return s.Read(), err
	}
	t := c.newRestorer(c.termsOf(&s.Header))
	var buf snapshot.Buffers
	for {
		ref, err := s.Next()
		if err == io.EOF {
			return s.Read(), nil
		}
		if err == nil && ref.Size <= c.longestBlock() {
			var body []byte
			if body, err = s.Body(&ref, &buf); err == nil {
				err = t.restore(&ref, body)
			}
		}
		if err != nil {
			return s.Read(), err
		}
	}
}

// terms tell how the records of a snapshot become entries of a cache.
type terms struct {
	timed   bool              // the time since then is known; else entries that expire are left out
	shift   int64             // ticks from the clock of the saved cache to that of this one
	replace bool              // of two records of a key, the later one stays; else the older one
	room    int               // bytes that the cache has for records and their slots
	fits    bool              // they need no more, as far as is known
	names   map[uint64]uint64 // generations of the snapshot, and what they are in the cache
	size    uint64            // bytes of the snapshot, with as many records at most; 0: not known
}

// fitsFree: a cache has room for all entries of one with other buckets if they leave 1/fitsFree of
// it, which the ends of chunks need.
const fitsFree = 16

// termsOf returns the terms for a cache that has a clock of its own.
func (c *engine) termsOf(h *snapshot.Header) *terms {
	age := c.shared.Age() // first, so that the other age is too great rather than too small
	then, ok := c.moment().Resume(h.Mark.Age, h.Mark.At)
	return &terms{timed: ok, shift: clock.TicksIn(age - then), names: map[uint64]uint64{},
		room: c.shared.FreeOfLive(fitsFree)}
}

// tick returns the tick of a deadline by the clock of this cache.
func (t *terms) tick(deadline uint32) uint32 {
	if deadline == 0 || deadline == clock.Never {
		return deadline
	}
	at := max(int64(deadline)+t.shift, 1)
	if at >= clock.Never {
		return 0 // too far away for the clock
	}
	return uint32(at)
}

// restorer restores one block after another.
type restorer struct {
	*terms // which workers share
	c      *engine
	batch  [batchRecords]snapshot.Record
	hashes [batchRecords]uint64 // of their keys
	w      write
	loaded uint64 // entries that c.restored does not count yet

	replaced bool // the entry that is to be set was there
}

// batchRecords is the number of records that are decoded, and whose index groups are prefetched, at
// a time.
const batchRecords = 128

func (c *engine) newRestorer(t *terms) *restorer {
	r := &restorer{terms: t, c: c}
	r.w.Restored, r.w.counted, r.w.Reason = true, true, store.Unreported
	r.w.Strict = !t.fits
	if !t.replace {
		r.w.cond = ifAbsent
	}
	return r
}

// longestBlock returns the size of the longest block that can hold an entry for the cache.
func (c *engine) longestBlock() uint64 {
	return uint64(8*snapshot.MaxBlock + c.shared.MaxValue())
}

// checkProgram returns an error if a snapshot is of another version of the program.
func checkProgram(h *snapshot.Header, version uint64) error {
	if h.Program != version {
		return fmt.Errorf("Options.Version is %d, %d in the snapshot: %w",
			version, h.Program, ErrVersion)
	}
	return nil
}

// restore adds the entries of a snapshot to the cache.
func (c *engine) restore(s *snapshot.Contents, t *terms) error {
	workers, room := runtime.GOMAXPROCS(0), uint64(c.shared.Bound())
	if c.options.OnRemove != nil {
		workers = 1 // the caller's goroutine is the one that calls it, and it may panic
	}
	t.size = uint64(s.Size)
	err := s.Load(workers, c.longestBlock(), room, func() func(*snapshot.Ref, []byte) error {
		return c.newRestorer(t).restore
	})
	for c.shared.Pool.Trim() { // workers may each have taken the last chunk
	}
	return err
}

// restore adds the entries of a block to the cache.
func (t *restorer) restore(ref *snapshot.Ref, body []byte) error {
	defer func() { t.c.restored.Add(t.loaded); t.loaded = 0 }() // workers share the counter
	switch {
	case ref.IsSizes():
		t.useSizes(body)
		return nil
	case ref.IsNames():
		return t.nameSpaces(ref, body)
	}
	return ref.Batches(body, t.batch[:], func(rs []snapshot.Record) error {
		return t.restoreBatch(rs, body)
	})
}

// restoreBatch adds the entries of a batch to the cache.
func (t *restorer) restoreBatch(rs []snapshot.Record, body []byte) (err error) {
	for i := range rs {
		r := &rs[i]
		key := body[r.At+r.Size:][:r.KeyLen]
		if r.Kind&record.Spaced != 0 {
			r.Dead = !t.rename(key)
		}
		h := t.c.shared.HashOf(key, r.Kind)
		t.c.bucket(h).Index.Prefetch(h, 2)
		t.hashes[i] = h
	}
	for from := 0; err == nil && from < len(rs); {
		n, news, ok := t.restoreStep(rs[from:], t.hashes[from:], body)
		if news > 0 {
			t.c.balance(t.c.bucket(t.hashes[from]), news, &t.w)
		}
		t.c.notify(&t.w)
		if from += n; !ok {
			err = t.set(&rs[from-1], body)
		}
	}
	return err
}

// useSizes learns whether all records fit, and gives the indexes of a fresh cache the pages that
// its buckets will need.
func (t *restorer) useSizes(body []byte) {
	left := t.size // more is made up, and memory for it would not be in proportion
	n, need := len(t.c.buckets), 0.0
	same := t.replace && len(body) == 16*(n+store.LargeBuckets) // else buckets have other records
	for i := range len(body) / 16 {
		live := binary.LittleEndian.Uint64(body[16*i:])
		bytes := binary.LittleEndian.Uint64(body[16*i+8:])
		need += float64(live)*store.SlotBytes + float64(bytes)
		if !same || i >= n {
			continue
		}
		live = min(live, left)
		left -= live
		each := min(bytes, math.MaxInt64)/max(live, 1) + store.SlotBytes
		t.c.buckets[i].change(func(b *store.Store) {
			b.SizeIndex(int(min(live, uint64(b.Sizes().Quota)/each))) // a smaller cache gets fewer
		})
	}
	t.fits = need <= float64(t.room)
	t.w.Strict = !t.fits
}

// nameSpaces makes the namespaces of a snapshot known to the cache. One that is known already keeps
// its generation. In a fresh cache each has that of the snapshot, so that its keys have their
// hashes and buckets again: else some buckets would get more than they can hold.
func (t *restorer) nameSpaces(ref *snapshot.Ref, body []byte) error {
	t.c.spaces.mu.Lock()
	defer t.c.spaces.mu.Unlock()
	return ref.Each(body, func(r *snapshot.Record) error {
		rec := body[r.At+r.Size:][:r.KeyLen+r.ValueLen]
		name, g := string(rec[generation.Size:]), generation.Of(rec)
		table := t.c.shared.Generations
		if _, ok := t.c.spaces.byName.Load(name); !ok && t.replace && g != 0 && table.Of(g) == nil {
			t.c.addSpace(name, g)
		}
		t.names[g] = t.c.spaceLocked(name).space.generation.Load()
		return nil
	})
}

// rename gives a key the present generation of its namespace. It reports false if the snapshot does
// not have its generation.
func (t *restorer) rename(key []byte) bool {
	g, ok := t.names[generation.Of(key)]
	if ok {
		binary.LittleEndian.PutUint64(key, g)
	}
	return ok
}

// restoreStep restores records of the small bucket of the first one under its lock. It returns
// their number, and bytes as setSmall does. It reports false if the last one is to be set.
func (t *restorer) restoreStep(
	rs []snapshot.Record, hashes []uint64, body []byte,
) (n, news int, ok bool) {
	b, s, w := t.c.bucket(hashes[0]), t.c.shared, &t.w
	b.lock()
	defer b.unlockFor(w)
	isThere := func(lb *bucket) bool { return lb.FindOrExpire(&w.Write, new(store.Found)) }
	remove := func(lb *bucket) bool {
		there := isThere(lb) // a negative entry too
		return lb.Delete(&w.Write, nil) || there
	}
	for bytes := 0; n < len(rs) && bytes < store.StepBytes && (hashes[n]^hashes[0])&t.c.mask == 0; {
		r := &rs[n]
		rec := body[r.At:][:r.Total()]
		w.Hash = hashes[n]
		n++
		usable, plain := t.prepare(r, rec)
		if !usable {
			if t.replace && !r.Dead && (remove(b) || t.c.inLargeLocked(w, remove)) {
				t.loaded-- // the older value of an entry that has expired
			}
			continue
		}
		added, ok := false, plain && !b.Closed && !s.IsLarge(len(rec)) &&
			(s.LargeKeysOf(w.Hash).Load() == 0 || !t.c.inLargeLocked(w, isThere))
		if ok {
			added, ok = b.Restore(&w.Write, rec, t.replace)
		}
		if !ok { // a later record counts once, and keeps its own ring, as in Restore
			t.replaced = t.replace && (remove(b) || t.c.inLargeLocked(w, remove))
			return n, news, false
		}
		if added {
			t.loaded++
			bytes += len(rec)
			news += b.Arrived(len(rec))
		}
	}
	return n, news, true
}

// prepare makes the next write that of a record, but for its hash. It reports whether the entry is
// usable: it has not expired, as far as that is known; and plain, as nearly all are: the cache
// stores the record as it is.
func (t *restorer) prepare(r *snapshot.Record, rec []byte) (usable, plain bool) {
	w, s := &t.w, t.c.shared
	w.Ring, w.Freq, w.Kind = r.Ring, r.Freq, r.Kind
	if s.Policy.HasOneRing() {
		w.Ring = policy.Main
	}
	w.Key = rec[r.Size:][:r.KeyLen]
	w.Last, w.Until = 0, 0
	if r.Dead || r.Deadlines != record.Timeless && !t.setTimes(r.Header, rec) {
		return false, false
	}
	same := r.Deadlines == record.Timeless || r.Deadlines == record.Timed && w.Last != 0
	return true, same && s.Form == record.Plain && !s.Idles && w.Kind.Base() == record.Value
}

// setTimes gives the write and its record the deadlines of the record, by the clock of this cache.
// It reports false if the entry has expired, or if that is not known.
func (t *restorer) setTimes(hd record.Header, rec []byte) bool {
	w := &t.w
	if hd.Expiry != 0 && hd.Expiry != clock.Never && !t.timed {
		return false
	}
	s := t.c.shared
	w.Last = t.tick(hd.Expiry)
	if hd.Deadlines == record.Idle {
		w.Until, w.Last = w.Last, t.tick(binary.LittleEndian.Uint32(rec[hd.LastAt():]))
	}
	binary.LittleEndian.PutUint32(rec[hd.TimesAt():], w.Last)
	return !s.Expired(w.Last) && !s.Expired(w.Until)
}

// set stores the entry of the record that was prepared. One that does not fit into the cache is
// left out.
func (t *restorer) set(r *snapshot.Record, body []byte) error {
	c, w := t.c, &t.w
	defer c.notify(w)
	w.Value = body[r.At+r.Size+r.KeyLen:][:r.ValueLen]
	err := c.route(w)
	switch {
	case err == nil && !t.replaced:
		t.loaded++
	case err == errUnmet || err == errForgotten || errors.Is(err, ErrTooLarge),
		errors.Is(err, ErrNoMemory) && c.exceedsMemory(w.Bytes) != nil:
		return nil
	}
	return err
}
