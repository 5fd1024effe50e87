package ringcache

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"runtime"
	"time"
	"weak"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/cold"
	"github.com/ringcache/ringcache/internal/dictfile"
	"github.com/ringcache/ringcache/internal/osfile"
	"github.com/ringcache/ringcache/internal/pack"
	"github.com/ringcache/ringcache/internal/ringfile"
	"github.com/ringcache/ringcache/internal/singleflight"
	"github.com/ringcache/ringcache/internal/store"
)

// New returns a cache that takes up to MaxBytes bytes of off-heap memory, records and index
// together; less than 32 MB is taken as 32 MB. It takes next to nothing until entries are
// set. New panics if MaxBytes is not above 0, as in fastcache; [NewWithOptions] returns an
// error instead, and also makes smaller caches.
func New(maxBytes int) *Cache {
	if maxBytes > 0 {
		maxBytes = max(maxBytes, fullBytes)
	}
	c, err := NewWithOptions(Options{MaxBytes: maxBytes})
	if err != nil {
		panic(err)
	}
	return c
}

// NewWithOptions returns a cache with the settings of o, or an error that
// names the setting and its bound and is [ErrInvalidOptions]. With [Options].File the error
// may also be [ErrInUse], [ErrCorrupt], [ErrVersion], [ErrNoMemory] where the disk is full,
// [os.ErrPermission] for a file of another user, [errors.ErrUnsupported], or that of the file
// system.
func NewWithOptions(o Options) (*Cache, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	g := defaultGeometry(o.MaxBytes)
	return g.open(&o)
}

// open returns a cache of that geometry, but for what is in o, which is valid.
func (g *geometry) open(o *Options) (*Cache, error) {
	g.options = *o
	g.options.RefreshTimeout = cmp.Or(o.RefreshTimeout, defaultRefreshTimeout)
	g.policy = o.Policy
	g.hugePages = o.HugePages
	g.ttl, g.jitter, g.stale = o.TTL, o.TTLJitter, o.StaleIfError
	g.idle = o.ExpireAfterAccess
	g.onRemove = o.OnRemove
	g.expected = o.ExpectedEntries
	g.version = o.Version
	g.ahead, g.timeout = o.RefreshAhead, g.options.RefreshTimeout
	if o.Compressor != nil {
		if err := g.compressBy(o.Compressor); err != nil {
			return nil, err
		}
	}
	if o.File != "" {
		return openInFile(*g, o.File)
	}
	return newCache(*g), nil
}

// compressBy gives caches of that geometry a Compressor, or returns an error if that is of no use.
func (g *geometry) compressBy(by Compressor) (err error) {
	g.compressor = by
	g.withoutDict, err = cold.Guarded(func() (ValueCompressor, error) { return by.WithDict(nil) })
	if err == nil && g.withoutDict == nil {
		err = cold.ErrNoValueCompressor
	}
	if err != nil {
		return invalid("Compressor cannot do without a dictionary: %v", err)
	}
	if g.compressorID, err = cold.Guarded(func() (string, error) { return by.ID(), nil }); err != nil {
		return invalid("Compressor has no ID: %v", err)
	}
	if n := len(g.compressorID); n > dictfile.MostID {
		return invalid("Compressor's ID has %d bytes, must have at most %d", n, dictfile.MostID)
	}
	return nil
}

// newCache returns a cache of any geometry.
func newCache(g geometry) *Cache {
	c := &Cache{
		buckets:  make([]bucket, g.buckets),
		shared:   g.newShared(),
		mask:     uint64(g.buckets - 1),
		bits:     store.Log2(g.buckets),
		settings: g.settings,
		options:  g.options,
	}
	if g.ahead > 0 {
		c.pauses = new(singleflight.Pauses)
	}
	for i := range c.buckets {
		c.buckets[i].Init(c.shared, i, i*g.chunkSize/g.buckets, false)
	}
	for i := range c.arena.buckets {
		c.arena.buckets[i].Init(c.shared, g.buckets+i, 0, true)
	}
	// The pool and the file do not lead back to the cache, nor does anything in them.
	// Whoever uses a bucket keeps the buckets, but perhaps not the cache.
	owner := &c.buckets[0]
	runtime.AddCleanup(owner, func(p *chunk.Pool) { _ = p.Unmap() }, c.shared.Pool)
	if f := c.shared.File; f != nil {
		runtime.AddCleanup(owner, (*ringfile.Store).Release, f)
	}
	if s := c.shared.Compression; s != nil {
		runtime.AddCleanup(c, (*cold.Compression).End, s)
		if !g.byHand {
			go compressInBackground(weak.Make(c), s)
		}
	}
	return c
}

// Options returns the settings of the cache: those that it was made with, with the default of
// RefreshTimeout filled in, MaxBytes as Resize last set it, and File as an absolute path. A cache
// made by NewWithOptions of the result has the same settings. Options does not allocate and takes
// no lock. It returns the same after Close.
func (c *Cache) Options() Options {
	o := c.options
	o.MaxBytes = c.shared.Bound()
	return o
}

// Close gives all memory back to the operating system. It waits for writes that are under
// way; later lookups miss, and Sets return [ErrClosed]. Address space stays reserved until
// the Cache is collected. A second Close does nothing. With [Options].File it waits until
// all is on the disk, and returns an error if it is not; otherwise the error is nil. The file
// then stays as it is: stop all writers before Close if what they replace or delete must not
// come back.
func (c *Cache) Close() error {
	a := &c.arena
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := c.shared.Compression; s != nil {
		s.End() // before the buckets forget which dictionaries they need
	}
	c.each((*bucket).close)
	c.shared.Pool.Close()
	if f := c.shared.File; f != nil {
		if err := f.Close(c.mark()); err != nil {
			return fmt.Errorf("ringcache: %w", err)
		}
	}
	return nil
}

// mark returns how old the clock is at the present moment, or a little more.
func (c *Cache) mark() ringfile.Mark {
	at := c.machine.Moment()
	return ringfile.Mark{Age: c.shared.Age(), At: at}
}

// How a cache begins on a file that another process has left (Options.File): the rings are
// as they were, and each bucket makes what leads to them anew (internal/store/recover.go).

// openInFile returns a cache of geometry g whose rings are in the file at path.
func openInFile(g geometry, path string) (*Cache, error) {
	path, err := osfile.Resolve(path)
	if err != nil {
		return nil, fmt.Errorf("ringcache: open ring file: %w", err)
	}
	g.options.File = path
	g.dictFile = cmp.Or(g.dictFile, path+".dict")
	store, h, err := ringfile.Open(path, g.machine.BootID(), func() ringfile.Header {
		return headerFor(g)
	})
	if err != nil {
		return nil, fmt.Errorf("ringcache: %w", asOurs(err))
	}
	return openStore(g, store, h, path)
}

// openStore returns a cache of geometry g whose rings are in an open file. After an error that
// is closed, as it was.
func openStore(g geometry, store *ringfile.Store, h ringfile.Header, path string) (*Cache, error) {
	refuse := func(err error) (*Cache, error) {
		err = errors.Join(err, store.Close(store.Last))
		store.Release()
		return nil, fmt.Errorf("ringcache: open ring file %s: %w", path, asOurs(err))
	}
	if err := g.readDicts(); err != nil {
		return refuse(err)
	}
	wanted := g.maxBytes
	g.file, g.seed = store, h.Seed
	timed := g.resumeClock(store.Last)
	if store.IsNew {
		c, err := newCache(g).claimed()
		if err != nil {
			return nil, err
		}
		if store.Discarded {
			c.shared.Recovered.Files.Store(1)
		}
		c.markOpened()
		return c, nil
	}
	if !g.adopt(&h) {
		return refuse(errGeometry)
	}
	if least, most := boundsOf(g.buckets, g.chunkSize); wanted < least || int64(wanted) > most {
		return refuse(fmt.Errorf("MaxBytes is %d, must be from %d to %d for a file made with %d: %w",
			wanted, least, most, h.MaxBytes, ErrInvalidOptions))
	}
	g.maxBytes = max(wanted, int(h.MaxBytes))
	c := newCache(g)
	c.recover(timed)
	if _, err := c.claimed(); err != nil {
		return nil, err
	}
	c.markOpened() // not before: death in between would bring back what has an expiry
	c.shared.Recovered.Spaces = nil
	// The file may have held more than the bound that it was made with.
	c.sizing.unfinished = c.shared.Pool.Used() > wanted
	c.resize(wanted)
	return c, nil
}

// claimed returns the cache if the file of dictionaries is its Compressor's. Where it cannot be,
// the next process could unpack nothing of what this one packs.
func (c *Cache) claimed() (*Cache, error) {
	s := c.shared.Compression
	if s == nil {
		return c, nil
	}
	if err := s.TakeOver(); err != nil {
		err = errors.Join(err, c.Close())
		return nil, fmt.Errorf("ringcache: write dictionaries %s: %w", s.File, err)
	}
	return c, nil
}

// readDicts reads the dictionaries that another process has left. There may be none, or what
// is of no use; it is an error if something else is in their place, or what cannot be read.
func (g *geometry) readDicts() error {
	if g.compressor == nil {
		return nil
	}
	id, dicts, err := dictfile.Read(g.dictFile)
	if g.foreign = err != nil || id != g.compressorID; !g.foreign {
		g.dicts = dicts
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, dictfile.ErrDamaged) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read dictionaries %s: %w", g.dictFile, err)
	}
	return nil
}

// resumeClock has the clock of a cache go on from that of the file. It reports false if the time
// that has passed since is not known: then the clock begins anew.
func (g *geometry) resumeClock(last ringfile.Mark) (ok bool) {
	start := time.Now()
	now := g.machine.Moment()
	age, ok := now.Resume(last.Age, last.At)
	g.born = start.Add(-age)
	if uptime := g.machine.Uptime; uptime != nil {
		start := uptime()
		g.now = func() time.Duration { return age + uptime() - start }
	}
	return ok
}

// markOpened notes in the file where its clock stands, for whoever finds it in use. Nothing was
// set yet.
func (c *Cache) markOpened() { c.shared.File.Rings.SetOpened(c.mark()) }

// adopt gives the geometry the buckets and chunks of a file, and reports whether a cache can have
// them.
func (g *geometry) adopt(h *ringfile.Header) bool {
	if n := h.Buckets; n == 0 || n > store.BucketCount || n&(n-1) != 0 {
		return false
	}
	g.chunkSize, g.buckets = int(h.ChunkSize), int(h.Buckets)
	least, _ := boundsOf(g.buckets, g.chunkSize)
	return uint(h.PosBits) == g.posBits &&
		int64(int(h.MaxBytes)) == h.MaxBytes && int(h.MaxBytes) >= least
}

// errGeometry says that a file is of a library that divides its entries otherwise.
var errGeometry = fmt.Errorf("%w: another number of buckets, or of bytes for them", ErrCorrupt)

// asOurs returns err, and says which of the package's errors it is.
func asOurs(err error) error {
	switch {
	case errors.Is(err, ringfile.ErrSpace):
		return fmt.Errorf("%w: %w", ErrNoMemory, err)
	case errors.Is(err, ringfile.ErrForeign), errors.Is(err, ringfile.ErrOrder),
		errors.Is(err, dictfile.ErrForeign):
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	case errors.Is(err, ringfile.ErrVersion), errors.Is(err, dictfile.ErrVersion):
		return fmt.Errorf("%w: %w", ErrVersion, err)
	}
	return err
}

// headerFor returns the header of a new file.
func headerFor(g geometry) ringfile.Header {
	return ringfile.Header{
		ChunkSize: uint32(g.chunkSize),
		Buckets:   uint32(g.buckets),
		PosBits:   uint32(g.posBits),
		MaxBytes:  int64(g.maxBytes),
		Seed:      g.seed,
		Program:   g.version,
	}
}

// recover enters what the file has into the cache, but if it is not timed, nothing that has an
// expiry. Nobody else knows of the cache yet.
func (c *Cache) recover(timed bool) {
	chunks, free := c.shared.File.Rings.Chunks()
	var unused []chunk.Ref // that rings held, and hold no more
	held := 0
	all := c.all()
	for _, b := range all {
		has, left := b.Recovery().AdoptChunks(chunks)
		held += has
		unused = append(unused, left...)
	}
	for _, of := range chunks { // of rings that this library does not know
		for _, ch := range of {
			c.shared.File.Rings.Free(ch.Ref)
			unused = append(unused, ch.Ref)
		}
	}
	c.shared.Pool.Adopt(held, unused, free)
	c.inParallel(all, func(b *bucket) { b.change(func(s *store.Store) { s.Recovery().Enter(timed) }) })
	c.adoptNamespaces()
	if z := c.shared.Compression; z != nil {
		// What the cold part holds is not to be dropped before the ratio is known again.
		z.Share.Store(math.Float64bits(min(c.shared.Recovered.ColdShare, pack.FullShare)))
	}
	c.inParallel(all, func(b *bucket) { b.change(func(s *store.Store) { s.Recovery().Settle() }) })
	a := &c.arena
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.buckets {
		c.updateQuotas(&a.buckets[i])
	}
}
