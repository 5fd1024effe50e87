package ringcache

import (
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/store"
)

// How a namespace is reset.
//
// Every key of a namespace begins with its generation, a random word (internal/generation). Reset
// draws a new one: the old keys can no longer be built, and buckets recognize their entries as they
// recognize expired ones (internal/store/namespace.go).
//
// In a file, a record of the namespace holds the generation, so that it comes back. Its key begins
// with generation 0, so no user's key reaches it. Two rules ensure that an older generation never
// comes back: Reset stores the new one before it takes effect, and whatever the error of a Set, the
// old record is gone. The policy keeps the record of a namespace in use; where it was dropped
// nevertheless, Close stores it again. A snapshot begins with the names and their generations, and
// an entry that is loaded gets the generation that its namespace has by then.

// Namespace returns the part of the cache with the given name, which may consist of any bytes: a
// Cache with its own keys, statistics and [Cache.Reset], which shares memory and eviction policy
// with the rest. There is one for each name, and it takes 10 KB of the Go heap until
// [Cache.DropNamespace]. What it held at Close or Save is found after a restart.
//
// Methods that are about entries mean those of the namespace. Options and DeleteExpired are those
// of the whole cache; Resize, Close and those that save or read snapshots return [ErrNamespace]. A
// key may have up to 65,527 bytes. Namespace panics in a namespace.
func (c *Cache) Namespace(name string) *Cache {
	if c.space != nil {
		panic("ringcache: Namespace: the cache is a namespace")
	}
	if n, ok := c.spaces.byName.Load(name); ok {
		return n.(*Cache)
	}
	var w write
	defer c.notifyDeferred(&w)
	c.spaces.mu.Lock()
	defer c.spaces.mu.Unlock()
	return c.spaceLocked(name, &w)
}

// spaceLocked returns the namespace of a name, and makes it if there is none.
func (c *engine) spaceLocked(name string, w *write) *Cache {
	if n, ok := c.spaces.byName.Load(name); ok {
		return n.(*Cache)
	}
	g, _ := c.shared.Generations.Make(name)
	n := c.addSpace(name, g)
	_ = n.space.storeLocked(c, w, g) // after an error, Close tries again
	return n
}

// addSpace makes a namespace known, whose generation is g.
func (c *engine) addSpace(name string, g uint64) *Cache {
	s := &space{name: name, entry: append(make([]byte, generation.Size), name...)}
	s.generation.Store(g)
	n := &Cache{engine: c, space: s}
	c.spaces.byName.Store(name, n)
	return n
}

// Namespaces returns an iterator over the namespaces and their names, in no particular order,
// including those that came with a file or a snapshot. One that is added or dropped during the loop
// may or may not be seen. The body may call all methods of the cache. In a namespace there are
// none.
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

// DropNamespace resets the namespace of a name and forgets it. A Cache that Namespace has returned
// for it stays empty: its lookups miss, and its Sets return [ErrDropped]. The next call of
// Namespace makes another one. For an unknown name it does nothing. After Close it returns
// [ErrClosed], and a file keeps the entries; in a namespace, [ErrNamespace].
func (c *Cache) DropNamespace(name string) error {
	if err := c.dropNamespace(name); err != nil {
		return fmt.Errorf("ringcache: drop namespace: %w", err)
	}
	return nil
}

func (c *Cache) dropNamespace(name string) error {
	if c.space != nil {
		return ErrNamespace
	}
	var w write
	defer c.notifyDeferred(&w)
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
	s.write(c.engine, &w)
	w.del, w.Reason = true, store.Deleted
	_, err := c.remove(&w, nil)
	none, _ := c.shared.Generations.Make(name)
	c.shared.Generations.Forget(none) // keys with it are not stored
	c.shared.Generations.Forget(s.generation.Swap(none))
	return err
}

// Reset removes all entries: in constant time in a namespace, and one bucket after another in the
// whole cache, with those of all namespaces. Once it has returned, no value that was set before its
// call is found, not even by another process on the same file ([Options].File). The entry of a
// concurrent Set may or may not stay; the result of a load that began earlier does not.
//
// The cache keeps its memory for new entries, and its counters. With [Options].OnRemove, the whole
// cache is emptied in steps of 64 KB or 256 entries. After Close, a file keeps its entries.
func (c *Cache) Reset() {
	if c.space != nil {
		c.space.reset(c.engine)
		return
	}
	// Touch may store a record again, and so move it between the small buckets and the large ones: an
	// old record must not move to where Reset has already been.
	for i := range c.arena.buckets {
		c.resetBucket(&c.arena.buckets[i])
	}
	c.each(c.resetBucket) // the large ones last
	c.storeGenerations()
}

// reset gives the namespace another generation.
func (s *space) reset(c *engine) {
	var w write
	defer c.notifyDeferred(&w)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped.Load() {
		return
	}
	g, _ := c.shared.Generations.Make(s.name)
	_ = s.storeLocked(c, &w, g) // after an error the file has none, unless the cache is closed
	c.shared.Generations.Forget(s.generation.Swap(g))
}

// write makes w the write of the namespace's record. OnRemove must not be called under the lock of
// the namespace: the caller calls notifyDeferred for w when it holds none.
func (s *space) write(c *engine, w *write) {
	w.Key, w.Kind = s.entry, record.Internal
	w.Hash = c.shared.HashOf(s.entry, w.Kind)
	w.uncounted, w.deferOnRemove, w.Reason, w.life = true, true, store.Replaced, withTTL(0)
}

// storeLocked stores the record with a generation, if the cache has a file.
func (s *space) storeLocked(c *engine, w *write, g uint64) error {
	if c.shared.File == nil {
		return nil
	}
	binary.LittleEndian.PutUint64(s.value[:], g) // not in a local variable, which would be allocated
	s.write(c, w)
	w.Value = s.value[:]
	return c.put(nil, w, "set")
}

// storeGenerations stores the records of namespaces that are not in the file any more, as far as
// they have room.
func (c *engine) storeGenerations() {
	if c.shared.File == nil {
		return
	}
	c.spaces.byName.Range(func(_, n any) bool {
		n.(*Cache).space.restore(c)
		return true
	})
}

// restore is storeGenerations for one namespace.
func (s *space) restore(c *engine) {
	var w write
	defer c.notifyDeferred(&w)
	s.mu.Lock()
	defer s.mu.Unlock()
	var room [generation.Size]byte
	s.write(c, &w)
	_, _, got := c.lookup(room[:0], w.Key, w.Hash, withValue)
	if got == hit || s.dropped.Load() {
		return
	}
	fits := false
	c.bucket(w.Hash).look(func(b *store.Store) {
		fits = b.HasRoomFor(len(s.entry) + record.MaxHeader + generation.Size)
	})
	if fits {
		_ = s.storeLocked(c, &w, s.generation.Load()) // after an error it is empty after a restart
	}
}

// adoptNamespaces makes the namespaces of a file known, and drops the entries of others.
func (c *engine) adoptNamespaces() {
	known := map[uint64]bool{}
	c.shared.Recovered.Spaces.Range(func(of, by any) bool {
		name, g := of.(string), by.(uint64)
		c.shared.Generations.Enter(g).Name = name
		c.addSpace(name, g)
		known[g] = true
		return true
	})
	c.shared.Generations.Keep(func(g uint64) bool { return known[g] })
	if c.shared.Generations.Forgotten.Load() > 0 {
		c.inParallel(func(b *bucket) { b.change((*store.Store).DropForgotten) })
	}
}
