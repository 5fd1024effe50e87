package ringcache

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/ringcache/ringcache/internal/atomicfile"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/cold"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/store"
)

// SaveOptions are the settings of [Cache.Save]. The zero value of each field selects its default.
type SaveOptions struct {
	// Concurrency is the number of goroutines that save, the caller's included. The default, 0, means
	// 1; values above GOMAXPROCS mean GOMAXPROCS.
	Concurrency int

	// If Partial is true and the context ends, Save completes the snapshot with the entries saved so
	// far, and fails only if there are none. Entries that were read are saved first, then others of
	// the main ring ([PolicyS3FIFO]). Partial uses up to one byte of the Go heap for each entry.
	Partial bool

	// Progress, if not nil, is called from time to time with the bytes of the records saved so far and
	// their approximate total. It is called by the caller's goroutine, with no lock held. When
	// everything is saved, it is called with done equal to total.
	Progress func(done, total int64)
}

// SaveToFile writes a snapshot of the cache to the file at path, for [Load] and [LoadFromFile]. It
// is [Cache.Save] without a context, and with the default SaveOptions.
func (c *Cache) SaveToFile(path string) error {
	return c.Save(context.Background(), path, SaveOptions{})
}

// Save writes a snapshot to the file at path: keys and values, their remaining times to live, and
// their state in the eviction policy. At any time, even after a crash, the file at path is either
// the old one or the new one, complete and synced to disk: the new one is written under another
// name in the same directory, with mode 0600. Files left there by a process that died are removed
// by the next Save to the same path. Missing directories are created. If path is a symbolic link,
// its target is replaced. A relative path is resolved when Save begins. Save replaces
// only a regular file; if path names anything else, it returns an error.
//
// Other goroutines may use the cache meanwhile: a bucket is locked while 64 KB are copied, and
// never during writes to the file. An entry that is present throughout and is not set again is
// saved exactly once; one that was deleted earlier is not saved. One that is set again is saved
// with one of its values, with the exception that [Cache.All] states for large ones. Save uses up
// to 20 MB for each goroutine, plus the size of the longest value. Blocks are compressed if that
// makes them smaller.
//
// On an error the file at path is unchanged, unless it is the syncing of its directory that fails.
// The error is that of the context if it has ended, [ErrClosed] after Close, and that of the file
// system otherwise.
func (c *Cache) Save(ctx context.Context, path string, o SaveOptions) error {
	if err := c.save(ctx, path, o); err != nil {
		return fmt.Errorf("ringcache: save snapshot: %s: %w", path, err)
	}
	return nil
}

func (c *Cache) save(ctx context.Context, path string, o SaveOptions) error {
	if c.space != nil {
		return ErrNamespace
	}
	s := c.newSaver(ctx, snapshot.AtOnce)
	f, err := atomicfile.Create(path)
	if err != nil {
		return err
	}
	defer f.Discard()
	s.To, s.Partial, s.Progress = f, o.Partial, o.Progress
	if o.Partial {
		s.Passes = snapshot.HottestFirst
	}
	if err := s.Run(min(max(o.Concurrency, 1), runtime.GOMAXPROCS(0))); err != nil {
		return err
	}
	return f.Commit()
}

// WriteSnapshot writes a snapshot to w, such as a pipe, a compressor or an object store, for
// [Cache.ReadSnapshot], and returns the number of bytes written. The guarantees of [Cache.Save] for
// entries apply. Entries that are next to be evicted come first, so that a stream that is read once
// keeps their order. A block is at most 1 MB long, or consists of a single longer entry.
// WriteSnapshot holds no lock while it writes, and starts no goroutine.
//
// The error is that of w, or [ErrClosed] after Close; the bytes written by then are not a usable
// snapshot.
func (c *Cache) WriteSnapshot(w io.Writer) (int64, error) {
	if c.space != nil {
		return 0, fmt.Errorf("ringcache: write snapshot: %w", ErrNamespace)
	}
	s := c.newSaver(context.Background(), snapshot.ColdestFirst)
	s.Stream = w
	if err := s.Run(1); err != nil {
		return s.Written.Load(), fmt.Errorf("ringcache: write snapshot: %w", err)
	}
	return s.Written.Load(), nil
}

// newSaver returns a saver for the cache, without a destination.
func (c *engine) newSaver(ctx context.Context, passes []snapshot.Pass) *snapshot.Saver {
	var salt [8]byte
	rand.Read(salt[:]) // never fails
	at := c.machine.Moment()
	now := at.Wall.Truncate(time.Millisecond) // the precision of the header
	s := &snapshot.Saver{
		Context: ctx, Passes: passes, Parts: c.shared.Buckets + store.LargeBuckets, End: store.HashesEnd,
		Header: snapshot.Header{
			Salt:         binary.LittleEndian.Uint64(salt[:]),
			MaxBytes:     uint64(c.shared.Bound()),
			TTL:          c.ttl,
			RefreshAhead: c.ahead,
			Idle:         c.idle,
			Saved:        now,
			SinceBoot:    at.Boot,
			Boot:         at.ID,
			Program:      c.version,
			Secret:       c.shared.Seed,
			Policy:       uint8(c.shared.Policy),
			HugePages:    uint8(c.hugePages),
		},
		Names: map[string]uint64{},
	}
	c.spaces.byName.Range(func(name, n any) bool {
		s.Names[name.(string)] = n.(*Cache).space.generation.Load()
		return true
	})
	clock := c.shared.Wall(now)
	s.Step = func(out *snapshot.Worker) snapshot.Step {
		return (&walker{c: c, clock: clock, Worker: out}).part
	}
	s.Size = func(i int) int {
		b := c.nth(i)
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.Sizes().Records
	}
	c.each(func(b *bucket) {
		b.mu.Lock()
		sizes := b.Sizes()
		s.Header.Entries += uint64(sizes.Records)
		s.Header.Bytes += uint64(sizes.LiveBytes)
		b.mu.Unlock()
	})
	return s
}

// walker goes over buckets and copies their entries.
//
// It goes by hash, like a loop ([Cache.All]): when an entry moves to another ring, or its index to
// another geometry, it does not move to the other side of the cursor.
type walker struct {
	*snapshot.Worker
	c      *engine
	clock  clock.Wall
	slots  []uint64
	cell   []spot    // the entries of a cell
	long   []longKey // keys of long records, and of those that a step has no room for
	longer snapshot.Block
	packed []packedSpot
	stored []byte // the stored value of a packed record
	value  []byte // and the original one

	between func() // called between two parts of a long record; for tests
}

// spot is the location of an entry.
type spot struct {
	ring *ring.Ring
	pos  uint64
	record.Header
	rank, freq int
}

// longKey is the key of a record that is copied later.
type longKey struct {
	key  []byte
	kind record.Kind
}

// packedSpot is a packed record whose value is to be unpacked.
type packedSpot struct {
	longKey
	left int // bytes of the record that are not counted as saved yet
}

const (
	// A step ends when it has copied stepSaved bytes, so that writers do not wait long, and before it
	// copies more than StepBytes.
	stepSaved = 16 << 10

	// A record of more than longRecord bytes is copied in parts. It spans several chunks, so an
	// overwrite in place counts as a rewrite of its bucket.
	longRecord = chunk.MaxSize

	// longTries is the number of such attempts before the record is copied at once.
	longTries = 64
)

// part makes a step in a bucket.
func (w *walker) part(i int, at uint64, p snapshot.Pass, done *snapshot.Cells) (uint64, error) {
	b := w.c.nth(i)
	w.long, w.packed = w.long[:0], w.packed[:0]
	next, err := w.step(b, at, p, done)
	if err != nil {
		return at, err
	}
	for _, k := range w.long {
		if err := w.saveLong(b, k); err != nil {
			return at, err
		}
	}
	for i := range w.packed {
		if err := w.savePacked(w.packed[i].longKey); err != nil {
			return at, err
		}
		w.Bytes += w.packed[i].left
	}
	return next, nil
}

// step copies entries of b, starting at cursor at, and returns the cursor after them.
func (w *walker) step(b *bucket, at uint64, p snapshot.Pass, done *snapshot.Cells) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Closed {
		return 0, ErrClosed
	}
	end := w.gatherLocked(b, at, p, done)
	now := b.Shared.Now()
	for i := 0; i < len(w.slots); {
		cell, from, wanted := done.Of(index.HashOf(w.slots[i])), i, false
		for ; i < len(w.slots) && done.Of(index.HashOf(w.slots[i])) == cell; i++ {
			wanted = wanted || p(rankLocked(b, w.slots[i]), readsOf(w.slots[i]))
		}
		if !wanted || done.Has(cell) {
			continue
		}
		size := w.lookLocked(b, w.slots[from:i], now)
		if w.Bytes >= stepSaved || w.Bytes > 0 && w.Bytes+size > store.StepBytes {
			return done.Start(cell), nil
		}
		done.Add(cell)
		for j := range w.cell {
			w.copyLocked(&w.cell[j])
		}
	}
	return end, nil
}

// gatherLocked reads the slots of the next homes, and returns the cursor after those that are whole
// cells.
func (w *walker) gatherLocked(
	b *bucket, at uint64, p snapshot.Pass, done *snapshot.Cells,
) (end uint64) {
	w.slots, end = b.NextSlots(w.slots[:0], at, func(cursor uint64) uint64 {
		return done.Start(done.Of(cursor))
	})
	for _, slot := range w.slots {
		if p(rankLocked(b, slot), readsOf(slot)) {
			b.Ring(index.Ring(slot)).Prefetch(index.Pos(slot))
		}
	}
	return end
}

// lookLocked finds the records of a cell's slots, and returns the number of bytes to copy at once.
func (w *walker) lookLocked(b *bucket, slots []uint64, now uint32) (size int) {
	w.cell = w.cell[:0]
	for _, slot := range slots {
		sp, ok := spotLocked(b, slot)
		if !ok || sp.Expiry != 0 && now >= sp.Expiry || sp.Kind.Base() == record.Internal ||
			b.Namespaces().Forgot(sp.ring, sp.pos, sp.Header) {
			continue
		}
		w.cell = append(w.cell, sp)
		if n := sp.Total(); n <= longRecord {
			size += n
		} else {
			size += sp.KeyLen
		}
	}
	return size
}

// spotLocked returns the location of the entry of a live slot.
func spotLocked(b *bucket, slot uint64) (sp spot, ok bool) {
	r, pos := b.Ring(index.Ring(slot)), index.Pos(slot)
	sp = spot{ring: r, pos: pos, rank: rankLocked(b, slot), freq: readsOf(slot)}
	sp.Header, ok = r.Header(pos)
	return sp, ok
}

// readsOf returns the frequency of a slot's entry.
func readsOf(slot uint64) int {
	if index.Ring(slot).IsCold() {
		return 0 // the slot has its origin there
	}
	return index.Freq(slot)
}

// rankLocked returns the rank of a live slot's entry: the part of its ring that holds it, counted
// from the tail. The entries of the cold part are older than all others.
func rankLocked(b *bucket, slot uint64) int {
	in, pos := index.Ring(slot), index.Pos(slot)
	if in.IsCold() {
		return 0
	}
	r := &b.Rings[in]
	first, ranks := 0, uint64(snapshot.SmallRanks)
	if in == policy.Main {
		first, ranks = snapshot.SmallRanks, snapshot.Ranks-snapshot.SmallRanks
	}
	return first + int((pos-r.Tail)&r.Mask*ranks/max(r.Size, 1))
}

// copyLocked copies an entry to the block of its rank. If the entry is packed, long, or larger than
// the step may copy (a cell may have several entries), it records the key instead.
func (w *walker) copyLocked(sp *spot) {
	at, n := sp.pos+uint64(sp.Size), sp.KeyLen+sp.ValueLen
	isPacked := sp.Kind.Base() == record.Packed
	if sp.Total() > longRecord || w.Bytes+sp.Total() > store.StepBytes || isPacked {
		k, _ := sp.ring.Read(make([]byte, 0, sp.KeyLen), at, sp.KeyLen)
		if isPacked {
			w.packed = append(w.packed, packedSpot{longKey{k, sp.Kind}, sp.Total() - sp.KeyLen})
		} else {
			w.long = append(w.long, longKey{k, sp.Kind})
		}
		w.Bytes += sp.KeyLen
		return
	}
	b := &w.Blocks[sp.rank]
	from := len(b.Bytes)
	b.Bytes = w.appendEntry(b.Bytes, sp)
	b.Bytes, _ = sp.ring.Read(b.Bytes, at, n)
	b.Add(from, sp.freq)
	w.Bytes += sp.Total()
}

// appendEntry appends the part of an entry that precedes its key.
func (w *walker) appendEntry(b []byte, sp *spot) []byte {
	e := w.entryOf(sp.Kind, sp.ring.Times(sp.pos, sp.Header), sp.KeyLen, sp.ValueLen)
	e.Freq = sp.freq
	return snapshot.AppendEntry(b, e)
}

// entryOf returns an entry of a kind with the given deadlines.
func (w *walker) entryOf(k record.Kind, t record.Times, klen, vlen int) snapshot.Entry {
	e := snapshot.Entry{KeyLen: klen, ValueLen: vlen}
	e.Negative, e.Spaced = k.Base() == record.Negative, k&record.Spaced != 0
	if e.Expiry = w.clock.Time(t.Expiry); t.Deadlines == record.Idle {
		e.Expiry, e.Until = w.clock.Time(t.Last), e.Expiry
	}
	return e
}

// savePacked saves the entry of a packed record with its original value, if it is still present.
func (w *walker) savePacked(of longKey) error {
	k := of.key
	v, times, ok := w.unpack(of)
	if !ok {
		return nil // removed
	}
	b, rank, n := &w.Blocks[0], 0, snapshot.EntrySize(len(k)+len(v))
	if n > longRecord {
		b = &w.longer
		b.Reset()
	} else if err := w.Reserve(rank, n); err != nil {
		return err
	}
	from := len(b.Bytes)
	b.Bytes = snapshot.AppendEntry(b.Bytes, w.entryOf(of.kind, times, len(k), len(v)))
	b.Bytes = append(append(b.Bytes, k...), v...)
	b.Add(from, 0)
	if b == &w.longer {
		return w.Write(b, rank)
	}
	return nil
}

// unpack returns the value and the deadlines of a record that was packed when it was found.
func (w *walker) unpack(k longKey) (v []byte, t record.Times, ok bool) {
	h := w.c.shared.HashOf(k.key, k.kind)
	d, t, ok := w.readStored(w.c.bucket(h), k.key, h)
	if !ok {
		return nil, t, false
	}
	v, err := w.c.valueOf(w.value[:0], w.stored, d)
	w.value = v
	return v, t, err == nil
}

// readStored copies the stored value of a key, and returns the dictionary that it is packed with,
// or nil if it is no longer packed.
func (w *walker) readStored(
	b *bucket, k []byte, h uint64,
) (d *cold.Dictionary, t record.Times, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var f store.Found
	if !b.Find(&f, k, h) || !f.Kind.IsUsers() || b.Shared.Expired(f.Expiry) {
		return nil, t, false
	}
	w.stored, _ = f.Ring.Read(w.stored[:0], f.ValuePos(), f.ValueLen)
	if f.IsPacked() {
		d = b.Shared.Compression.DictOf(w.stored)
	}
	return d, f.Ring.Times(f.Pos, f.Header), true
}

// saveLong saves an entry of w.long in a separate block, if it is still present. It is rarely
// overwritten meanwhile.
func (w *walker) saveLong(b *bucket, k longKey) error {
	h, part := b.Shared.HashOf(k.key, k.kind), store.StepBytes
	for try := 0; ; try++ {
		if try == longTries {
			part = math.MaxInt
		}
		n, rank, whole := w.copyLong(b, k, h, part)
		if whole {
			w.Bytes += n
			return w.Write(&w.longer, rank)
		}
		if n == 0 {
			return nil // removed, or packed
		}
		room := snapshot.BlockHeaderSize + snapshot.EntrySize(n)
		w.longer.Bytes = slices.Grow(w.longer.Bytes[:0], room)
	}
}

// copyLong copies the entry of a key in parts, each under the lock, and returns the bytes of its
// record and its rank. The copy is not whole if there is no room for it yet, if the entry has moved
// in between, or if records were rewritten. If the entry was packed since step has seen it,
// savePacked will save it.
func (w *walker) copyLong(b *bucket, k longKey, h uint64, part int) (n, rank int, whole bool) {
	w.longer.Reset()
	b.mu.Lock()
	defer b.mu.Unlock()
	var f store.Found
	if !b.Find(&f, k.key, h) || b.Shared.Expired(f.Expiry) {
		return 0, 0, false
	}
	if f.Kind.Base() == record.Packed {
		w.packed = append(w.packed, packedSpot{k, f.Total()})
		return 0, 0, false
	}
	sp, ok := spotLocked(b, f.Slot)
	n = sp.Total()
	if buf := &w.longer.Bytes; !ok || cap(*buf)-len(*buf) < snapshot.EntrySize(n) {
		return n, 0, false
	}
	w.longer.Bytes = w.appendEntry(w.longer.Bytes, &sp)
	rewrites, end := b.Rewrites, sp.pos+uint64(n)
	for at := sp.pos + uint64(sp.Size); ; {
		more := int(min(end-at, uint64(part)))
		w.longer.Bytes, _ = sp.ring.Read(w.longer.Bytes, at, more)
		if at += uint64(more); at == end {
			w.longer.Add(snapshot.BlockHeaderSize, sp.freq)
			return n, sp.rank, true
		}
		b.mu.Unlock()
		w.pause()
		b.mu.Lock()
		_, there := b.Index.Find(h, index.Ring(f.Slot), sp.pos)
		if b.Closed || !there || !sp.ring.Live(sp.pos) || b.Rewrites != rewrites {
			return n, 0, false
		}
	}
}

// pause lets other goroutines take the lock that was released.
func (w *walker) pause() {
	if w.between != nil {
		w.between()
	}
	runtime.Gosched()
}
