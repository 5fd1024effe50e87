package ringcache

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringfile"
	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/store"
)

// ReadSnapshot adds the entries of a snapshot to the cache, as many as fit, and
// returns the number of bytes read. An existing key keeps its value: that of the snapshot is older.
// ReadSnapshot stops at the end mark of the snapshot: unlike ReadFrom of an [io.ReaderFrom], it
// does not read to the end of r.
//
// If r is a file, or any other [io.ReaderAt] and [io.Seeker], up to GOMAXPROCS goroutines read it
// in the best order, and end before ReadSnapshot returns. From other readers, the caller's
// goroutine reads each block once. Other goroutines may use the cache meanwhile.
//
// Errors are those of [LoadFromFile], with [ErrVersion] for a snapshot whose [Options].Version
// differs from that of the cache; [ErrClosed] after Close; and [io.ErrNoProgress] if r returns
// neither bytes nor an error a hundred times in a row. The entries read before an error stay in the
// cache.
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
	if f, ok := r.(seekable); ok {
		from, err := f.Seek(0, io.SeekCurrent)
		if err == nil {
			return c.readSeekable(f, from)
		}
	}
	s, err := snapshot.NewStream(r)
	if err == nil {
		err = checkProgram(&s.Header, c.version)
	}
	if err != nil {
		return s.Read(), err
	}
	defer c.countNamespaces()
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

// seekable is a reader from which a snapshot can be read in any order.
type seekable interface {
	io.ReaderAt
	io.Seeker
}

// readSeekable is ReadSnapshot from a reader that can be read at any offset.
func (c *Cache) readSeekable(f seekable, from int64) (int64, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	s, err := snapshot.Scan(io.NewSectionReader(f, from, size-from), size-from, false)
	read := int64(0)
	if err == nil {
		read = s.Size
		err = c.restore(s, c.termsOf(&s.Header))
	}
	_, err2 := f.Seek(from+read, io.SeekStart)
	return read, errors.Join(err, err2)
}

// terms tell how the records of a snapshot become entries of a cache.
type terms struct {
	timed bool  // how much time has passed is known; else entries with an expiry are left out
	shift int64 // ticks from the clock of the saved cache to that of this one
	fresh bool  // nobody else knows the cache: of two records of a key, it gets the later one
}

// termsOf returns the terms for a cache that has a clock of its own.
func (c *Cache) termsOf(h *snapshot.Header) terms {
	age := c.shared.Age() // first, so that the other age is too great rather than too small
	then, ok := c.machine.Moment().Resume(markOf(h).Age, markOf(h).At)
	shift := (age - then) / clock.Tick
	if age-then < shift*clock.Tick {
		shift-- // rounded down: entries expire early rather than late
	}
	return terms{timed: ok, shift: int64(shift)}
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
	c      *Cache
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

func (c *Cache) newRestorer(t terms) *restorer {
	r := &restorer{terms: t, c: c}
	r.w.Reason = store.Unsaid // of a record that a later one replaces
	return r
}

// longestBlock returns the size of the longest block that can hold an entry for the cache.
func (c *Cache) longestBlock() uint64 {
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
func (c *Cache) restore(s *snapshot.Contents, t terms) error {
	if err := checkProgram(&s.Header, c.version); err != nil {
		return err
	}
	workers, room := runtime.GOMAXPROCS(0), uint64(c.shared.Bound())
	if c.onRemove != nil {
		workers = 1 // the caller's goroutine is the one that calls it
	}
	defer c.countNamespaces()
	return s.Load(workers, c.longestBlock(), room, func() func(*snapshot.Ref, []byte) error {
		return c.newRestorer(t).restore
	})
}

// restore adds the entries of a block to the cache, once it is known that all are valid.
func (t *restorer) restore(ref *snapshot.Ref, body []byte) error {
	defer func() { t.c.snapshots.loaded.Add(t.loaded); t.loaded = 0 }() // workers share the counter
	t.items = t.items[:0]
	err := ref.Each(body, func(r *snapshot.Record) {
		hash := t.c.shared.Hash(body[r.At+r.Size:][:r.KeyLen])
		t.items = append(t.items, item{hash, r.At, r.Ring, uint8(r.Freq)})
	})
	for from := 0; err == nil && from < len(t.items); {
		if !t.prepare(t.items[from], body) {
			from++
			continue
		}
		var n int
		if t.c.shared.IsLarge(t.w.Bytes) {
			n, err = 1, t.restoreLarge(t.items[from])
		} else {
			n, err = t.restoreSmall(from, body)
		}
		from += n
	}
	return err
}

// restoreSmall restores items of one small bucket under its lock: the one that was prepared, and
// those that follow. It returns their number.
func (t *restorer) restoreSmall(from int, body []byte) (n int, err error) {
	b := t.c.bucket(t.items[from].hash)
	if t.c.shared.Arrivals.Held.Load() > 0 && b.isShort(t.w.Bytes) {
		t.c.freeForSmall(&t.w)
	}
	n, news, err := t.restoreStep(b, from, body)
	if news.Bytes > 0 {
		t.c.noteArrivals(b, news, &t.w)
	}
	t.c.notify(&t.w)
	return n, err
}

// restoreStep is one step of restoreSmall. It returns the arrivals as setInBucket does.
func (t *restorer) restoreStep(
	b *bucket, from int, body []byte,
) (n int, news store.Arrival, err error) {
	b.lock()
	defer b.unlockFor(&t.w)
	if b.Closed {
		return 0, news, ErrClosed
	}
	items := t.items[from:]
	for bytes := 0; n < len(items) && n < store.StepRecords && bytes < store.StepBytes; n++ {
		if n+prefetched < len(items) {
			hash := items[n+prefetched].hash
			t.c.bucket(hash).Index.Prefetch(hash, 1)
		}
		it := items[n]
		if t.c.bucket(it.hash) != b {
			break
		}
		if n > 0 && !t.prepare(it, body) {
			continue
		}
		if t.c.shared.IsLarge(t.w.Bytes) {
			break
		}
		if t.w.Bytes > b.Longest || t.c.inLargeLocked(&t.w, t.yieldsLocked) {
			continue
		}
		if err := t.insistLocked(b, it); err != nil {
			return n, news, err
		}
		bytes += t.w.Bytes
		if more := b.Arrived(t.w.Bytes); more.Bytes > 0 {
			t.c.levelLocked(b, &t.w, more.Bytes)
			news.Records += more.Records
			news.Bytes += more.Bytes
		}
	}
	return n, news, nil
}

// prepare sets the next write to an item's entry, and measures it. It reports false if the entry
// has expired, if it is unknown whether it has, or if it is the generation of a namespace in use.
func (t *restorer) prepare(it item, body []byte) bool {
	w, rec, s := &t.w, body[it.at:], t.c.shared
	hd, ok := record.Plain.ParseShort(rec) // Each has seen it, and frequencies follow
	if !ok {
		hd, _ = record.Plain.Parse(rec)
	}
	w.Hash, w.Negative, w.Internal = it.hash, hd.Kind == record.Negative, hd.Kind == record.Internal
	w.Key, w.Value = rec[hd.Size:][:hd.KeyLen], rec[hd.Size+hd.KeyLen:][:hd.ValueLen]
	w.Expiry, w.Until, w.Bytes, t.rec = 0, 0, hd.Total(), rec[:hd.Total()]
	if s.Form == record.Plain && hd.Size == record.ShortHeader && !s.Idles() {
		return !t.c.isForgotten(w.Key) // nearly always: the record stays as it is
	}
	t.rec, w.Expiry = nil, t.tick(hd.Expiry)
	if hd.Deadlines == record.Idle {
		w.Expiry, w.Until = t.tick(hd.Last(rec)), w.Expiry
	}
	if w.Negative && w.Expiry == 0 {
		w.Expiry = clock.Never
	}
	w.Measure(s)
	if w.Internal {
		return !t.c.hasNamespaceOf(w.Key)
	}
	isOver := hd.Expiry != 0 && hd.Expiry != clock.Never && !t.timed ||
		s.Expired(w.Expiry) || s.Expired(w.Until)
	return !isOver && !t.c.isForgotten(w.Key)
}

// yieldsLocked reports whether the item that was prepared is not stored because a bucket has its
// key. If the cache is fresh, it removes the older record instead.
func (t *restorer) yieldsLocked(b *bucket) bool {
	if t.fresh {
		b.Delete(&t.w.Write, nil)
		return false
	}
	return b.Holds(&t.w.Write)
}

// restoreLarge is setLarge for the item that was prepared, unless its key is present.
func (t *restorer) restoreLarge(it item) error {
	c, w, a := t.c, &t.w, &t.c.arena
	defer c.notify(w)
	a.mu.Lock()
	defer a.mu.Unlock()
	c.shared.CountArrival(store.Arrival{Records: 1, Bytes: w.Bytes}, true)
	lb := c.largeBucket(w.Hash)
	defer c.endLargeSet(c.beginLargeSet(lb, w.Bytes))
	c.makeWay(lb, w)
	if len(w.Value) > c.shared.MaxValue() || c.exceedsMemory(w.Bytes) != nil {
		return nil
	}

	b := c.bucket(w.Hash)
	b.lock()
	defer b.unlockFor(w)
	if b.Closed {
		return ErrClosed
	}
	if t.yieldsLocked(b) {
		return nil
	}
	lb.lock()
	defer lb.unlockFor(w)
	if c.isForgotten(w.Key) { // as in setLarge
		return nil
	}
	if err := t.insistLocked(lb, it); err != nil {
		return err
	}
	lb.Arrived(w.Bytes)
	return nil
}

// insistLocked is restoreLocked that makes other buckets release memory if necessary.
func (t *restorer) insistLocked(b *bucket, it item) error {
	err := t.restoreLocked(b, it)
	if err != nil {
		restore := func() error { return t.restoreLocked(b, it) }
		err = t.c.insistLocked(b, &t.w, err, restore)
	}
	return err
}

// restoreLocked puts the write's record into bucket b.
func (t *restorer) restoreLocked(b *bucket, it item) error {
	w := &t.w
	in := policy.Main
	if it.ring == snapshot.Small && t.c.shared.Policy != policy.FIFO {
		in = policy.Small
	}
	stored, err := b.Restore(&w.Write, t.rec, in, int(it.freq), t.fresh)
	if stored && w.Internal {
		t.c.adoptEntry(w.Value)
	} else if stored {
		t.loaded++
	}
	return err
}
