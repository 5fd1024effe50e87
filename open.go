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

// New returns a cache with a bound of maxBytes bytes, at least 256 KB, on its off-heap memory,
// records and index together. It uses almost no memory until entries are set. New panics if the
// bound is out of range.
func New(maxBytes int) *Cache {
	// Not by NewWithOptions: a program that does not call it is not linked with files and compression.
	o := Options{MaxBytes: maxBytes}
	if err := o.validate(); err != nil {
		panic(err)
	}
	return newCache(geometryFor(o))
}

// NewWithOptions returns a cache with the settings of o. For a setting that is out of range, the
// error is [ErrInvalidOptions] and names the setting and its bound. With [Options].File, the error
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
	// such as those that format a time.Time: 90 KB of a program. A pointer to a field does as well.)
	runtime.AddCleanup(&c.buckets[0].seq, (*chunk.Pool).Unmap, c.shared.Pool)
	return c
}

// Options returns the settings of the cache, with the defaults of timeouts filled in, MaxBytes
// as last set by Resize, and File as an absolute path. NewWithOptions with the result makes a cache
// with the same settings. It does not allocate, takes no lock, and works after Close.
func (c *Cache) Options() Options {
	o := c.options
	o.MaxBytes = c.shared.Bound()
	return o
}

// Close returns all memory to the operating system. It waits for writes that are in progress; later
// lookups miss, and Sets return [ErrClosed]. Address space stays reserved until the Cache is
// collected. A second Close does nothing. With [Options].File, Close waits until everything is on
// the disk, and returns an error if that fails; otherwise the error is nil. The file no longer
// changes after that: stop all writers before Close, or values that they replace or delete
// afterwards come back when the file is opened again.
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
	c.shared.Pool.Close()
	err = errors.Join(err, c.spaces.file.Close())
	if f := c.shared.File; f != nil {
		// What has no name or no dictionary there is dropped by the next process.
		isSound := !errors.Is(err, sidefile.ErrStale)
		if err = errors.Join(err, f.Close(c.mark(), isSound)); err != nil {
			return fmt.Errorf("ringcache: %w", err)
		}
	}
	return nil
}

// mark returns the current age of the clock, or slightly more.
func (c *engine) mark() ringfile.Mark {
	return ringfile.Mark{At: c.moment(), Age: c.shared.Age()}
}

// moment returns the present moment.
func (c *engine) moment() clock.Moment { return machine(c.machine).Moment() }

// machine returns m, or the real source of times. (New must not refer to that: 44 KB of a program.)
func machine(m *clock.Machine) *clock.Machine { return cmp.Or(m, &clock.System) }

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
	store, h, err := ringfile.Open(path, machine(g.machine).Moment().ID, func() ringfile.Header {
		return ringfile.Header{
			ChunkSize: uint32(g.chunkSize), Buckets: uint32(g.config.Buckets),
			PosBits: uint32(g.config.PosBits), MaxBytes: int64(g.MaxBytes),
			Seed: g.config.Seed, Program: g.Version,
		}
	})
	if err != nil {
		return nil, fmt.Errorf("ringcache: %w", asOurs(err))
	}
	c, err := g.openStore(store, h)
	if err != nil {
		return nil, fmt.Errorf("ringcache: open ring file %s: %w", path, asOurs(err))
	}
	return c, nil
}

// openStore returns a cache of geometry g whose rings are in an open file. An error of check leaves
// the file unchanged.
func (g geometry) openStore(store *ringfile.Store, h ringfile.Header) (*Cache, error) {
	err := g.check(store, &h)
	if err == nil {
		err = g.openBeside()
	}
	if err != nil {
		store.Release()
		return nil, err
	}
	if err = store.Use(&h); err == nil && store.IsNew {
		err = g.names.Clear()
	}
	if err != nil {
		store.Release()
		return nil, errors.Join(err, g.names.Close(), g.cold.File.Close())
	}
	wanted := g.MaxBytes
	g.MaxBytes = max(wanted, int(h.MaxBytes))
	g.config.File, g.config.Seed = store, h.Seed
	timed := g.resumeClock(store.Last)
	g.mem.Rings = store.Memory()
	g.compress()
	c := newCache(g)
	runtime.AddCleanup(&c.buckets[0].seq, (*ringfile.Store).Release, store) // as newCache does
	if !store.IsNew {
		c.recover(timed)
	}
	if s := c.shared.Compression; s != nil {
		// Otherwise the next process could not decompress the values that this one compresses.
		if err := s.TakeOver(); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	if store.Discarded {
		c.shared.Recovered.Files.Store(1)
	}
	// Last: a crash in between would bring back entries with an expiry.
	store.Rings.SetMark(c.mark())
	// The file may have held more than the bound that it was made with.
	c.sizing.unfinished = c.shared.Pool.Used() > wanted
	c.resize(wanted)
	return c, nil
}

// check gives the geometry what an open file says, or returns an error.
func (g *geometry) check(f *ringfile.Store, h *ringfile.Header) error {
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
	least, most := boundsOf(g.config.Buckets, g.chunkSize)
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
)

// ownFiles returns the paths of the files that the cache uses.
func (c *engine) ownFiles() []string {
	path := c.options.File
	if path == "" {
		return nil
	}
	return []string{path, path + dictSuffix, path + nameSuffix}
}

// openBeside opens the files beside that of the rings.
func (g *geometry) openBeside() (err error) {
	if g.Compressor != nil {
		g.cold.File, err = cold.OpenFile(g.File + dictSuffix)
	}
	if err == nil {
		g.names, err = sidefile.Open(g.File+nameSuffix, "ringname")
	}
	if err != nil {
		err = errors.Join(err, g.cold.File.Close())
	}
	return err
}

// resumeClock makes the clock of a cache continue from that of the file. It reports false if the
// time that has passed since is unknown: the clock then starts anew.
func (g *geometry) resumeClock(last ringfile.Mark) (ok bool) {
	start := time.Now()
	now := machine(g.machine).Moment()
	age, ok := now.Resume(last.Age, last.At)
	g.config.Born = start.Add(-age)
	if uptime := machine(g.machine).Uptime; uptime != nil {
		start := uptime()
		g.config.Elapsed = func() time.Duration { return age + uptime() - start }
	}
	return ok
}

// errGeometry says that no cache of this library has the geometry in the header of a file.
var errGeometry = fmt.Errorf("%w: invalid number of buckets, position bits or bytes", ErrCorrupt)

// asOurs returns err, wrapped with the matching error of this package.
func asOurs(err error) error {
	switch {
	case errors.Is(err, ringfile.ErrSpace):
		return fmt.Errorf("%w: %w", ErrNoMemory, err)
	case errors.Is(err, ringfile.ErrForeign), errors.Is(err, sidefile.ErrForeign):
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	case errors.Is(err, ringfile.ErrVersion), errors.Is(err, sidefile.ErrVersion):
		return fmt.Errorf("%w: %w", ErrVersion, err)
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
	c.inParallel(func(b *bucket) { b.change(func(s *store.Store) { s.EnterRecords(timed) }) })
	c.adoptNamespaces(c.spaces.file.Words())
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

// compressBucket compresses the queue of a bucket, and builds a dictionary if one is due. Only the
// goroutine calls it.
func (c *engine) compressBucket(i int32, w *store.Waiting) {
	b := &c.buckets[i]
	for b.withWaiting(w, (*store.Store).TakeWaiting) {
		b.PackWaiting(w)
		if !b.withWaiting(w, (*store.Store).PutAway) {
			break
		}
	}
	c.shared.Compression.Renew()
	runtime.KeepAlive(&c.mask) // and with it the engine: no other cache has its files until here
}

// withWaiting calls fn under the lock.
func (b *bucket) withWaiting(w *store.Waiting, fn func(*store.Store, *store.Waiting) bool) bool {
	b.lock()
	defer b.unlock()
	return fn(&b.Store, w)
}
