package ringcache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/stripe"
)

// How a namespace forgets all its entries at once.
//
// Every key of a namespace begins with its generation, a word that cannot be guessed
// (internal/generation). Invalidate draws a new one: the old keys can no longer be built, and
// buckets recognize their entries as they recognize expired ones (internal/store/namespace.go).
//
// The generation is also a record of the cache, so that it comes back with a file or a snapshot.
// The record is of a kind that no user's key reaches (record.Internal), so it cannot be forged.
// Three rules ensure that an older one never comes back. Invalidate stores the new one before it
// takes effect, and whatever the error of a Set, the old record is gone. Every caller that stores
// it holds space.mu, so none stores an outdated one. And loading a snapshot does not replace the
// generation of a namespace in use. If the record is dropped, it is stored again after some Sets or
// loads; a process that starts before that begins with a new generation.

const (
	generationSize = generation.Size

	// A namespace checks its entry with every 1,024th Set that a stripe counts, and with about as many
	// loads.
	keepEvery = 1024
)

// Namespace is a part of a [Cache] with its own keys and statistics, all of whose entries can be
// invalidated at once. It is made by [Cache.Namespace]. It shares memory and eviction policy with
// the rest of the cache, and its entries and calls count in the cache's [Stats] too. Methods behave
// like the Cache methods of the same name.
//
// Each key is stored after a prefix of 8 bytes, the generation, so it may have up to 65,527 bytes.
// [Cache.All] and OnRemove show the longer key. For keys of up to 120 bytes, only GetOrLoadBatch
// allocates for the prefix. Hits and Sets take a few nanoseconds more than those of the cache, for
// the key and the counters.
type Namespace struct{ view }

// space is the state that the Namespaces of one name share. It does not refer back to the cache.
type space struct {
	generation    atomic.Uint64
	usage         atomic.Pointer[generation.Usage] // of that generation
	dropped       bool                             // guarded by mu
	counters      stripe.Counters
	invalidations atomic.Uint64
	mu            sync.Mutex           // guards the entry, and changes of the generation
	entry         []byte               // its key
	value         [generationSize]byte // its value when it was last stored
}

// NamespaceStats are the counters of a [Namespace] since [Cache.Namespace] first returned it, or
// first returned it after [Namespace.Drop]. GetCalls, Misses, SetCalls and DelCalls count the same
// calls as the fields of [Stats] with these names.
type NamespaceStats struct {
	GetCalls uint64
	Misses   uint64
	SetCalls uint64
	DelCalls uint64

	// Invalidations counts calls to Invalidate.
	Invalidations uint64

	// Entries is the number of the namespace's entries in the cache, and Bytes the size of their
	// records: keys with their 8 bytes, values, and headers, as in [Stats].BytesSize. Each entry
	// counts from the moment it is stored until it is removed, so expired entries that have not been
	// removed yet count too, and so do negative entries. Entries that Invalidate has removed do not.
	Entries uint64
	Bytes   uint64

	// Quota is the bound on Bytes set by SetQuota; 0 if there is none. Bytes may exceed it because of
	// concurrent Sets, or of entries that came from a file or a snapshot.
	Quota uint64
}

// HitRatio returns the fraction of lookups that found their key, as [Stats.HitRatio] does.
func (s NamespaceStats) HitRatio() float64 {
	return Stats{GetCalls: s.GetCalls, Misses: s.Misses}.HitRatio()
}

// Namespace returns the namespace with the given name, which may consist of any bytes. All
// Namespaces returned for one name share entries and statistics. Each name uses 10 KB of the Go
// heap until [Namespace.Drop].
//
// An internal entry of the cache records which entries of a namespace are valid, so these come back
// with a file ([Options].File) or a snapshot. If that entry is dropped, it is stored again after
// some Sets or loads; a cache opened in between finds the namespace empty, as it always does for a
// name of more than 65,515 bytes. Call Namespace after reading a snapshot, not before.
//
// No key reaches the internal entry, and no loop, count or OnRemove shows it; its bytes count in
// [Stats].BytesSize.
func (c *Cache) Namespace(name string) *Namespace {
	if s, ok := c.spaces.byName.Load(name); ok {
		return c.namespaceOf(s.(*space))
	}
	var w write
	defer c.notifyQuiet(&w)
	c.spaces.mu.Lock()
	defer c.spaces.mu.Unlock()
	if s, ok := c.spaces.byName.Load(name); ok {
		return c.namespaceOf(s.(*space))
	}
	s := &space{entry: append([]byte(reserved), name...)}
	s.beginLocked(c, &w)
	c.spaces.byName.Store(name, s)
	return c.namespaceOf(s)
}

// Namespaces returns an iterator over the namespaces in use, in no particular order: those whose
// names were given to [Cache.Namespace] and not dropped since. Other namespaces in a file or a
// snapshot are not included until Namespace is called for them. A name that is added or dropped
// during the loop may or may not be seen; no name is seen twice. Each step allocates a Namespace.
// No lock is held while the body runs, and it may call all methods of the cache.
func (c *Cache) Namespaces() iter.Seq2[string, *Namespace] {
	return func(yield func(name string, n *Namespace) bool) {
		mustBeFunc("Namespaces", yield != nil)
		c.spaces.byName.Range(func(name, s any) bool {
			return yield(name.(string), c.namespaceOf(s.(*space)))
		})
	}
}

// namespaceOf returns a Namespace of the given space.
func (c *Cache) namespaceOf(s *space) *Namespace { return &Namespace{view{cache: c, space: s}} }

// reserved begins the keys of internal records, so that they begin with no generation.
const reserved = "ringcache.namespace\x00"

// hasNamespaceOf reports whether the key of an internal record is that of a namespace in use.
func (c *Cache) hasNamespaceOf(k []byte) bool {
	if len(k) < len(reserved) {
		return false
	}
	_, ok := c.spaces.byName.Load(string(k[len(reserved):]))
	return ok
}

// beginLocked gives a new space the generation stored in the cache, or a new one.
func (s *space) beginLocked(c *Cache, w *write) {
	if g, ok := s.stored(c); ok {
		if u := c.adopt(g); u != nil {
			c.countNamespaces()
			s.generation.Store(g)
			s.usage.Store(u)
			return
		}
	}
	g, u := c.shared.Generations.Make()
	s.generation.Store(g)
	s.usage.Store(u)
	_ = s.storeLocked(c, w, g) // after an error it is stored again later
}

// adoptNamespaces adopts the generations of the namespaces in a file.
func (c *Cache) adoptNamespaces() {
	r := &c.shared.Recovered
	for _, entry := range r.Spaces {
		s := &space{entry: []byte(entry)}
		if g, ok := s.stored(c); ok {
			c.adopt(g)
		}
	}
	c.countNamespaces()
}

// adopt registers a generation that came with a file or a snapshot. The caller must have its
// entries counted.
func (c *Cache) adopt(g uint64) *generation.Usage {
	return c.shared.Generations.Adopt(g, c.shared.Buckets+store.LargeBuckets)
}

// adoptEntry is adopt of the generation in a namespace's entry.
func (c *Cache) adoptEntry(v []byte) {
	if len(v) == generationSize {
		c.adopt(binary.LittleEndian.Uint64(v))
	}
}

// isForgotten reports whether a key of a snapshot has a generation that was forgotten here. As a
// side effect it adopts one that is valid in the saved cache, if that has the same secret.
func (c *Cache) isForgotten(k []byte) bool {
	table := c.shared.Generations
	if len(k) < generationSize || !table.InUse() {
		return false // the generations of a snapshot come first
	}
	g := binary.LittleEndian.Uint64(k)
	u, forgotten := table.Of(g)
	if u == nil && forgotten {
		u = c.adopt(g)
	}
	return forgotten && u == nil
}

// countNamespaces counts the entries of generations that came with a file or a snapshot, and drops
// those of forgotten generations.
func (c *Cache) countNamespaces() {
	c.shared.Generations.Count(func() {
		c.inParallel(c.all(), func(b *bucket) {
			b.change(func(s *store.Store) { s.Namespaces().Count() })
		})
	})
}

// stored returns the generation stored in the cache. It is a read to the policy, but evicts
// nothing: OnRemove must not be called under a lock of the namespace.
func (s *space) stored(c *Cache) (uint64, bool) {
	var room [generationSize]byte
	h := c.shared.Hash(s.entry)
	v, _, got := c.lookupAny(room[:0], s.entry, h, withValue|touching|internal)
	if got != hit || len(v) != generationSize {
		return 0, false
	}
	return binary.LittleEndian.Uint64(v), true
}

// storeLocked stores a generation. The caller must call notifyQuiet for the write when it holds no
// lock.
func (s *space) storeLocked(c *Cache, w *write, g uint64) error {
	binary.LittleEndian.PutUint64(s.value[:], g) // not in a local variable, which would be allocated
	w.Key, w.Value, w.Hash = s.entry, s.value[:], c.shared.Hash(s.entry)
	w.silent, w.quiet, w.Internal, w.Reason = true, true, true, store.Replaced
	return c.store(w, "set")
}

// keep stores the generation again if its entry was dropped.
func (s *space) keep(c *Cache) {
	if !s.mu.TryLock() {
		return // it is being stored
	}
	var w write
	defer c.notifyQuiet(&w)
	defer s.mu.Unlock()
	if s.dropped {
		return
	}
	g := s.generation.Load()
	if there, ok := s.stored(c); !ok || there != g {
		_ = s.storeLocked(c, &w, g)
	}
}

// Invalidate removes all entries of the namespace in constant time: once it has returned, no value
// set earlier is found again, not even by another process on the same file ([Options].File). The
// entry of a concurrent Set may or may not be removed, and the result of a load that began earlier
// is not found by later calls. Later Sets reuse the memory of the removed entries before they evict
// live ones; until then, the removed entries count in [Cache.Len].
//
// After Close, Invalidate returns [ErrClosed], and the entries in a file stay valid. A snapshot
// that was begun earlier brings back the entries that it contains if a new cache loads it after
// Invalidate. Removed entries that came with a snapshot and are still in a file when it is opened
// again are not found either, but they count as entries and keep their memory until they are
// evicted. Invalidate locks one bucket and allocates a few words.
func (n *Namespace) Invalidate() error {
	var w write
	defer n.cache.notifyQuiet(&w)
	s := n.space
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped {
		return nil
	}
	table := n.cache.shared.Generations
	g, u := table.Make()
	u.Quota.Store(s.usage.Load().Quota.Load())
	err := s.storeLocked(n.cache, &w, g) // after an error the cache has none
	s.usage.Store(u)
	table.Forget(s.generation.Swap(g))
	s.invalidations.Add(1)
	if errors.Is(err, ErrClosed) {
		return fmt.Errorf("ringcache: invalidate namespace: %w", ErrClosed)
	}
	return nil
}

// Drop invalidates the namespace and forgets its name, statistics and quota, and releases their
// memory. It is meant for namespaces that come and go, such as one for each tenant. The next call
// to [Cache.Namespace] with the name makes a new namespace. A Namespace that was obtained before
// Drop stays empty from then on: its lookups miss, and its Sets return nil and store nothing, which
// SetIfAbsent and similar methods report.
//
// A second call does nothing. After Close, Drop returns [ErrClosed], and a file keeps its entries,
// as with Invalidate. Drop locks one bucket.
func (n *Namespace) Drop() error {
	c, s := n.cache, n.space
	var w write
	defer c.notifyQuiet(&w)
	c.spaces.mu.Lock()
	defer c.spaces.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped {
		return nil
	}
	w.Key, w.Hash = s.entry, c.shared.Hash(s.entry)
	w.silent, w.quiet, w.Internal, w.del, w.Reason = true, true, true, true, store.Deleted
	_, err := c.remove(&w, nil)
	s.dropped = true
	c.spaces.byName.Delete(string(s.entry[len(reserved):]))
	none, u := c.shared.Generations.Make()
	c.shared.Generations.Forget(none) // keys with it are not stored
	s.usage.Store(u)
	c.shared.Generations.Forget(s.generation.Swap(none))
	if err != nil {
		return fmt.Errorf("ringcache: drop namespace: %w", err)
	}
	return nil
}

// SetQuota bounds the size of the namespace's records, [NamespaceStats].Bytes, to maxBytes; 0
// removes the bound. Once 15/16 of the quota is filled, a Set in the namespace removes expired
// entries that a short search finds, and then evicts other entries of the namespace, roughly in the
// order in which they were set; recently read ones are skipped at first (not with [PolicyFIFO]). An
// entry that still does not fit, or is longer than the quota, is not stored: its Set returns nil,
// SetIfAbsent, SetIfChanged and CompareAndSwap report false, and an older value is gone. Other
// namespaces lose nothing. A namespace above a new quota evicts entries before SetQuota returns,
// expired ones first.
//
// All Namespaces of the name share the quota. It survives Invalidate, and is not kept in a file:
// set it when the program starts. Each entry of a namespace with a quota uses 8 to 32 bytes of the
// Go heap, without pointers. SetQuota returns [ErrInvalidOptions] if maxBytes is negative. It locks
// one bucket after another. If the namespace has entries, and had no quota before or exceeds the
// new one, SetQuota examines all records of the cache.
func (n *Namespace) SetQuota(maxBytes int64) error {
	if maxBytes < 0 {
		return fmt.Errorf("ringcache: set quota: %d bytes, must be at least 0: %w",
			maxBytes, ErrInvalidOptions)
	}
	s := n.space
	s.mu.Lock()
	u, g := s.usage.Load(), s.generation.Load()
	had := u.Quota.Swap(maxBytes)
	s.mu.Unlock()
	switch {
	case maxBytes == 0:
		u.Order.Reset()
		return nil
	case had == 0 && u.Entries.Load() > 0:
		n.cache.each(func(b *bucket) { b.look(func(s *store.Store) { s.Namespaces().Queue(u, g) }) })
	}
	if u.Over(0) {
		n.cache.DeleteExpired()
	}
	most := (policy.MaxFreq + 1) * u.Order.Len() // others may read meanwhile
	for i := 0; i < most && u.Over(0) && n.cache.lookAtOldest(u, g, true); i++ {
	}
	return nil
}

// Stats returns the counters of the namespace.
func (n *Namespace) Stats() NamespaceStats {
	s := n.space
	gets, misses := s.counters.Sum()
	sets, dels := s.counters.Writes()
	u := s.usage.Load()
	return NamespaceStats{
		GetCalls: gets, Misses: misses, SetCalls: sets, DelCalls: dels,
		Invalidations: s.invalidations.Load(),
		Entries:       uint64(max(u.Entries.Load(), 0)), Bytes: uint64(max(u.Bytes.Load(), 0)),
		Quota: uint64(u.Quota.Load()),
	}
}
