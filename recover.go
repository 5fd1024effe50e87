package ringcache

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/dictfile"
	"github.com/ringcache/ringcache/internal/osfile"
	"github.com/ringcache/ringcache/internal/pack"
	"github.com/ringcache/ringcache/internal/ringfile"
	"github.com/ringcache/ringcache/internal/store"
)

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
		has, left := b.AdoptChunks(chunks)
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
	c.inParallel(all, func(b *bucket) { b.change(func(s *store.Store) { s.Recover(timed) }) })
	c.adoptNamespaces()
	if z := c.shared.Compression; z != nil {
		// What the cold part holds is not to be dropped before the ratio is known again.
		z.Share.Store(math.Float64bits(min(c.shared.Recovered.ColdShare, pack.FullShare)))
	}
	c.inParallel(all, func(b *bucket) { b.change((*store.Store).Settle) })
	a := &c.arena
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.buckets {
		c.updateQuotas(&a.buckets[i])
	}
}
