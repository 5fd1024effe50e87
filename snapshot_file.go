package ringcache

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	"github.com/ringcache/ringcache/internal/osfile"
	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/store"
)

// LoadReport describes what [Load] has loaded from a snapshot.
type LoadReport struct {
	// Entries is the number of entries of the snapshot that were stored. If the cache is smaller than
	// the snapshot, later entries may have evicted some of them.
	Entries int

	// DiscardedBlocks is the number of blocks, of up to 1 MB, that were left out because they were
	// damaged or missing. A file that cannot be used at all counts as one; a missing file counts as
	// none.
	DiscardedBlocks int

	// Err is nil if the file is a complete snapshot. Otherwise it describes the first defect, and
	// names the file:
	//
	//   - [fs.ErrNotExist]: there is no file, as on the first start;
	//   - [ErrCorrupt]: the file is damaged, and its undamaged blocks were loaded, or it is not a
	//     snapshot;
	//   - [ErrVersion]: a newer version of this package has written it, or a program with a different
	//     [Options].Version; nothing was loaded;
	//   - [ErrNoMemory]: the operating system refused the memory for the rest of the entries;
	//   - any other error is that of the file system, or says that the file is not regular.
	Err error
}

// Load returns a cache with the settings of o, filled with as much of the snapshot at path as fits
// and is usable: from a damaged file it loads every undamaged block. A service can always start
// with this one call, whatever the state of the file, and log [LoadReport].Err. The error is one of
// [NewWithOptions]; only then is the cache nil.
//
// Entries come back as [LoadFromFile] describes. If not all of them fit, the hottest ones stay. The
// settings of the saved cache do not matter, except for Options.Version, which must be the same. If
// Options.ExpectedEntries is 0, Load sets it to the number of entries in the snapshot. With
// Options.File, an entry in that file takes precedence over one in the snapshot.
//
// Up to GOMAXPROCS goroutines load, and end before Load returns; each uses a few megabytes. With
// Options.OnRemove, only the caller's goroutine loads, and OnRemove may be called before Load has
// returned the cache. If OnRemove panics, the cache is closed, and the panic reaches the caller of
// Load.
func Load(path string, o Options) (*Cache, LoadReport, error) {
	f, s, cause := openSnapshot(path, true)
	if cause == nil {
		defer f.Close()
		cause = checkProgram(&s.Header, o.Version)
	}
	if cause == nil && o.ExpectedEntries == 0 {
		o.ExpectedEntries = expectedEntries(s, o.MaxBytes)
	}
	c, terms, err := newLike(s, o)
	if err != nil {
		return nil, LoadReport{}, err
	}
	loaded := false
	defer func() {
		if !loaded {
			c.Close()
		}
	}()
	switch {
	case cause == nil:
		cause = c.salvage(s, terms)
	case !errors.Is(cause, fs.ErrNotExist):
		c.snapshots.discarded.Add(1)
	}
	loaded = true
	report := LoadReport{
		Entries:         int(c.snapshots.loaded.Load()),
		DiscardedBlocks: int(c.snapshots.discarded.Load()),
	}
	if cause != nil {
		report.Err = snapshotError(path, cause)
	}
	return c, report, nil
}

// newLike returns a cache for the entries of a snapshot, which may be nil, and the terms on which
// it gets them. It has the hash secret of the saved cache, so that the records of a run belong to
// few buckets, and continues its clock; a cache in a file has a clock already.
func newLike(s *snapshot.Contents, o Options) (c *Cache, t terms, err error) {
	if err := o.validate(); err != nil {
		return nil, t, err
	}
	g := geometryFor(o)
	if s != nil && isSecret(s.Header.Secret) { // else the header was made by hand
		g.config.Seed = s.Header.Secret
	}
	if s != nil && o.File == "" {
		// Nobody else knows the cache: of two records of a key, it gets the later one.
		to := store.Restored{Replace: true, Fit: fits(s, o.MaxBytes)}
		t = terms{timed: g.resumeClock(markOf(&s.Header)), to: to, names: generations{}}
	}
	if c, err = g.open(); err == nil && s != nil && o.File != "" {
		t = c.termsOf(&s.Header)
	}
	return c, t, err
}

// salvage restores the undamaged part of a snapshot, and returns the first defect.
func (c *engine) salvage(s *snapshot.Contents, t terms) error {
	err := c.restore(s, t)
	c.snapshots.discarded.Add(uint64(s.Damaged))
	if err == nil {
		err = s.Damage()
	}
	return err
}

// LoadFromFile returns a cache with the entries of the snapshot at path, and with the options
// MaxBytes, Policy, TTL, ExpireAfterAccess (truncated to tenths of a second), RefreshAhead and
// HugePages of the saved cache. [Load] uses the program's own options, and accepts a missing or
// damaged file.
//
// Entries come back with their remaining times to live, in their old order and with their read
// frequencies, so the hit ratio continues where it was. Entries that have expired since are left
// out. The elapsed time is measured by the wall clock or, within one boot of the machine, by its
// boot clock if that shows more. Entries with an expiry are left out if the wall clock is earlier
// than at the save, or was not set then (before 2025). The only counter that includes loaded
// entries is [Stats].RestoredEntries.
//
// The error is [ErrCorrupt] for any defect of the file, and names the file, the offset and the
// defect; [ErrVersion] if a newer version of this package has written it, or its [Options].Version
// is not 0; and otherwise that of the file system, including the one for a file that is not
// regular: use [Cache.ReadSnapshot] to read a pipe. On an error the cache is nil. Up to GOMAXPROCS
// goroutines load, and end before LoadFromFile returns; each uses a few megabytes.
func LoadFromFile(path string) (*Cache, error) {
	c, err := loadWhole(path)
	if err != nil {
		return nil, snapshotError(path, err)
	}
	return c, nil
}

// snapshotError returns the error of a file that cannot be loaded.
func snapshotError(path string, cause error) error {
	return fmt.Errorf("ringcache: load snapshot: %s: %w", path, cause)
}

func loadWhole(path string) (*Cache, error) {
	f, s, err := openSnapshot(path, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := s.Damage(); err != nil {
		return nil, err
	}
	c, terms, err := newLike(s, optionsOf(s))
	if err != nil {
		return nil, err
	}
	if err := c.restore(s, terms); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// openSnapshot opens the file at path, and scans it as snapshot.Scan does.
func openSnapshot(path string, salvage bool) (*os.File, *snapshot.Contents, error) {
	f, err := osfile.Open(path, os.O_RDONLY)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil {
		var s *snapshot.Contents
		if s, err = snapshot.Scan(f, info.Size(), salvage); err == nil {
			return f, s, nil
		}
	}
	f.Close()
	return nil, nil, err
}

// optionsOf returns the options of the saved cache.
func optionsOf(s *snapshot.Contents) Options {
	h := &s.Header
	o := Options{
		MaxBytes: max(int(min(h.MaxBytes, math.MaxInt)), minMaxBytes), // 32-bit platforms have less
		Policy:   Policy(h.Policy), HugePages: HugePages(h.HugePages),
		TTL: h.TTL, RefreshAhead: h.RefreshAhead, ExpireAfterAccess: h.Idle,
	}
	if o.Policy > PolicyFIFO {
		o.Policy = PolicyS3FIFO // one that this version does not know
	}
	if o.HugePages > HugePagesAtOnce {
		o.HugePages = HugePagesWhenFull
	}
	// Invalid options in a handmade header must not prevent loading the entries.
	if o.validate() != nil {
		o.TTL, o.RefreshAhead, o.ExpireAfterAccess = 0, 0, 0
	}
	o.ExpectedEntries = expectedEntries(s, o.MaxBytes)
	return o
}

// expectedEntries returns Options.ExpectedEntries for a cache that loads a snapshot: the number of
// entries in the file, not the number in its header, and no more than fit.
func expectedEntries(s *snapshot.Contents, maxBytes int) int {
	entries, bytes := contentsOf(s)
	if entries == 0 {
		return 0
	}
	return int(min(entries, uint64(maxBytes)/(bytes/entries+store.SlotBytes)))
}

// contentsOf returns the number of entries in a file, and the bytes of their records.
func contentsOf(s *snapshot.Contents) (entries, bytes uint64) {
	for i := range s.Blocks {
		entries += uint64(s.Blocks[i].Records)
		bytes += s.Blocks[i].Size
	}
	return entries, bytes
}

// fitsFree: a cache has room for all entries of a larger one if they leave 1/fitsFree of it, which
// the ends of chunks need.
const fitsFree = 16

// fits reports whether a cache of maxBytes has room for all entries of a snapshot.
func fits(s *snapshot.Contents, maxBytes int) bool {
	entries, bytes := contentsOf(s)
	if uint64(maxBytes) < s.Header.MaxBytes {
		maxBytes -= maxBytes / fitsFree
	}
	return bytes+entries*store.SlotBytes <= uint64(maxBytes)
}
