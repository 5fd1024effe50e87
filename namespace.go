package ringcache

import (
	"errors"
	"fmt"
	"iter"

	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/sidefile"
	"github.com/ringcache/ringcache/internal/store"
)

// How a namespace is reset.
//
// Every key of a namespace begins with its generation, a random word (internal/generation). Reset
// draws a new one: the old keys can no longer be built, and buckets recognize their entries as they
// recognize expired ones (internal/store/namespace.go).
//
// With Options.File, a second file stores names and generations (internal/sidefile). Reset updates
// it before the new generation takes effect. A snapshot contains both, and an entry that is loaded
// gets the generation of its namespace in the cache.

// Namespace returns the part of the cache with the given name, which may consist of any bytes: a
// Cache with its own keys, statistics and [Cache.Reset], which shares memory and eviction policy
// with the rest. There is one per name. Once used, it takes about 9 KB of the Go heap. Files and
// snapshots include its entries. Keep a reference to the whole cache too: without one, adapters
// stop showing and adjusting it.
//
// Its methods apply to its own entries, except that Options and DeleteExpired apply to the whole
// cache, and Resize, Close, DropNamespace and the methods for snapshots return ErrNamespace. A key
// can be up to 65,527 bytes long; above 120, calls except batches allocate. Namespace panics in a
// namespace.
func (c *Cache) Namespace(name string) *Cache {
	if c.space != nil {
		panic("ringcache: Namespace: the cache is a namespace")
	}
	if n, ok := c.spaces.byName.Load(name); ok {
		return n.(*Cache)
	}
	c.spaces.mu.Lock()
	defer c.spaces.mu.Unlock()
	return c.spaceLocked(name)
}

// spaceLocked returns the namespace of a name, and makes it if there is none.
func (c *engine) spaceLocked(name string) *Cache {
	if n, ok := c.spaces.byName.Load(name); ok {
		return n.(*Cache)
	}
	g := c.shared.Generations.Make(name)
	_ = c.spaces.file.Set(name, g) // Close tries again, and returns an error if that fails
	return c.addSpace(name, g)
}

// addSpace makes a namespace known, whose generation is g: a new one, or that of a file or a
// snapshot.
func (c *engine) addSpace(name string, g uint64) *Cache {
	c.shared.Generations.Enter(g).Name = name
	s := &space{name: name}
	s.generation.Store(g)
	n := &Cache{engine: c, space: s, kind: record.Spaced}
	c.spaces.byName.Store(name, n)
	return n
}

// Namespaces returns an iterator over the namespaces, which don't nest, and their names, in no
// particular order, including those that came with a file or a snapshot. A namespace added or
// dropped during the loop may or may not be seen. The body may call all methods of the cache.
func (c *Cache) Namespaces() iter.Seq2[string, *Cache] {
	return func(yield func(name string, n *Cache) bool) {
		mustBeFunc("Namespaces", yield != nil)
		if c.space == nil {
			c.spaces.byName.Range(func(name, n any) bool {
				return yield(name.(string), n.(*Cache))
			})
		}
	}
}

// DropNamespace resets the namespace with that name, if there is one, and forgets it. Caches that
// Namespace returned for it stay empty: lookups miss, Sets fail ([ErrDropped]), and Dels do not
// affect the namespace that the next call of Namespace creates. After Close, DropNamespace returns
// [ErrClosed], and a file keeps the entries; in a namespace it returns [ErrNamespace].
func (c *Cache) DropNamespace(name string) error {
	err := ErrNamespace
	if c.space == nil {
		if err = c.dropNamespace(name); err == nil {
			return nil
		}
		c.DeleteExpired() // the file may have the namespace still
	}
	return fmt.Errorf("ringcache: drop namespace: %w", err)
}

func (c *Cache) dropNamespace(name string) error {
	c.spaces.mu.Lock()
	defer c.spaces.mu.Unlock()
	if c.isClosed() {
		return ErrClosed
	}
	n, ok := c.spaces.byName.LoadAndDelete(name)
	if !ok {
		return nil
	}
	return n.(*Cache).space.reset(c.engine, true)
}

// Reset removes all entries. In a namespace this usually takes constant time; the whole cache, with
// all namespaces, is emptied bucket by bucket. Once it has returned, none of them is found, not
// even by another process that opens the same file (Options.File). An entry set concurrently may or
// may not remain; the result of a load that began earlier does not.
//
// The cache keeps its memory for new entries, and its counters. After Close, a file keeps its
// entries.
func (c *Cache) Reset() {
	if c.space != nil {
		if err := c.space.reset(c.engine, false); errors.Is(err, sidefile.ErrStale) {
			c.DeleteExpired() // the file may have the old generation still
		}
		return
	}
	for i := range c.buckets {
		c.resetBucket(&c.buckets[i])
	}
}

// resetBucket removes the entries of small bucket b, and those of the large buckets: no entry that
// moves between them meanwhile is left.
func (c *engine) resetBucket(b *bucket) {
	left := int(c.shared.Arrivals.Held.Load())
	b.look(func(b *store.Store) { left += b.Sizes().LiveBytes + b.Sizes().DeadBytes })
	for !c.resetStep(b, &left) {
	}
}

// resetStep removes some of these entries, those of b last, and reports whether all are gone. Once
// it has removed as many bytes as left says, it removes the rest at once, so that it ends even if
// other goroutines, or OnRemove, keep setting entries.
func (c *engine) resetStep(b *bucket, left *int) bool {
	var w write
	defer c.notify(&w)
	c.arena.mu.Lock() // no entry comes to a large bucket
	defer c.arena.mu.Unlock()
	for i := range c.arena.buckets {
		if !c.arena.buckets[i].resetStep(left, &w) || *left > 0 && w.removals.IsStep() {
			return false
		}
	}
	return b.resetStep(left, &w)
}

// reset gives the namespace another generation, and forgets that too if the namespace is dropped.
func (s *space) reset(c *engine, drop bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped.Load() {
		return nil
	}
	g := c.shared.Generations.Make(s.name)
	inFile := g
	if drop {
		s.dropped.Store(true)
		c.shared.Generations.Forget(g) // keys with it are not stored
		inFile = 0
	}
	err := c.spaces.file.Set(s.name, inFile)
	c.shared.Generations.Forget(s.generation.Swap(g))
	return err
}
