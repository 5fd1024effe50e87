package ringcache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
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
	if c.space != nil {
		return 0, ErrNamespace
	}
	if f, ok := r.(seekable); ok {
		from, err := f.Seek(0, io.SeekCurrent)
		if err == nil {
			return c.readSeekable(f, from)
		}
	}
	s, err := snapshot.NewStream(r, c.longestBlock())
	if err != nil {
		return s.Read, err
	}
	if err := checkProgram(&s.Header, c.version); err != nil {
		return s.Read, err
	}
	t := c.newRestorer(&s.Header)
	t.names = generations{}
	for {
		ref, body, err := s.Next()
		if err == nil && ref.IsNames() {
			err = ref.Names(body, t.names.of(c.engine))
		} else if err == nil {
			err = t.restore(&ref, body)
		}
		if err == io.EOF {
			return s.Read, nil
		}
		if err != nil {
			return s.Read, err
		}
	}
}

// seekable is a reader from which a snapshot can be read in any order.
type seekable interface {
	io.ReaderAt
	io.Seeker
}

// readSeekable is ReadSnapshot from a reader that can be read at any offset.
func (c *engine) readSeekable(f seekable, from int64) (int64, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	s, err := snapshot.Scan(io.NewSectionReader(f, from, size-from), size-from, false)
	read := int64(0)
	if err == nil {
		read = s.Size
		err = c.restore(s)
	}
	_, err2 := f.Seek(from+read, io.SeekStart)
	return read, errors.Join(err, err2)
}

// restorer restores one block after another.
type restorer struct {
	c             *engine
	clock         clock.Wall
	names         generations
	timed         bool // entries with an expiry are restored
	items, sorted []item
	ends          [store.BucketCount]int // of each bucket's items in sorted
	w             write
	loaded        uint64 // entries that c.snapshots.loaded does not count yet
}

// generations are those of the namespaces of a snapshot, and what they are in the cache.
type generations map[uint64]uint64

// of returns a function that makes a namespace of the snapshot known to the cache.
func (m generations) of(c *engine) func(name string, g uint64) {
	return func(name string, g uint64) {
		var w write
		defer c.notifyQuiet(&w)
		c.spaces.mu.Lock()
		defer c.spaces.mu.Unlock()
		m[g] = c.spaceLocked(name, &w).space.generation.Load()
	}
}

// prefetched is the number of items by which the prefetching of index groups runs ahead. If the
// cache and the snapshot have different hash secrets, a block has a few items of each bucket, so
// the group is often of another bucket.
const prefetched = 16

// item is an entry of a block.
type item struct {
	snapshot.Entry
	hash uint64
	key  int // offset of its key in the body
}

func (c *engine) newRestorer(h *snapshot.Header) *restorer {
	saved := clock.Moment{Wall: h.Saved, Boot: h.SinceBoot, ID: h.Boot}
	passed, ok := c.machine.Moment().Since(saved)
	return &restorer{c: c, clock: c.shared.Wall(h.Saved.Add(passed)), timed: ok}
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
func (c *engine) restore(s *snapshot.Contents) error {
	if err := checkProgram(&s.Header, c.version); err != nil {
		return err
	}
	workers, room := runtime.GOMAXPROCS(0), uint64(c.shared.Bound())
	if c.onRemove != nil {
		workers = 1 // the caller's goroutine is the one that calls it
	}
	names := generations{}
	if err := s.Names(c.longestBlock(), names.of(c)); err != nil {
		return err
	}
	return s.Load(workers, c.longestBlock(), room, func() func(*snapshot.Ref, []byte) error {
		t := c.newRestorer(&s.Header)
		t.names = names
		return t.restore
	})
}

// restore adds the entries of a block to the cache, grouped by bucket.
func (t *restorer) restore(ref *snapshot.Ref, body []byte) error {
	c := t.c
	defer func() { c.snapshots.loaded.Add(t.loaded); t.loaded = 0 }() // workers share the counter
	t.items, t.ends = t.items[:0], [store.BucketCount]int{}
	var large []item
	err := ref.Each(body, func(key int, e snapshot.Entry) {
		it := item{Entry: e, key: key}
		if e.Spaced && !t.rename(body[key:]) {
			return
		}
		it.hash = c.shared.HashOf(body[key:key+e.KeyLen], it.kind())
		t.fill(it, body)
		if c.shared.IsLarge(t.w.Bytes) {
			large = append(large, it)
			return
		}
		t.items = append(t.items, it)
		t.ends[it.hash&c.mask]++
	})
	if err != nil {
		return err
	}
	t.sort()
	from := 0
	for i, end := range t.ends[:c.shared.Buckets] {
		if err := t.restoreSmall(&c.buckets[i], from, end, ref, body); err != nil {
			return err
		}
		from = end
	}
	for _, it := range large {
		if err := t.restoreLarge(it, ref, body); err != nil {
			return err
		}
	}
	return nil
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

// kind returns the kind of an item's record.
func (it *item) kind() (k record.Kind) {
	if it.Negative {
		k = record.Negative
	}
	if it.Spaced {
		k |= record.Spaced
	}
	return k
}

// sort groups the items by bucket, in their order. ends has the number of items of each bucket.
func (t *restorer) sort() {
	t.sorted = slices.Grow(t.sorted[:0], len(t.items))[:len(t.items)]
	at := 0
	for i, n := range t.ends {
		t.ends[i] = at
		at += n
	}
	for _, it := range t.items {
		end := &t.ends[it.hash&t.c.mask]
		t.sorted[*end] = it
		*end++
	}
}

// restoreSmall restores the sorted items of a small bucket, locking it for one step at a time.
func (t *restorer) restoreSmall(b *bucket, from, end int, ref *snapshot.Ref, body []byte) error {
	for from < end {
		if t.c.shared.Arrivals.Held.Load() > 0 {
			t.freeForItems(b, t.sorted[from:end], body)
		}
		n, news, err := t.restoreStep(b, from, end, ref, body)
		if news.Bytes > 0 {
			t.c.noteArrivals(b, news, &t.w)
		}
		t.c.notify(&t.w)
		if err != nil {
			return err
		}
		from += n
	}
	return nil
}

// freeForItems frees memory for the items as setSmall does for a record.
func (t *restorer) freeForItems(b *bucket, items []item, body []byte) {
	longest := 0
	for _, it := range items {
		t.prepare(it, body)
		longest = max(longest, t.w.Bytes)
	}
	if t.w.Bytes = longest; b.isShort(longest) {
		t.c.freeForSmall(&t.w)
	}
}

// restoreStep is one step of restoreSmall. It returns the number of restored items, and the
// arrivals as setInBucket does.
func (t *restorer) restoreStep(
	b *bucket, from, end int, ref *snapshot.Ref, body []byte,
) (n int, news store.Arrival, err error) {
	b.lock()
	defer b.unlockFor(&t.w)
	if b.Closed {
		return 0, news, ErrClosed
	}
	items := t.sorted[from:end]
	for bytes := 0; n < len(items) && n < store.StepRecords && bytes < store.StepBytes; n++ {
		if ahead := from + n + prefetched; ahead < len(t.sorted) { // often in another bucket
			hash := t.sorted[ahead].hash
			t.c.bucket(hash).Index.Prefetch(hash, 1)
		}
		if !t.prepare(items[n], body) || t.w.Bytes > b.Longest || t.isLargeLocked() {
			continue
		}
		if err := t.insistLocked(b, int(ref.Rank), items[n].Freq); err != nil {
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

// prepare sets the next write to an item's entry. It reports false if the entry has expired, if it
// is unknown whether it has, or if its namespace was reset meanwhile.
func (t *restorer) prepare(it item, body []byte) bool {
	w := &t.w
	t.fill(it, body)
	isOver := it.Expiry|it.Until != 0 && !t.timed ||
		t.c.shared.Expired(w.Expiry) || t.c.shared.Expired(w.Until)
	return !isOver && !t.c.shared.IsForgotten(&w.Write)
}

// fill sets the next write to an item's entry, and measures it.
func (t *restorer) fill(it item, body []byte) {
	w, kv := &t.w, body[it.key:]
	w.Hash, w.Kind = it.hash, it.kind()
	w.Expiry, w.Until = t.clock.Tick(it.Expiry), t.clock.Tick(it.Until)
	w.Key, w.Value = kv[:it.KeyLen], kv[it.KeyLen:][:it.ValueLen]
	if it.Negative && w.Expiry == 0 {
		w.Expiry = clock.Never
	}
	w.Measure(t.c.shared)
}

// isLargeLocked reports whether the key of the write is in a large bucket. The lock of its small
// bucket is held.
func (t *restorer) isLargeLocked() bool {
	w := &t.w
	if t.c.shared.LargeKeysOf(w.Hash).Load() == 0 {
		return false
	}
	lb := t.c.largeBucket(w.Hash)
	lb.lock()
	defer lb.unlockFor(w)
	return lb.Holds(&w.Write)
}

// restoreLarge is setLarge for an item's entry, unless its key is present.
func (t *restorer) restoreLarge(it item, ref *snapshot.Ref, body []byte) error {
	c, w, a := t.c, &t.w, &t.c.arena
	if !t.prepare(it, body) {
		return nil
	}
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
	if b.Holds(&w.Write) {
		return nil
	}
	lb.lock()
	defer lb.unlockFor(w)
	if c.shared.IsForgotten(&w.Write) { // as in setLarge
		return nil
	}
	if err := t.insistLocked(lb, int(ref.Rank), it.Freq); err != nil {
		return err
	}
	lb.Arrived(w.Bytes)
	return nil
}

// insistLocked is restoreLocked that makes other buckets release memory if necessary.
func (t *restorer) insistLocked(b *bucket, rank, freq int) error {
	err := t.restoreLocked(b, rank, freq)
	if err != nil {
		restore := func() error { return t.restoreLocked(b, rank, freq) }
		err = t.c.insistLocked(b, &t.w, err, restore)
	}
	return err
}

// restoreLocked puts the write's record into bucket b, unless its key is present.
func (t *restorer) restoreLocked(b *bucket, rank, freq int) error {
	w := &t.w
	in := policy.Main
	if rank < snapshot.SmallRanks && t.c.shared.Policy != policy.FIFO {
		in = policy.Small
	}
	stored, err := b.Restore(&w.Write, in, freq)
	if stored {
		t.loaded++
	}
	return err
}
