package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// What the witness knows of snapshots, files and statistics.

// savedCache is a snapshot, and what the cache held.
type savedCache struct {
	data []byte
	path string
	has  map[entryKey]*entry
	none map[entryKey]time.Duration // without a value
}

// save writes a snapshot.
func (w *witness) save() error {
	s := savedCache{has: map[entryKey]*entry{}, none: maps.Clone(w.absent)}
	for k, e := range w.live {
		was := *e
		s.has[k] = &was
	}
	w.begin(opSilent, entryKey{space: -1})
	defer w.end()
	w.saves++ // two of them may have no write in between
	s.path = filepath.Join(w.dir, fmt.Sprint("snapshot", w.saves))
	if err := w.c.SaveToFile(s.path); err != nil {
		return err
	}
	var to bytes.Buffer
	n, err := w.c.WriteSnapshot(&to)
	if s.data = to.Bytes(); n != int64(to.Len()) {
		err = errors.Join(err, fmt.Errorf("%d bytes written, and said to be %d", to.Len(), n))
	}
	w.saved = append(w.saved[max(0, len(w.saved)-2):], s)
	return err
}

// restore loads a snapshot into the cache, or into another one of another bound.
func (w *witness) restore() error {
	if len(w.saved) == 0 {
		return nil
	}
	s := w.saved[w.rnd.IntN(len(w.saved))]
	another := !w.p.inFile && w.rnd.IntN(2) == 0
	w.note = fmt.Sprintf("of %d entries, another cache: %v", len(s.has), another)
	if another {
		w.leaveSum()
		if err := w.c.Close(); err != nil {
			return err
		}
		w.forget()
		w.bound = w.drawBound()
		w.note += fmt.Sprintf(" of %d", w.bound)
		if !w.p.real {
			w.buckets = 0
			if err := w.open(); err != nil {
				return err
			}
		}
	}
	before := map[entryKey]*entry{}
	for k := range w.live {
		before[k] = w.was(k)
	}
	restored := uint64(0)
	if !another {
		restored = w.c.Stats().RestoredEntries
	}
	w.begin(opResize, entryKey{space: -1})
	w.on.from = s.has
	err := w.load(&s, another)
	w.end()
	if err != nil {
		return err
	}
	return w.reconcile(&s, before, restored)
}

// load reads the snapshot.
func (w *witness) load(s *savedCache, another bool) error {
	if another && w.p.real {
		o := w.p.o
		o.MaxBytes, o.OnRemove = w.bound, w.removed
		c, report, err := ringcache.Load(s.path, o)
		if err != nil {
			return err
		}
		w.c = c
		w.measure()
		return report.Err
	}
	var from io.Reader = bytes.NewReader(s.data)
	if w.rnd.IntN(2) == 0 {
		from = io.MultiReader(from) // cannot seek
	}
	n, err := w.c.ReadSnapshot(from)
	if n != int64(len(s.data)) {
		err = errors.Join(err, fmt.Errorf("read %d bytes of %d", n, len(s.data)))
	}
	return err
}

// reconcile determines which entries of a snapshot were stored, and checks that they may be.
func (w *witness) reconcile(
	s *savedCache, before map[entryKey]*entry, restored uint64,
) error {
	fromTold, loaded, bytes := w.on.fromTold, 0, 0
	lost := errors.New("")
	for k, e := range s.has {
		bytes += e.Size + len(keyBytes(k.id)) + 100
		old := before[k]
		if old != nil && !old.mayBeOver(w.now()) { // it is newer
			if v, ok := w.peek(k); w.live[k] != nil && !(ok && old.Wrote(v)) {
				return fmt.Errorf("key %v has lost its value, %v", k, old.Stamp)
			}
			if w.live[k] != nil {
				continue
			} // else it was evicted before its turn came
		}
		v, ok := w.peek(k)
		switch {
		case ok && w.live[k] != nil && w.live[k].Wrote(v):
		case ok && w.live[k] != nil:
			return fmt.Errorf("key %v was loaded, and OnRemove not told of %v", k, w.live[k].Stamp)
		case ok && (e.isOver(w.on.started) || !e.Wrote(v)):
			return fmt.Errorf("key %v: %d bytes, want %v until %v", k, len(v), e.Stamp, e.over())
		case ok:
			loaded++
			now := *e
			now.soon -= w.lostByHop()
			now.idleSoon -= w.lostByHop()
			w.live[k] = &now
			delete(w.absent, k)
		case !e.mayBeOver(w.now()+w.lostByHop()) && len(w.on.told[k]) == 0 && len(w.absent) == 0:
			lost = fmt.Errorf("key %v of a snapshot, %v, was not loaded", k, e.Stamp)
		}
	}
	for k, at := range s.none {
		if w.live[k] == nil {
			w.absent[k] = at
		}
	}
	for k, e := range before {
		bytes += e.Size + len(keyBytes(k.id)) + 100
	}
	if lost.Error() != "" && 3*bytes < w.bound && w.longest(s.has) < w.bound/2000 {
		return fmt.Errorf("there was room: %d bytes: %w", bytes, lost)
	}
	n := w.c.Stats().RestoredEntries - restored
	most := len(s.has) + fromTold + w.negatives() + len(w.absent)
	if w.p.real && w.p.o.Compressor != nil {
		most += len(s.has) // the goroutine moves records meanwhile: a snapshot has those twice
	}
	if n < uint64(loaded+fromTold) || n > uint64(most) {
		return fmt.Errorf("RestoredEntries: %d more, of %d entries %d are there and %d have left again",
			n, len(s.has), loaded, fromTold)
	}
	return w.gauges()
}

// lostByHop returns what a snapshot may take of a TTL: a tick if the clock is that of a file, whose
// ticks begin at any moment.
func (w *witness) lostByHop() time.Duration {
	if w.p.inFile {
		return clock.Tick
	}
	return 0
}

func (w *witness) longest(all map[entryKey]*entry) (n int) {
	for _, e := range all {
		n = max(n, e.Size)
	}
	return n
}

// negatives returns how many negative entries a snapshot may have.
func (w *witness) negatives() int {
	if w.p.negative {
		return w.p.keys
	}
	return 0
}

// peek is Peek of a key, in a namespace that is known.
func (w *witness) peek(k entryKey) ([]byte, bool) {
	w.on.running = true
	defer w.end()
	return w.cacheOf(k.space).Peek(nil, keyBytes(k.id))
}

// reopen opens the file again, in order or after a crash of the process. Everything is found that
// OnRemove is not told of.
func (w *witness) reopen() error {
	if !w.p.inFile {
		return nil
	}
	crash := w.rnd.IntN(2) == 0 && !w.p.real
	w.leaveSum()
	if crash {
		ringtest.Abandon(w.c)
	} else {
		w.begin(opResetSpace, entryKey{space: -1}) // generations are stored
		err := w.c.Close()
		w.end()
		if err != nil {
			return err
		}
	}
	if w.rnd.IntN(2) == 0 {
		w.machine.Pass(time.Duration(w.rnd.IntN(2000)) * time.Millisecond)
	}
	w.bound = w.drawBound()
	w.note = fmt.Sprintf("with %d bytes, after a crash: %v", w.bound, crash)
	w.startCounts()
	clear(w.dead)
	before := maps.Clone(w.live)
	if err := w.open(); err != nil {
		return err
	}
	told, found := len(before)-len(w.live), 0
	for k, e := range before {
		e.soon -= 2 * time.Millisecond // the file's clock may be ahead a little
		e.idleSoon -= 2 * time.Millisecond
		if w.live[k] == nil {
			continue
		}
		v, ok := w.peek(k)
		switch {
		case ok && e.isOver(w.on.started):
			return fmt.Errorf("key %v is found, and has expired at %v", k, e.over())
		case ok && !e.Wrote(v):
			return fmt.Errorf("key %v: found %d bytes, want %v", k, len(v), e.Stamp)
		case ok:
			found++
		case w.isThere(e):
			return fmt.Errorf("key %v, %v, is not there again, and OnRemove was not told: %v",
				k, e.Stamp, e.over())
		default:
			delete(w.live, k)
		}
	}
	s := w.c.Stats()
	if n := int(s.File.RecoveredEntries); n < found+told || n > found+told+len(w.absent) ||
		s.File.DiscardedFiles != 0 {
		return fmt.Errorf("%d found, told of %d, RecoveredEntries is %d of %d and up to %d, "+
			"DiscardedFiles %d", found, told, n, len(before), len(w.absent), s.File.DiscardedFiles)
	}
	return w.gauges()
}

// gauges checks that what Stats says adds up with what was done, and what OnRemove has told.
func (w *witness) gauges() error {
	s := w.c.Stats()
	dead, least, most := uint64(0), uint64(0), uint64(0)
	for k, e := range w.live {
		n := uint64(e.Size + len(keyBytes(k.id)) + 8*min(k.space, 1))
		least, most = least+n, most+n
	}
	for k, all := range w.dead {
		for _, e := range all {
			dead++
			n := uint64(e.Size + len(keyBytes(k.id)) + 8)
			least, most = least+n, most+n
		}
	}
	entries, none := uint64(len(w.live))+dead, uint64(len(w.absent))
	least += 3 * entries
	most += 19*entries + 400*none
	if w.p.inFile {
		most += uint64(w.p.spaces) * 60 // generations
	}
	if w.p.o.Compressor != nil {
		least = 3 * entries
	}
	evicted := w.reasons[ringcache.RemovedEvicted]
	lenient := uint64(0) // negative entries leave untold
	if w.p.negative {
		lenient = 1 << 40
	}
	within := func(name string, got, least, most uint64) error {
		if got < least || got > most {
			return fmt.Errorf("%s is %d, want %d to %d", name, got, least, most)
		}
		return nil
	}
	exactly := func(name string, got, want uint64) error { return within(name, got, want, want) }
	bytes := w.bytes + 19*evicted + 8*evicted + lenient
	leastBytes := w.bytes
	if w.p.o.Compressor != nil {
		leastBytes = 0
	}
	return errors.Join(
		within("EntriesCount", s.EntriesCount, entries, entries+none),
		within("BytesSize", s.BytesSize, least, most),
		within("EvictedEntries", s.EvictedEntries, evicted, evicted+lenient),
		within("EvictedBytes", s.EvictedBytes, leastBytes, bytes),
		within("ExpiredEntries", s.ExpiredEntries, w.reasons[ringcache.RemovedExpired],
			w.reasons[ringcache.RemovedExpired]+lenient),
		exactly("MaxBytesSize", s.MaxBytesSize, uint64(w.bound)),
		exactly("EffectiveMaxBytes", s.EffectiveMaxBytes, uint64(w.bound)),
		within("ReservedBytes", s.ReservedBytes, s.IndexBytes, uint64(w.bound)),
		within("BytesSize", s.BytesSize+s.DeadBytes, 0, s.ReservedBytes),
		within("EvictedMisses", s.EvictedMisses, 0, s.Misses),
		exactly("Corruptions", s.Corruptions, 0),
		within("Refused.TooLarge", s.Refused.TooLarge, w.refused.TooLarge, w.refused.TooLarge+w.tooLong),
		exactly("Refused.TTLTooShort", s.Refused.TTLTooShort, w.refused.TTLTooShort),
		exactly("Refused.NoMemory", s.Refused.NoMemory, 0),
		exactly("Loads.Started", s.Loads.Started, w.loads.Started),
		exactly("Loads.Errors", s.Loads.Errors, w.loads.Errors),
		exactly("Loads.NegativeHits", s.Loads.NegativeHits, w.loads.NegativeHits),
		w.spaceGauges(&s))
}

// spaceGauges checks what Stats and Len say of the whole cache and of each namespace.
func (w *witness) spaceGauges(whole *ringcache.Stats) (err error) {
	has, none := make([]int, w.p.spaces+1), make([]int, w.p.spaces+1)
	for k := range w.live {
		has[k.space]++
	}
	for k := range w.absent {
		if k.space >= 0 {
			none[k.space]++
		}
	}
	for k, all := range w.dead {
		for _, e := range all {
			if e.unclear {
				none[k.space]++
			}
		}
	}
	for i := range has {
		c, s := w.c, *whole
		if i > 0 {
			c = w.in(entryKey{space: i})
			s = c.Stats()
		}
		if got := (counts{s.GetCalls, s.Misses, s.SetCalls, s.DelCalls}); got != w.counts[i] {
			err = errors.Join(err, fmt.Errorf("space %d: counts are %+v, want %+v", i, got, w.counts[i]))
		}
		n := c.Len()
		if i > 0 && n != int(s.EntriesCount) || n < has[i] || n > has[i]+none[i] {
			err = errors.Join(err, fmt.Errorf("space %d: Len is %d, EntriesCount %d, want %d to %d",
				i, n, s.EntriesCount, has[i], has[i]+none[i]))
		}
	}
	if names := slices.Collect(maps.Keys(maps.Collect(w.c.Namespaces()))); len(names) != w.p.spaces {
		err = errors.Join(err, fmt.Errorf("namespaces are %q", names))
	}
	return err
}
