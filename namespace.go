package ringcache

import (
	"errors"
	"fmt"
	"iter"

	"github.com/ringcache/ringcache/internal/sidefile"
	"github.com/ringcache/ringcache/internal/store"
)

// How a namespace is reset.
//
// Every key of a namespace begins with its generation, a random word (internal/generation). Reset
// draws a new one: the old keys can no longer be built, and buckets recognize their entries as they
// recognize expired ones (internal/store/namespace.go).
//
// With Options.File, a second file stores names and generations (internal/sidefile). Reset
// updates it before the new generation takes effect, so an older one never comes back. A snapshot
// begins with the names and their generations, and an entry that is loaded gets the generation that
// its namespace has by then.

// Namespace returns the part of the cache with the given name, which may consist of any bytes: a
// Cache with its own keys, statistics and [Cache.Reset], which shares memory and eviction policy
// with the rest. There is one for each name, which uses 10 KB of the Go heap until
// [Cache.DropNamespace]. Its entries at Close or Save come back after a restart.
//
// Its methods apply to its own entries, except that Options and DeleteExpired apply to the whole
// cache, and Resize, Close and the methods for snapshots return ErrNamespace. A key can be up to
// 65,527 bytes long. Namespace panics in a namespace.
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
	g, _ := c.shared.Generations.Make(name)
	_ = c.spaces.file.Set(name, g) // after an error, Close tries again
	return c.addSpace(name, g)
}

// addSpace makes a namespace known, whose generation is g.
func (c *engine) addSpace(name string, g uint64) *Cache {
	s := &space{name: name}
	s.generation.Store(g)
	n := &Cache{engine: c, space: s}
	c.spaces.byName.Store(name, n)
	return n
}

// Namespaces returns an iterator over the namespaces and their names, in no particular order,
// including those that came with a file or a snapshot. A namespace added or dropped during the loop
// may or may not be seen. The body may call all methods of the cache. A namespace has no
// namespaces.
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
// Namespace returned for it stay empty: lookups miss, Sets return [ErrDropped], and Dels do not
// reach the one that the next call of Namespace makes. After Close, DropNamespace returns
// [ErrClosed], and a file keeps the entries; in a namespace it returns [ErrNamespace].
func (c *Cache) DropNamespace(name string) error {
	if err := c.dropNamespace(name); err != nil {
		c.DeleteExpired() // the file may have the namespace still
		return fmt.Errorf("ringcache: drop namespace: %w", err)
	}
	return nil
}

func (c *Cache) dropNamespace(name string) error {
	if c.space != nil {
		return ErrNamespace
	}
	c.spaces.mu.Lock()
	defer c.spaces.mu.Unlock()
	if c.isClosed() {
		return ErrClosed
	}
	n, ok := c.spaces.byName.LoadAndDelete(name)
	if !ok {
		return nil
	}
	s := n.(*Cache).space
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped.Store(true)
	err := c.spaces.file.Set(name, 0)
	none, _ := c.shared.Generations.Make(name)
	c.shared.Generations.Forget(none) // keys with it are not stored
	c.shared.Generations.Forget(s.generation.Swap(none))
	return err
}

// Reset removes all entries. In a namespace this takes constant time; the whole cache, with all
// namespaces, is emptied bucket by bucket. Once it has returned, no value set before the call is
// found, not even by another process that opens the same file (Options.File). The entry of a
// concurrent Set may or may not stay; the result of an earlier load does not.
//
// The cache keeps its memory for new entries, and its counters. With [Options].OnRemove, the whole
// cache is emptied in steps of 64 KB or 256 entries. After Close, a file keeps its entries.
func (c *Cache) Reset() {
	if c.space != nil {
		if err := c.space.reset(c.engine); errors.Is(err, sidefile.ErrStale) {
			c.DeleteExpired() // the file may have the old generation still
		}
		return
	}
	// Touch may store a record again, and so move it between the small buckets and the large ones: an
	// old record must not move to where Reset has already been.
	for i := range c.arena.buckets {
		c.resetBucket(&c.arena.buckets[i])
	}
	c.each(c.resetBucket) // the large ones last
}

// reset gives the namespace another generation.
func (s *space) reset(c *engine) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped.Load() {
		return nil
	}
	g, _ := c.shared.Generations.Make(s.name)
	err := c.spaces.file.Set(s.name, g)
	c.shared.Generations.Forget(s.generation.Swap(g))
	return err
}

// adoptNamespaces makes the namespaces of a file known, and drops the entries of others.
func (c *engine) adoptNamespaces(known map[string]uint64) {
	uses := map[uint64]bool{}
	for name, g := range known {
		c.shared.Generations.Enter(g).Name = name
		c.addSpace(name, g)
		uses[g] = true
	}
	c.shared.Generations.Keep(func(g uint64) bool { return uses[g] })
	if c.shared.Generations.Forgotten.Load() > 0 {
		c.inParallel(func(b *bucket) { b.change((*store.Store).DropForgotten) })
	}
}
