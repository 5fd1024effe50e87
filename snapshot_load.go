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
	"github.com/ringcache/ringcache/internal/ringfile"
	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/store"
)

// ReadSnapshot adds the entries of a snapshot to the cache, as many as fit, and returns the number
// of bytes read. An existing key keeps its value, since the snapshot's is older. Unlike ReadFrom of
// an [io.ReaderFrom], it stops at the end mark of the snapshot, not at the end of r.
//
// The caller's goroutine reads each block once, and uses a few megabytes. ([Load] uses several
// goroutines.) Other goroutines may use the cache meanwhile.
//
// ReadSnapshot returns the errors of [LoadFromFile], and [ErrVersion] if the snapshot's
// [Options].Version differs from the cache's; [ErrClosed] after Close; and [io.ErrNoProgress] if r
// returns neither bytes nor an error a hundred times in a row. The entries read before an error
// stay in the cache.
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
	timed bool  // how much time has passed is known; else entries with an expiry are left out
	shift int64 // ticks from the clock of the saved cache to that of this one
	to    store.Restored
	names generations
	size  uint64 // bytes of the snapshot, with as many records at most; 0: not known
}

// generations are those of the namespaces of a snapshot, and what they are in the cache.
type generations map[uint64]uint64

// termsOf returns the terms for a cache that has a clock of its own.
func (c *engine) termsOf(h *snapshot.Header) terms {
	age := c.shared.Age() // first, so that the other age is too great rather than too small
	then, ok := c.moment().Resume(markOf(h).Age, markOf(h).At)
	return terms{timed: ok, shift: clock.TicksIn(age - then), names: generations{}}
}

// markOf returns what the header of a snapshot says of the saved cache's clock.
func markOf(h *snapshot.Header) ringfile.Mark {
	return ringfile.Mark{
		Age: h.Age, At: clock.Moment{Wall: h.Saved, Boot: h.SinceBoot, ID: h.Boot},
	}
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
	terms
	c      *engine
	items  []item
	w      write
	rec    []byte // the whole record of w, if the cache stores it as it is
	loaded uint64 // entries that c.snapshots.loaded does not count yet
}

// prefetched is the number of items by which the prefetching of index groups runs ahead. If the
// cache and the snapshot have different hash secrets, the group is often of another bucket.
const prefetched = 16

// item is a record of a block.
type item struct {
	hash uint64
	at   int // its offset in the body
	ring uint8
	freq uint8
}

func (c *engine) newRestorer(t terms) *restorer {
	r := &restorer{terms: t, c: c}
	r.w.Restored, r.w.uncounted, r.w.Reason = true, true, store.Unreported
	r.w.Strict = !t.to.Fit
	if !t.to.Replace {
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
func (c *engine) restore(s *snapshot.Contents, t terms) error {
	if err := checkProgram(&s.Header, c.options.Version); err != nil {
		return err
	}
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

// restore adds the entries of a block to the cache, once it is known that all are valid.
func (t *restorer) restore(ref *snapshot.Ref, body []byte) error {
	defer func() { t.c.snapshots.loaded.Add(t.loaded); t.loaded = 0 }() // workers share the counter
	if ref.IsSizes() {
		t.sizeIndexes(body)
		return nil
	}
	t.items = t.items[:0]
	err := ref.Each(body, func(r *snapshot.Record) {
		key := body[r.At+r.Size:][:r.KeyLen]
		if r.Kind&record.Spaced == 0 || ref.IsNames() || t.rename(key) {
			hash := t.c.shared.HashOf(key, r.Kind)
			t.items = append(t.items, item{hash, r.At, r.Ring, uint8(r.Freq)})
		}
	})
	if err == nil && ref.IsNames() {
		t.nameSpaces(body)
		return nil
	}
	for from := 0; err == nil && from < len(t.items); {
		n, news, ok := t.restoreStep(t.items[from:], body)
		if news > 0 {
			t.c.balance(t.c.bucket(t.items[from].hash), news, &t.w)
		}
		t.c.notify(&t.w)
		if from += n; !ok {
			err = t.set()
		}
	}
	return err
}

// sizeIndexes gives the indexes of a fresh cache the pages that its buckets will need.
func (t *restorer) sizeIndexes(body []byte) {
	n := len(t.c.buckets)
	if !t.to.Replace || len(body) != 16*(n+store.LargeBuckets) {
		return // buckets have other records
	}
	left := t.size // else the sizes are made up, and memory for them would not be in proportion
	for i := range n {
		live := min(binary.LittleEndian.Uint64(body[16*i:]), left)
		left -= live
		bytes := min(binary.LittleEndian.Uint64(body[16*i+8:]), math.MaxInt64)
		each := bytes/max(live, 1) + store.SlotBytes
		t.c.buckets[i].change(func(b *store.Store) {
			b.SizeIndex(int(min(live, uint64(b.Memory().Quota)/each))) // a smaller cache gets fewer
		})
	}
}

// nameSpaces makes the namespaces of a snapshot known to the cache. One that is known already keeps
// its generation. In a fresh cache each has that of the snapshot, so that its keys have their
// hashes and buckets again: else some buckets would get more than they can hold.
func (t *restorer) nameSpaces(body []byte) {
	t.c.spaces.mu.Lock()
	defer t.c.spaces.mu.Unlock()
	for _, it := range t.items {
		hd, _ := record.Plain.Parse(body[it.at:])
		rec := body[it.at+hd.Size:][:hd.KeyLen+hd.ValueLen]
		name, g := string(rec[generation.Size:]), generation.Of(rec)
		table := t.c.shared.Generations
		if _, ok := t.c.spaces.byName.Load(name); !ok && t.to.Replace && g != 0 && table.Of(g) == nil {
			table.Enter(g).Name = name
			t.c.addSpace(name, g)
		}
		t.names[g] = t.c.spaceLocked(name).space.generation.Load()
	}
}

// rename gives a key the present generation of its namespace. It reports false if the namespace was
// reset or dropped while the snapshot was written.
func (t *restorer) rename(key []byte) bool {
	g, ok := t.names[generation.Of(key)]
	if ok {
		binary.LittleEndian.PutUint64(key, g)
	}
	return ok
}

// restoreStep restores items of the small bucket of the first one under its lock. It returns their
// number, and bytes as setSmall does. It reports false if the last one is to be set.
func (t *restorer) restoreStep(items []item, body []byte) (n, news int, ok bool) {
	b := t.c.bucket(items[0].hash)
	b.lock()
	defer b.unlockFor(&t.w)
	for bytes := 0; n < len(items) && n < store.StepRecords && bytes < store.StepBytes; {
		if n+prefetched < len(items) {
			hash := items[n+prefetched].hash
			t.c.bucket(hash).Index.Prefetch(hash, 1)
		}
		it := items[n]
		if t.c.bucket(it.hash) != b {
			break
		}
		n++
		if !t.prepare(it, body) {
			continue
		}
		isLarge := func(lb *bucket) bool { return lb.FindOrExpire(&t.w.Write, new(store.Found)) }
		if t.rec == nil || b.Closed || t.c.shared.IsLarge(len(t.rec)) ||
			t.c.inLargeLocked(&t.w, isLarge) {
			return n, news, false
		}
		added, ok := b.Restore(&t.w.Write, t.rec, t.to)
		if !ok {
			return n, news, false
		}
		if added {
			t.loaded++
			bytes += len(t.rec)
			news += b.Arrived(len(t.rec))
		}
	}
	return n, news, true
}

// prepare makes the next write that of an item. It reports false if the entry has expired, or if it
// is unknown whether it has.
func (t *restorer) prepare(it item, body []byte) bool {
	w, rec, s := &t.w, body[it.at:], t.c.shared
	hd, ok := record.Plain.ParseShort(rec) // Each has seen it, and frequencies follow
	if !ok {
		hd, _ = record.Plain.Parse(rec)
	}
	w.Ring, w.Freq, w.Hash = policy.Main, int(it.freq), it.hash
	if it.ring == snapshot.Small && s.Policy != policy.FIFO {
		w.Ring = policy.Small
	}
	w.Kind = hd.Kind
	w.Key, w.Value = rec[hd.Size:][:hd.KeyLen], rec[hd.Size+hd.KeyLen:][:hd.ValueLen]
	w.Last, w.Until, t.rec = 0, 0, nil
	if hd.Deadlines != record.Timeless && !t.setTimes(hd, rec) {
		return false
	}
	same := hd.Deadlines == record.Timeless || hd.Deadlines == record.Timed && w.Last != 0
	if same && s.Form == record.Plain && !s.Idles && w.Kind.Base() == record.Value {
		t.rec = rec[:hd.Total()] // nearly always
	}
	return true
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

// set stores the entry that was prepared. One that does not fit into the cache is left out.
func (t *restorer) set() error {
	c, w := t.c, &t.w
	defer c.notify(w)
	if w.Measure(c.shared); c.exceedsMemory(w.Bytes) != nil {
		return nil
	}
	err := c.place(w)
	switch {
	case err == nil:
		t.loaded++
	case err == errUnmet || err == errForgotten || errors.Is(err, ErrTooLarge):
		return nil
	}
	return err
}
