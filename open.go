package ringcache

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"
	"weak"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/cold"
	"github.com/ringcache/ringcache/internal/osfile"
	"github.com/ringcache/ringcache/internal/ringfile"
	"github.com/ringcache/ringcache/internal/sidefile"
	"github.com/ringcache/ringcache/internal/singleflight"
	"github.com/ringcache/ringcache/internal/store"
)

// New returns a cache with that [Options].MaxBytes, and the defaults of all other options. It uses
// little memory until entries are set. New panics if maxBytes is below 256 KB or above 4 TB.
func New(maxBytes int) *Cache {
	// Not by NewWithOptions: a program that does not call it is not linked with files and compression.
	o := Options{MaxBytes: maxBytes}
	if err := o.validate(); err != nil {
		panic(err)
	}
	return newCache(geometryFor(o))
}

// NewWithOptions returns a cache with the settings of o. For a setting that is out of range, the
// error is [ErrInvalidOptions] and names the setting and its limit. With [Options].File, the error
// may also be [ErrInUse], [ErrCorrupt], [ErrVersion], [ErrNoMemory] if the disk is full,
// [os.ErrPermission] for a file of another user, [errors.ErrUnsupported], or an error of the file
// system.
func NewWithOptions(o Options) (*Cache, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	g := geometryFor(o)
	return g.open()
}

// open returns a cache of this geometry.
func (g *geometry) open() (c *Cache, err error) {
	if g.Compressor != nil {
		if err := g.compressBy(g.Compressor); err != nil {
			return nil, err
		}
	}
	if g.File == "" {
		g.compress()
		c = newCache(*g)
	} else if c, err = openInFile(*g); err != nil {
		return nil, err
	}
	if s := c.shared.Compression; s != nil {
		runtime.AddCleanup(c.engine, (*cold.Compression).End, s)
		if !g.byHand {
			go compressInBackground(weak.Make(c.engine), s)
		}
	}
	return c, nil
}

// compressBy sets the Compressor for caches of this geometry, or returns an error if the Compressor
// is unusable.
func (g *geometry) compressBy(by Compressor) (err error) {
	g.cold.WithoutDict, err = cold.Guarded(func() (ValueCompressor, error) { return by.WithDict(nil) })
	if err == nil && g.cold.WithoutDict == nil {
		err = cold.ErrNoValueCompressor
	}
	if err != nil {
		return invalid("Compressor cannot do without a dictionary: %v", err)
	}
	if g.cold.ID, err = cold.Guarded(func() (string, error) { return by.ID(), nil }); err != nil {
		return invalid("Compressor has no ID: %v", err)
	}
	if n := len(g.cold.ID); n > cold.MostID {
		return invalid("Compressor's ID has %d bytes, must have at most %d", n, cold.MostID)
	}
	return nil
}

// compress makes the cold part's compression, if there is a Compressor.
func (g *geometry) compress() {
	if g.Compressor != nil {
		g.cold.By, g.cold.Buckets = g.Compressor, g.config.Buckets
		g.config.Compression = cold.New(&g.cold)
	}
}

// caches is the number of caches made in this process.
var caches atomic.Uint64

// newCache returns a cache of the given geometry.
func newCache(g geometry) *Cache {
	c := &Cache{engine: &engine{
		buckets: make([]bucket, g.config.Buckets),
		shared:  g.newShared(),
		number:  caches.Add(1),
		mask:    uint64(g.config.Buckets - 1),
		least:   g.least,
		machine: g.machine,
		options: g.Options,
	}}
	c.spaces.file = g.names
	c.options.RefreshTimeout = cmp.Or(g.RefreshTimeout, defaultRefreshTimeout)
	c.options.SoftTimeout = cmp.Or(g.SoftTimeout, c.options.RefreshTimeout)
	if g.RefreshAhead > 0 || g.StaleIfError > 0 {
		c.pauses = new(singleflight.Pauses)
	}
	for i := range c.buckets {
		c.buckets[i].Init(c.shared, i, i*g.chunkSize/g.config.Buckets, false)
	}
	for i := range c.arena.buckets {
		c.arena.buckets[i].Init(c.shared, g.config.Buckets+i, 0, true)
	}
	// Neither the pool nor anything that it refers to leads back to the cache. Code that uses a bucket
	// keeps the array of buckets reachable, but not necessarily the cache. (Where a *bucket or *engine
	// becomes an interface or a type argument, the linker keeps methods of all types that it leads to,
	// such as those that format a time.Time. A pointer to a field does as well.)
	runtime.AddCleanup(&c.buckets[0].seq, (*chunk.Pool).Unmap, c.shared.Pool)
	return c
}

// Options returns the settings of the cache, with the defaults of timeouts filled in, MaxBytes
// as last set by Resize, and File as an absolute path. It works after Close.
func (c *Cache) Options() Options {
	o := c.options
	o.MaxBytes = c.shared.Bound()
	return o
}

// Close frees the memory of records and index, except in a File. Writes in progress are completed,
// or fail as later ones do: Sets return [ErrClosed]. Later lookups miss. A second Close returns
// nil. With [Options].File, Close syncs the file, and returns an error if that fails. After that,
// the cache no longer changes it: stop all writers before Close, or values that they replace or
// delete later come back when the file is opened again. A namespace cannot be closed
// ([ErrNamespace]).
func (c *Cache) Close() error {
	if c.space != nil {
		return fmt.Errorf("ringcache: close cache: %w", ErrNamespace)
	}
	a := &c.arena
	a.mu.Lock()
	defer a.mu.Unlock()
	var err error
	if s := c.shared.Compression; s != nil {
		s.End() // before the buckets forget which dictionaries they need
		err = s.File.Close()
	}
	c.each((*bucket).close)
	c.shared.Generations.Clear()
	c.shared.Pool.Close()
	err = errors.Join(err, c.spaces.file.Close())
	if f := c.shared.File; f != nil {
		// What has no name or no dictionary there is dropped by the next process.
		clean := !errors.Is(err, sidefile.ErrStale)
		if err = errors.Join(err, f.Close(c.mark(), clean)); err != nil {
			return fmt.Errorf("ringcache: %w", err)
		}
	}
	return nil
}

// mark returns the current age of the clock, or slightly more.
func (c *engine) mark() clock.Mark {
	return clock.Mark{At: c.moment(), Age: c.shared.Age()}
}

// moment returns the present moment.
func (c *engine) moment() clock.Moment { return c.machine.OrSystem().Moment() }

// How a cache starts on a file that another process has left (Options.File): the rings are as they
// were, and each bucket rebuilds its index over them (internal/store/recover.go).

// openInFile returns a cache of geometry g whose rings are in the file at path.
func openInFile(g geometry) (*Cache, error) {
	if n := len(filepath.Base(g.File)); n > longestName {
		return nil, invalid("File has a name of %d bytes, must have at most %d", n, longestName)
	}
	path, err := osfile.Abs(g.File)
	if err != nil {
		return nil, fmt.Errorf("ringcache: open ring file: %w", err)
	}
	file, h, err := ringfile.Open(path, g.machine.OrSystem().Moment().ID, ringfile.Header{
		ChunkSize: uint32(g.chunkSize), Buckets: uint32(g.config.Buckets),
		PosBits: uint32(g.config.PosBits), MaxBytes: int64(g.MaxBytes),
		Seed: g.config.Seed, Program: g.Version,
	})
	if err != nil {
		return nil, fmt.Errorf("ringcache: %w", asOurs(err))
	}
	c, err := g.openRings(file, h)
	if err != nil {
		return nil, fmt.Errorf("ringcache: open ring file %s: %w", path, asOurs(err))
	}
	return c, nil
}

// openRings returns a cache of geometry g whose rings are in an open file. An error of check or
// openBeside leaves the file unchanged. What the next process finds after a kill or a power loss
// that follows a step:
//
//	step                             synced  after a kill            after a power loss
//	check, openBeside                -       the files as they were  the same
//	Clear, if the rings are new      no      rings to be discarded   the same
//	Use: head, in use by this boot   yes     all (*), or new rings   empty
//	recover: kills unusable records  no      the others (*)          empty
//	TakeOver: clears dictionaries    no      the others (*)          empty
//	SetMark                          no      the others              empty
//
// (*) Those with an expiry are dropped if the mark is of an earlier boot: their age is unknown.
func (g geometry) openRings(file *ringfile.File, h ringfile.Header) (*Cache, error) {
	err := g.check(file, &h)
	if err == nil {
		err = g.openBeside(file)
	}
	if err == nil && file.IsNew {
		err = errors.Join(g.names.Clear(), g.cold.File.Clear())
	}
	if err == nil {
		err = file.Use(&h)
	}
	names, dicts := g.names, g.cold.File
	if err != nil {
		err = errors.Join(err, names.Close(), dicts.Close())
		file.Release()
		return nil, err
	}
	wanted := g.MaxBytes
	g.MaxBytes = max(wanted, int(h.MaxBytes))
	g.config.File, g.config.Seed = file, h.Seed
	timed := g.resumeClock(file.Last)
	g.mem.Rings = file.Memory()
	g.compress()
	c, opened := newCache(g), false
	defer c.closeUnless(&opened)
	runtime.AddCleanup(&c.buckets[0].seq, func(s *ringfile.File) { // as newCache does
		_ = errors.Join(names.Close(), dicts.Close()) // before another cache can lock the rings
		s.Release()
	}, file)
	if !file.IsNew {
		c.recover(timed)
	}
	// Otherwise the next process could not decompress the values that this one compresses.
	if err := c.shared.Compression.TakeOver(); err != nil {
		return nil, err
	}
	if file.Discarded {
		c.shared.Recovered.Files.Store(1)
	}
	// Only after recovery has killed the entries of unknown age: with a new mark, the next process
	// would trust their deadlines.
	file.Rings.SetMark(c.mark())
	// The file may have held more than the bound that it was made with.
	c.sizing.unfinished = c.shared.Pool.Used() > wanted
	c.resize(wanted)
	opened = true
	return c, nil
}

// closeUnless closes the cache after an error or a panic in OnRemove.
func (c *Cache) closeUnless(done *bool) {
	if !*done {
		_ = c.Close()
	}
}

// check gives the geometry what an open file says, or returns an error.
func (g *geometry) check(f *ringfile.File, h *ringfile.Header) error {
	path, err := f.Path()
	if err != nil {
		return err
	}
	g.File = path
	if f.IsNew {
		// With more buckets than chunks, Sets would take them from one another all the time. A disk
		// that has room later should not have too few.
		if n := max(f.Room(), int64(g.MaxBytes/64), minMaxBytes); n < int64(g.MaxBytes) {
			g.divide(int(n))
			h.ChunkSize, h.Buckets = uint32(g.chunkSize), uint32(g.config.Buckets)
		}
		return nil
	}
	g.chunkSize, g.config.Buckets = int(h.ChunkSize), int(h.Buckets)
	if n := h.Buckets; n == 0 || n > store.BucketCount || n&(n-1) != 0 ||
		uint(h.PosBits) != g.config.PosBits || int64(int(h.MaxBytes)) != h.MaxBytes {
		return errGeometry
	}
	least, most := boundsOf(g.config.Buckets, g.chunkSize, g.least)
	if int(h.MaxBytes) < least {
		return errGeometry
	}
	if wanted := g.MaxBytes; wanted < least || int64(wanted) > most {
		return fmt.Errorf("MaxBytes is %d, must be from %d to %d for a file made with %d: %w",
			wanted, least, most, h.MaxBytes, ErrInvalidOptions)
	}
	return nil
}

// Suffixes of the files next to the ring file, and the longest name that leaves room for them.
const (
	dictSuffix, nameSuffix = ".dict", ".names"
	longestName            = 255 - len(nameSuffix)
	nameMagic              = "ringname" // the first 8 bytes of the latter
)

// openBeside opens the companion files of the ring file. After an error, some may be open.
func (g *geometry) openBeside(f *ringfile.File) (err error) {
	if g.Compressor != nil {
		g.cold.File, err = sidefile.Open(g.File+dictSuffix, cold.Magic, f.InPlace)
	}
	if err == nil {
		g.names, err = sidefile.Open(g.File+nameSuffix, nameMagic, f.InPlace)
	}
	return err
}

// resumeClock makes the clock of a cache continue from that of the file. It reports false if the
// time that has passed since is unknown: the clock then starts anew.
func (g *geometry) resumeClock(last clock.Mark) (ok bool) {
	start := time.Now()
	age, ok := g.machine.OrSystem().Moment().Resume(last.Age, last.At)
	g.config.Born = start.Add(-age)
	if uptime := g.machine.OrSystem().Uptime; uptime != nil {
		start := uptime()
		g.config.Elapsed = func() time.Duration { return age + uptime() - start }
	}
	return ok
}

// errGeometry says that no cache of this library has the geometry in the header of a file.
var errGeometry = fmt.Errorf("invalid number of buckets, position bits or bytes: %w", ErrCorrupt)

// asOurs returns err, wrapped with the matching error of this package.
func asOurs(err error) error {
	switch {
	case ringfile.IsNoSpace(err):
		return fmt.Errorf("%w: %w", err, ErrNoMemory)
	case errors.Is(err, osfile.ErrForeign):
		return fmt.Errorf("%w: %w", err, ErrCorrupt)
	case errors.Is(err, osfile.ErrVersion):
		return fmt.Errorf("%w: %w", err, ErrVersion)
	}
	return err
}

// recover enters the entries of the file into the cache, or, unless timed, only those without an
// expiry. No other goroutine knows of the cache yet.
func (c *engine) recover(timed bool) {
	chunks, free := c.shared.File.Rings.Chunks()
	var unused []chunk.Ref // chunks that rings held, and no longer hold
	held := 0
	c.each(func(b *bucket) {
		has, left := b.AdoptChunks(chunks)
		held += has
		unused = append(unused, left...)
	})
	c.shared.Pool.Adopt(held, unused, free)
	c.shared.Generations.InUse.Store(!c.spaces.file.IsMissing())
	for name, g := range c.spaces.file.Words() { // first: the entries of others are dropped
		c.addSpace(name, g)
	}
	c.inParallel(func(b *bucket) { b.change(func(s *store.Store) { s.EnterRecords(timed) }) })
	c.inParallel(func(b *bucket) { b.change((*store.Store).Settle) })
}

// compressInBackground is the goroutine of a cache with a Compressor. It compresses the queues that
// buckets report, until the cache is closed or collected.
func compressInBackground(cache weak.Pointer[engine], s *cold.Compression) {
	var w store.Waiting
	for {
		i, ok := s.Next()
		if !ok {
			return
		}
		for ; ok; i, ok = s.NextSoon() {
			c := cache.Value()
			if c == nil {
				return
			}
			c.compressBucket(i, &w)
		}
	}
}

// compressBucket compresses the queue of a bucket, and builds a dictionary if one is due.
func (c *engine) compressBucket(i int32, w *store.Waiting) {
	b := &c.buckets[i]
	for more := true; more; {
		b.change(func(s *store.Store) { more = s.TakeWaiting(w) })
		if more {
			b.PackWaiting(w)
			b.change(func(s *store.Store) { more = s.PutAway(w) })
		}
	}
	c.shared.Compression.Renew()
	runtime.KeepAlive(&c.mask) // and with it the engine: no other cache has its files until here
}
