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

// LoadReport says what [Load] has taken from a snapshot.
type LoadReport struct {
	// Entries is how many entries of the snapshot were stored. In a cache that is smaller than
	// the snapshot, some of them may have been evicted by later ones.
	Entries int

	// DiscardedBlocks is how many blocks, of up to 1 MB, were left out because they were damaged
	// or missing. A file that cannot be used at all counts as one; a missing file, as none.
	DiscardedBlocks int

	// Err is nil if the file is a whole snapshot. Otherwise it is the first thing that was wrong,
	// and names the file:
	//
	//   - [fs.ErrNotExist]: there is no file, as on the first start;
	//   - [ErrCorrupt]: the file is damaged, and what is whole was loaded, or it is no snapshot;
	//   - [ErrVersion]: a newer version of this package has written it, or a program of another
	//     [Options].Version; nothing was loaded;
	//   - [ErrNoMemory]: the operating system refused the memory for the rest of the entries;
	//   - any other error is that of the file system, for what is not a regular file too.
	Err error
}

// Load returns a cache with the settings of o, filled from the snapshot at path as far as there is
// room and the file can be used: of a damaged file, every whole block. A service can start with
// this one call whatever the file is, and log [LoadReport].Err. The error is that of
// [NewWithOptions]; the cache is nil only then.
//
// Entries come back as [LoadFromFile] says. If not all fit, the hottest ones stay. Settings of the
// cache that was saved do not matter, except for Options.Version, which must be the same. Unless
// Options.ExpectedEntries is set, it is the number of entries in the snapshot. With Options.File,
// an entry in that file takes precedence over one in the snapshot.
//
// Up to GOMAXPROCS goroutines load, which end before Load returns; each takes some megabytes. With
// Options.OnRemove only the caller's goroutine does, and OnRemove may be called before Load has
// returned the cache. If it panics, the cache is closed, and the panic reaches the caller of Load.
func Load(path string, o Options) (*Cache, LoadReport, error) {
	f, s, cause := openSnapshot(path, true)
	if cause == nil {
		defer f.Close()
		cause = checkProgram(&s.Header, o.Version)
	}
	if cause == nil && o.ExpectedEntries == 0 {
		o.ExpectedEntries = expectedEntries(s, o.MaxBytes)
	}
	c, err := newLike(s, o)
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
		cause = c.salvage(s)
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

// newLike returns a cache for the entries of a snapshot, which may be nil. It has the hash secret
// of the cache that was saved: then the entries of a block belong to a few buckets, in the order of
// their indexes, and a load takes a third less time than with another secret.
func newLike(s *snapshot.Contents, o Options) (*Cache, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	g := defaultGeometry(o.MaxBytes)
	if s != nil && isSecret(s.Header.Secret) { // else the header was made by hand
		g.seed = s.Header.Secret
	}
	return g.open(&o)
}

// salvage restores what is whole in a snapshot, and returns what was wrong first.
func (c *Cache) salvage(s *snapshot.Contents) error {
	err := c.restore(s)
	c.snapshots.discarded.Add(uint64(s.Damaged))
	if err == nil {
		err = s.Damage()
	}
	return err
}

// LoadFromFile returns a cache with the entries of the snapshot at path, and with the options
// MaxBytes, Policy, TTL, ExpireAfterAccess (cut to tenths of a second), RefreshAhead and HugePages
// of the cache that was saved.
// [Load] makes a cache with options of your own, and does not fail where the file is missing or
// damaged.
//
// Entries come back with the rest of their time to live, in the order that they had and with
// what is known of their reads, so hits go on where they stopped. What expired meanwhile is
// left out. On the boot of the machine that saved them, setting the wall clock makes no
// difference. On another, the wall clocks tell how much time has passed; entries with an expiry
// are left out if that is less than nothing, or if the clock of the machine that saved them was
// not set (before 2025). The only counter that includes loaded entries is
// [SnapshotStats].RestoredEntries.
//
// The error is [ErrCorrupt] if anything is wrong with the file, and names it, the offset
// and what was wrong; [ErrVersion] if it is of a newer version of this package, or of an
// [Options].Version other than 0; and that of the file system otherwise, also for what is not a
// regular file: a pipe can be read by [Cache.ReadSnapshot]. The cache is nil then. Up to
// GOMAXPROCS goroutines load, which end before LoadFromFile returns; each takes some megabytes.
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
	c, err := newLike(s, optionsOf(s))
	if err != nil {
		return nil, err
	}
	if err := c.restore(s); err != nil {
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

// optionsOf returns the options of the cache that was saved.
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
	// Those whose header was made by hand must not keep the entries from being loaded.
	if o.validate() != nil {
		o.TTL, o.RefreshAhead, o.ExpireAfterAccess = 0, 0, 0
	}
	o.ExpectedEntries = expectedEntries(s, o.MaxBytes)
	return o
}

// expectedEntries returns Options.ExpectedEntries of a cache for a snapshot: as many as the file
// has, not as many as its header says, and no more than fit.
func expectedEntries(s *snapshot.Contents, maxBytes int) int {
	var entries, bytes uint64
	for i := range s.Blocks {
		entries += uint64(s.Blocks[i].Entries)
		bytes += s.Blocks[i].Size
	}
	if entries == 0 {
		return 0
	}
	return int(min(entries, uint64(maxBytes)/(bytes/entries+store.SlotBytes)))
}
