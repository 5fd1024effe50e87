package ringcache

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	"github.com/ringcache/ringcache/internal/osfile"
	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/store"
)

// LoadReport describes what [Load] found in a snapshot.
type LoadReport struct {
	// Entries is the number of entries of the snapshot that were stored. If the cache is smaller than
	// the snapshot, later entries may have evicted some of them, and entries of a partial snapshot may
	// count twice.
	Entries int

	// DiscardedBlocks is about the number of damaged and missing blocks. A missing end counts as one
	// or two, a file that is refused as a whole as one, a missing file as none.
	DiscardedBlocks int

	// Err is nil if no defect was found. Otherwise it describes one, and names the file:
	//
	//   - [fs.ErrNotExist]: there is no file, as on the first start;
	//   - [ErrCorrupt]: the file is damaged, or not a snapshot; what could be read was loaded;
	//   - [ErrVersion]: its format is unknown, or a program with a different [Options].Version has
	//     written it; nothing was loaded;
	//   - [ErrNoMemory]: there was no memory for the rest of the entries;
	//   - any other error comes from the file system, or says that the file is not regular.
	Err error
}

// Load returns a cache with the settings of o, filled with as much of the snapshot at path as fits
// and is usable. A service can start with this one call, whatever the state of that file, and log
// [LoadReport].Err. The error is one that [NewWithOptions] returns; only then is the cache nil.
//
// Entries come back as [LoadFromFile] describes. If only some fit, it prefers hot ones
// ([PolicyFIFO]: new ones). Options.Version must be that of the saved cache. If
// Options.ExpectedEntries is 0, Load estimates it from the snapshot. With Options.File, an entry in
// that file takes precedence over one in the snapshot, but an entry that was deleted from the file
// since the save may come back.
//
// Up to GOMAXPROCS goroutines load, and end before Load returns. With Options.OnRemove, only the
// caller's goroutine loads, and OnRemove may be called before Load has returned the cache. If
// OnRemove panics, the cache is closed, and the panic reaches the caller of Load.
func Load(path string, o Options) (*Cache, LoadReport, error) {
	f, s, cause := openSnapshot(path, true, o.Version)
	if cause == nil {
		defer f.Close()
		o.ExpectedEntries = cmp.Or(o.ExpectedEntries, expectedEntries(s, o.MaxBytes))
	}
	c, terms, err := newLike(s, o)
	if err != nil {
		return nil, LoadReport{}, err
	}
	var report LoadReport
	loaded := false
	defer c.closeUnless(&loaded)
	switch {
	case cause == nil:
		cause = c.restore(s, terms)
		report.DiscardedBlocks = s.Damaged
		if cause == nil {
			cause = s.Damage()
		}
	case !errors.Is(cause, fs.ErrNotExist):
		report.DiscardedBlocks = 1
	}
	loaded = true
	report.Entries = int(c.restored.Load())
	if cause != nil {
		report.Err = snapshotError(path, cause)
	}
	return c, report, nil
}

// newLike returns a cache for the entries of a snapshot, which may be nil, and the terms on which
// it gets them. It has the hash secret of the saved cache, so that the records of a run belong to
// few buckets, and continues its clock; a cache in a file has a clock already.
func newLike(s *snapshot.Contents, o Options) (c *Cache, t *terms, err error) {
	if err := o.validate(); err != nil {
		return nil, t, err
	}
	g := geometryFor(o)
	if s != nil && isSecret(s.Header.Secret) { // else the header was made by hand
		g.config.Seed = s.Header.Secret
	}
	if s != nil && o.File == "" {
		// Nobody else knows the cache: of two records of a key, it gets the later one.
		t = &terms{timed: g.resumeClock(s.Header.Mark), replace: true, names: map[uint64]uint64{}}
		// Until the sizes are read, the bounds tell whether all entries fit, unless some are there
		// twice, as in a partial snapshot.
		t.room, t.fits = o.MaxBytes, uint64(o.MaxBytes) >= s.Header.MaxBytes &&
			expectedEntries(s, o.MaxBytes) == expectedEntries(s, math.MaxInt)
		if !t.fits {
			t.room -= t.room / fitsFree
		}
	}
	if c, err = g.open(); err == nil && s != nil && o.File != "" {
		t = c.termsOf(&s.Header)
	}
	return c, t, err
}

// LoadFromFile loads the snapshot at path into a new cache with the options
// MaxBytes, Policy, TTL, ExpireAfterAccess, RefreshAhead and HugePages of the saved cache. [Load]
// uses the program's own options, and accepts a missing or damaged file.
//
// Entries that fit come back with their remaining times to live, roughly in their old order and
// with their read frequencies. Entries that have expired since are left out. The elapsed time is
// measured by the wall clock or, within one boot of the machine, by its boot clock if that shows
// more. Entries with an expiry are left out if the wall clock is earlier than at the save, or was
// not set then (before 2025). Loaded entries count in [Stats].RestoredEntries, not as Sets.
//
// The error is one of [LoadReport], and the cache is then nil: [ErrCorrupt] for a defect of the
// file, with its offset, and [ErrVersion] also if the snapshot's [Options].Version is not 0. Use
// [Cache.ReadSnapshot] to read a pipe. Up to GOMAXPROCS goroutines load, and end before
// LoadFromFile returns; each uses a few megabytes, more for longer values.
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
	f, s, err := openSnapshot(path, false, 0)
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

// openSnapshot opens the file at path, and scans it as snapshot.Scan does. It returns an error if
// the snapshot is of another version of the program.
func openSnapshot(
	path string, salvage bool, version uint64,
) (f *os.File, s *snapshot.Contents, err error) {
	if f, err = osfile.Open(path, os.O_RDONLY); err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil {
		s, err = snapshot.Scan(f, info.Size(), salvage)
	}
	if err == nil {
		err = checkProgram(&s.Header, version)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, s, nil
}

// optionsOf returns the options of the saved cache.
func optionsOf(s *snapshot.Contents) Options {
	h := &s.Header
	o := Options{
		MaxBytes: int(max(min(h.MaxBytes, maxMaxBytes, math.MaxInt), minMaxBytes)),
		Policy:   Policy(h.Policy), HugePages: HugePages(h.HugePages),
		TTL: h.TTL, RefreshAhead: h.RefreshAhead, ExpireAfterAccess: h.Idle,
	}
	// Invalid options in a handmade header must not prevent loading the entries.
	if o.validate() != nil {
		o = Options{MaxBytes: o.MaxBytes}
	}
	o.ExpectedEntries = expectedEntries(s, o.MaxBytes)
	return o
}

// expectedEntries returns Options.ExpectedEntries for a cache that loads a snapshot: the number of
// entries in the file, not the number in its header, and no more than fit, or than the file has
// bytes: headers of blocks can claim any number.
func expectedEntries(s *snapshot.Contents, maxBytes int) int {
	entries, bytes := uint64(0), uint64(0)
	for i := range s.Blocks {
		entries += uint64(s.Blocks[i].Records)
		bytes += s.Blocks[i].Size
	}
	if entries == 0 {
		return 0
	}
	return int(min(entries, uint64(s.Size), uint64(maxBytes)/(bytes/entries+store.SlotBytes)))
}
