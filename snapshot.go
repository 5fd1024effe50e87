package ringcache

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/ringcache/ringcache/internal/atomicfile"
	"github.com/ringcache/ringcache/internal/cold"
	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/osfile"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringfile"
	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/store"
)

// SaveOptions are the settings of [Cache.Save]. The zero value of each field selects its default.
type SaveOptions struct {
	// Concurrency is how many goroutines save at most, the caller's included. The default, 0, means
	// 1; values above GOMAXPROCS mean GOMAXPROCS.
	Concurrency int

	// If Partial is true and the context ends, Save completes the snapshot with the entries saved so
	// far, or fails if there are none. Entries with recent reads ([PolicyS3FIFO]) usually come first,
	// and again with all others, so a complete snapshot may be longer.
	Partial bool

	// Progress, if not nil, is called from time to time with the bytes of the records saved so far
	// and, until they exceed it, their approximate total. It runs in the caller's goroutine, with no
	// lock held. The last call, when everything is saved, has done equal to total.
	Progress func(done, total int64)
}

// SaveToFile writes a snapshot of the cache to the file at path, for [Load] and [LoadFromFile]. It
// is [Cache.Save] without a context or options.
func (c *Cache) SaveToFile(path string) error {
	return c.Save(context.Background(), path, SaveOptions{})
}

// Save writes a snapshot to the file at path: keys and values, their remaining times to live, and
// their state in the eviction policy. At any time, even after a crash, the file at path is either
// the old one or the new one, complete and synced to disk: the new one is written under another
// name in the same directory, on Unix with mode 0600. Files left there by a process that died are
// usually removed by the next Save to the same path. Missing directories are created. If path is a
// symbolic link, its target is replaced if possible; a link to a missing file is an error. A
// relative path is resolved when Save begins. Save replaces only a regular file that it can read:
// anything else, any cache's [Options].File and the files that belong to it are errors.
//
// Other goroutines may use the cache meanwhile: Save locks buckets briefly, and never while it
// writes to the file. A complete snapshot has each entry that is present throughout, with one of
// its values if it is set again, unless it becomes small or large meanwhile (see [Cache.All]), and
// none that was deleted earlier. Each goroutine uses up to a few megabytes, more for longer values.
//
// On an error the file at path is unchanged, unless only syncing its directory failed. The error
// may be the context's, [ErrClosed] or the file system's.
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
	s := c.newSaving(ctx)
	defer s.end()
	if err := checkTarget(path); err != nil {
		return err
	}
	f, err := atomicfile.Create(path)
	if err != nil {
		return err
	}
	defer f.Discard()
	s.To, s.Partial, s.Progress = f, o.Partial, o.Progress
	if err = s.Run(min(max(o.Concurrency, 1), runtime.GOMAXPROCS(0))); err != nil {
		return err
	}
	return f.Commit(checkTarget) // a cache may have made its file since
}

// checkTarget returns an error if the file at path is the Options.File of any cache, or belongs to
// one, even if that has yet to make it, or if it cannot be read.
func checkTarget(path string) error {
	magic, err := magicOf(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	of := ""
	if ext := filepath.Ext(path); ext == dictSuffix || ext == nameSuffix {
		of, _ = magicOf(strings.TrimSuffix(path, ext))
	}
	if of == ringfile.Magic ||
		slices.Contains([]string{ringfile.Magic, cold.Magic, nameMagic}, magic) {
		return errors.New("the file is the Options.File of a cache, or belongs to one")
	}
	return err
}

// magicOf returns the bytes at the beginning of a file that would tell that it belongs to a cache.
func magicOf(path string) (string, error) {
	f, err := osfile.Open(path, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, len(ringfile.Magic))
	_, _ = io.ReadFull(f, head) // a shorter file is none
	return string(head), nil
}

// WriteSnapshot writes a snapshot to w, such as a pipe, a compressor or an object store, for
// [Cache.ReadSnapshot], and returns the number of bytes written. The guarantees of [Cache.Save] for
// entries apply. Old entries come first, so that a stream that is read once roughly keeps their
// order. WriteSnapshot holds no lock of the cache while it writes, and starts no goroutine.
//
// WriteSnapshot returns w's error, or [ErrClosed] after Close; the bytes already written are
// usually no complete snapshot.
func (c *Cache) WriteSnapshot(w io.Writer) (int64, error) {
	if c.space != nil {
		return 0, fmt.Errorf("ringcache: write snapshot: %w", ErrNamespace)
	}
	s := c.newSaving(context.Background())
	defer s.end()
	s.To = w
	if err := s.Run(1); err != nil {
		return s.Written, fmt.Errorf("ringcache: write snapshot: %w", err)
	}
	return s.Written, nil
}

// How a snapshot is saved, from the call to the bytes. snapshot.Saver has the goroutines and the
// passes, and calls this package for the records:
//
//	Cache.Save, save     opens a temporary file; newSaving notes the sizes of all buckets
//	snapshot.Saver.Run   writes header, sizes and names, makes a pass for each quarter, ends
//	  Worker.walk        makes a step in each bucket of a lane in turn
//	    walker.step      Reserve: makes room in the block, and writes it if it is full
//	      copyRecords    under the lock: Store.Walk finds records, Ring.Plain copies them
//	      saveLater      those that are long or packed, one by one
//	  Worker.flush       Block.Finish packs the block, Saver.put writes it

// saving is a save of the cache.
type saving struct {
	snapshot.Saver
	c          *engine
	walks, hot []store.Walk // of each bucket: over all records, and over those that were read
	between    func()       // called between two parts of a long record; for tests
}

// newSaving returns a save without a destination. It must be ended.
func (c *engine) newSaving(ctx context.Context) *saving {
	n := c.shared.Buckets + store.LargeBuckets
	s := &saving{c: c, walks: make([]store.Walk, n), hot: make([]store.Walk, n)}
	s.Context, s.Parts, s.Header = ctx, n, c.snapshotHeader()
	s.Names = s.saveNamespaces
	s.Walker = func(w *snapshot.Worker) snapshot.Step { return (&walker{saving: s, Worker: w}).step }
	c.each(func(b *bucket) {
		b.look(func(of *store.Store) {
			sizes := of.Sizes()
			s.Header.Entries += uint64(sizes.Entries)
			s.Total += uint64(sizes.LiveBytes)
			s.Sizes = binary.LittleEndian.AppendUint64(s.Sizes, uint64(sizes.Entries))
			// Records of the cold part, which are unpacked, rather count twice than not at all.
			bytes := uint64(sizes.LiveBytes + sizes.Cold*sizes.Mean)
			s.Sizes = binary.LittleEndian.AppendUint64(s.Sizes, bytes)
		})
	})
	return s
}

// snapshotHeader returns the header of a snapshot that begins now.
func (c *engine) snapshotHeader() snapshot.Header {
	return snapshot.Header{
		Salt:         rand.Uint64(),
		MaxBytes:     uint64(c.shared.Bound()),
		TTL:          c.options.TTL,
		RefreshAhead: c.options.RefreshAhead,
		Idle:         c.options.ExpireAfterAccess,
		Mark:         c.mark(),
		Program:      c.options.Version,
		Secret:       c.shared.Seed,
		Policy:       uint8(c.shared.Policy),
		HugePages:    uint8(c.options.HugePages),
	}
}

// end ends the walks.
func (s *saving) end() {
	for i := range s.walks {
		s.c.nth(i).look(func(b *store.Store) {
			b.EndWalk(&s.walks[i])
			b.EndWalk(&s.hot[i])
		})
	}
}

// saveNamespaces saves the name of each namespace, under its generation.
func (s *saving) saveNamespaces(w *snapshot.Worker) (err error) {
	s.c.spaces.byName.Range(func(_, of any) bool {
		n := of.(*Cache).space
		var buf [record.MaxHeader]byte
		header := record.Plain.Put(&buf, record.Value, generation.Size, len(n.name), record.Times{})
		if err = w.Reserve(len(header) + len(n.name) + generation.Size); err == nil {
			w.Begin(policy.Main)
			w.Bytes = append(w.Bytes, header...)
			w.Bytes = binary.LittleEndian.AppendUint64(w.Bytes, n.generation.Load())
			w.Bytes = append(w.Bytes, n.name...)
			w.End(policy.MaxFreq)
		}
		return err == nil
	})
	return err
}

// walker goes over buckets and copies their records.
type walker struct {
	*saving
	*snapshot.Worker
	spots  []store.Spot
	later  []laterKey // of the records that the last step has not copied
	stored []byte     // a value of those, as it is stored
	value  []byte     // and unpacked
}

// laterKey is the key of a record that is copied after a step, by itself.
type laterKey struct {
	key   []byte
	kind  record.Kind
	times record.Times // of its record, by copyValue
}

// longTries is the number of attempts to copy a record in parts before it is copied at once. A
// record of more than store.LongRecord bytes spans several chunks, so an overwrite in place counts
// as a rewrite of its bucket.
const longTries = 64

// step is a snapshot.Step.
func (w *walker) step(part, quarter int) (done bool, err error) {
	b := w.c.nth(part)
	if err := w.Reserve(store.StepBytes); err != nil {
		return false, err
	}
	if done, err = w.copyRecords(b, part, quarter); err != nil {
		return false, err
	}
	for i := range w.later {
		if err := w.saveLater(b, &w.later[i]); err != nil {
			return false, err
		}
	}
	return done, nil
}

// copyRecords copies the records of a step, and notes the keys of those that are long or packed, or
// of all of them if the walk is late.
func (w *walker) copyRecords(b *bucket, part, quarter int) (done bool, err error) {
	walk, left := &w.walks[part], snapshot.Quarters-quarter
	if quarter == 0 {
		walk, left = &w.hot[part], 0
	}
	w.later = w.later[:0]
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Closed {
		return false, ErrClosed
	}
	late := b.IsLate(walk)
	w.spots, done = b.Walk(walk, left, snapshot.Quarters, w.spots[:0])
	for i := range w.spots {
		sp := &w.spots[i]
		freq, ok := b.Freq(sp)
		if !ok || quarter == 0 && freq == 0 {
			continue
		}
		r, n := b.Ring(sp.Ring), sp.Total()
		if late || n > store.LongRecord || sp.Kind.Base() == record.Packed {
			k, _ := r.Read(make([]byte, 0, sp.KeyLen), sp.Pos+uint64(sp.Size), sp.KeyLen)
			w.later = append(w.later, laterKey{key: k, kind: sp.Kind})
			continue
		}
		w.Begin(sp.Ring)
		w.Bytes = r.Plain(w.Bytes, sp.Pos, sp.Header)
		w.End(freq)
		w.Saved += n
	}
	return done, nil
}

// saveLater saves the entry of a key, if it is still present. One that cannot be unpacked is as
// good as removed.
func (w *walker) saveLater(b *bucket, k *laterKey) error {
	var f store.Found
	for try, whole := 0, false; !whole; try++ {
		part := store.StepBytes
		if try == longTries {
			part = math.MaxInt
		}
		if f, whole = w.copyValue(b, k, part); f.Ring == nil {
			if w.c.isClosed() {
				return ErrClosed
			}
			return nil // it was removed
		}
	}
	v, kind := w.stored, f.Kind
	if f.IsPacked() {
		var err error
		if v, err = w.c.shared.Compression.Unpack(w.value[:0], v); err != nil {
			return nil
		}
		w.value, kind = v, kind&record.Spaced
	}
	var buf [record.MaxHeader]byte
	header := record.Plain.Put(&buf, kind, len(k.key), len(v), k.times)
	if err := w.Reserve(len(header) + len(k.key) + len(v)); err != nil {
		return err
	}
	w.Begin(index.Ring(f.Slot))
	w.Bytes = append(append(append(w.Bytes, header...), k.key...), v...)
	w.End(store.FreqOf(f.Slot))
	w.Saved += f.Total()
	return nil
}

// copyValue copies the value of a key as it is stored to w.stored, in parts, each under the lock,
// and notes the deadlines. It reports false for whole if the record may have been moved or
// rewritten meanwhile. If there is none, it returns the zero Found.
func (w *walker) copyValue(b *bucket, k *laterKey, part int) (f store.Found, whole bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.Shared.HashOf(k.key, k.kind)
	if !b.Find(&f, k.key, h) || b.Shared.Expired(f.Expiry) {
		return store.Found{}, true
	}
	r, rewrites := f.Ring, b.Rewrites
	k.times, w.stored = r.Times(f.Pos, f.Header), w.stored[:0]
	for {
		at := len(w.stored)
		w.stored, _ = r.Read(w.stored, f.ValuePos()+uint64(at), min(f.ValueLen-at, part))
		if len(w.stored) == f.ValueLen {
			return f, true
		}
		b.mu.Unlock()
		w.stored = slices.Grow(w.stored, f.ValueLen-len(w.stored)) // not under the lock, and once
		w.pause()
		b.mu.Lock()
		_, there := b.Index.Find(h, index.Ring(f.Slot), f.Pos)
		if b.Closed || !there || !r.Live(f.Pos) || b.Rewrites != rewrites {
			return f, false
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
