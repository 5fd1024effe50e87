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
// (internal/generation). Invalidate draws another one: nobody can build the old keys any more, and
// buckets find their entries as they find what has expired (internal/store/namespace.go).
//
// The generation is a record of the cache too, so that it comes back with a file or a snapshot. It
// is of a kind that no key of a user's reaches (record.Internal): nobody can forge it. Three things
// make sure that an older one never comes back. Invalidate stores the new one before it takes
// effect, and whatever the error of a Set, the old record is gone. All who store it hold space.mu,
// so nobody stores one that is out of date. And a snapshot that is loaded does not bring the
// generation of a namespace in use. If the record is dropped, it is stored again after some Sets or
// loads; a process that starts before begins anew.

const (
	generationSize = generation.Size

	// A namespace looks after its entry with every 1,024th Set that a stripe counts, and with
	// about as many loads.
	keepEvery = 1024
)

// Namespace is a part of a [Cache], with its own keys and statistics, all of whose entries
// can be invalidated at once. [Cache.Namespace] makes it. It shares memory and policy with the
// rest of the cache, and its entries and calls count in the cache's [Stats] too. Methods behave
// like the Cache methods of the same name.
//
// A key is stored with 8 bytes before it, the generation, so it may have 65,527 bytes. No
// method but GetOrLoadBatch allocates for them where the key has up to 120 bytes. [Cache.All]
// and OnRemove show the longer key. Hits and Sets cost a few nanoseconds more than the cache's,
// for the key and the count.
type Namespace struct{ view }

// space is what the Namespaces of one name share. It does not lead back to the cache.
type space struct {
	generation    atomic.Uint64
	usage         atomic.Pointer[generation.Usage] // of that generation
	dropped       bool                             // guarded by mu
	counters      stripe.Counters
	invalidations atomic.Uint64
	mu            sync.Mutex           // of the entry, and of changes of the generation
	entry         []byte               // its key
	value         [generationSize]byte // the value that it got last
}

// NamespaceStats are the counters of a [Namespace] since [Cache.Namespace] first returned it, or
// first after [Namespace.Drop]. Fields count what the fields of [Stats] with the same name do.
type NamespaceStats struct {
	GetCalls uint64
	Misses   uint64
	SetCalls uint64
	DelCalls uint64

	// Invalidations counts calls of Invalidate.
	Invalidations uint64

	// Entries is the number of entries of the namespace that the cache holds, and Bytes that of
	// their records: keys with their 8 bytes, values, and headers, as in [Stats].BytesSize. Each
	// entry counts from the moment it is stored until it leaves, so those that have expired but
	// have not been removed yet count too, and so do negative entries. What Invalidate has removed
	// does not.
	Entries uint64
	Bytes   uint64

	// Quota is the bound on Bytes that SetQuota has set; 0 if there is none. Bytes may exceed it
	// by what Sets store at the same moment, and by what a file or a snapshot brings.
	Quota uint64
}

// HitRatio is [Stats.HitRatio].
func (s NamespaceStats) HitRatio() float64 {
	return Stats{GetCalls: s.GetCalls, Misses: s.Misses}.HitRatio()
}

// Namespace returns the namespace of that name, which may be any bytes. All that it returns for
// one name share entries and statistics. A name takes 10 KB of the Go heap until
// [Namespace.Drop].
//
// One entry of the cache tells which entries of a namespace are valid, so those come back with
// a file ([Options].File) or a snapshot. If it is dropped, it is stored again after some Sets
// or loads; a cache opened in between finds the namespace empty, as always with a name of more
// than 65,515 bytes. Call Namespace after a snapshot was read, not before.
//
// No key reaches that entry, and no loop, count or OnRemove shows it; its bytes count in
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
// names were given to [Cache.Namespace] and not dropped since. What a file or a snapshot has of
// others is not among them until Namespace is called. A name that is added or dropped during the
// loop may be seen or not; no name is seen twice. Each step allocates a Namespace. No lock is held
// while the body runs, and it may call all methods of the cache.
func (c *Cache) Namespaces() iter.Seq2[string, *Namespace] {
	return func(yield func(name string, n *Namespace) bool) {
		mustBeFunc("Namespaces", yield != nil)
		c.spaces.byName.Range(func(name, s any) bool {
			return yield(name.(string), c.namespaceOf(s.(*space)))
		})
	}
}

// namespaceOf returns a Namespace of that space.
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

// beginLocked gives a new space the generation that lies in the cache, or a new one.
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
	_ = s.storeLocked(c, w, g) // on an error it is stored again
}

// adoptNamespaces takes over the generations of the namespaces in a file.
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

// adopt takes over a generation that came with a file or a snapshot. The caller has its
// entries counted.
func (c *Cache) adopt(g uint64) *generation.Usage {
	return c.shared.Generations.Adopt(g, c.shared.Buckets+store.LargeBuckets)
}

// adoptEntry is adopt of what the entry of a namespace says.
func (c *Cache) adoptEntry(v []byte) {
	if len(v) == generationSize {
		c.adopt(binary.LittleEndian.Uint64(v))
	}
}

// isForgotten reports whether a key of a snapshot is of a generation that was forgotten here. One
// that the cache which was saved had, with the same secret, is taken over.
func (c *Cache) isForgotten(k []byte) bool {
	table := c.shared.Generations
	if len(k) < generationSize {
		return false
	}
	g := binary.LittleEndian.Uint64(k)
	if !table.InUse() && !table.IsOurs(g) {
		return false
	}
	u, forgotten := table.Of(g)
	if u == nil && forgotten {
		u = c.adopt(g)
	}
	return forgotten && u == nil
}

// countNamespaces counts the entries of generations that came with a file or a snapshot, and
// drops those of forgotten ones.
func (c *Cache) countNamespaces() {
	c.shared.Generations.Count(func() {
		c.inParallel(c.all(), func(b *bucket) {
			b.change(func(s *store.Store) { s.Namespaces().Count() })
		})
	})
}

// stored returns the generation that lies in the cache. The policy sees that it is in use, but
// evicts nothing for it: OnRemove must not be called under a lock of the namespace's.
func (s *space) stored(c *Cache) (uint64, bool) {
	var room [generationSize]byte
	h := c.shared.Hash(s.entry)
	v, _, got := c.lookupAny(room[:0], s.entry, h, withValue|touching|internal)
	if got != hit || len(v) != generationSize {
		return 0, false
	}
	return binary.LittleEndian.Uint64(v), true
}

// storeLocked stores a generation. The caller tells of the write when it holds no lock.
func (s *space) storeLocked(c *Cache, w *write, g uint64) error {
	binary.LittleEndian.PutUint64(s.value[:], g) // there, as a local one would be allocated
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

// Invalidate removes all entries of the namespace, in constant time: once it has returned,
// no value that was set before is found again, not by another process on the same file
// ([Options].File) either. A Set that runs meanwhile may be removed or not, and a load that
// began before is not stored for those who call afterwards. The memory of the removed entries goes
// to later Sets before any live entry has to leave; until then they count in [Cache.Len].
//
// It returns [ErrClosed] after Close: then what lies in a file is still valid. A snapshot that
// was begun before brings back the entries of its time, if it is loaded after Invalidate by a
// new cache. Removed entries that came with a snapshot and are still in a file when it is opened
// again are not found either, but count as entries, and keep their memory until they are evicted.
// Invalidate locks one bucket and allocates a few words.
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
	err := s.storeLocked(n.cache, &w, g) // an error means that there is none in the cache now
	s.usage.Store(u)
	table.Forget(s.generation.Swap(g))
	s.invalidations.Add(1)
	if errors.Is(err, ErrClosed) {
		return fmt.Errorf("ringcache: invalidate namespace: %w", ErrClosed)
	}
	return nil
}

// Drop invalidates the namespace and forgets its name, statistics and quota, and the memory
// that they take: for namespaces that come and go, such as one for each tenant. The next call of
// [Cache.Namespace] with the name makes a new namespace. A Namespace that was obtained
// before Drop is empty from then on: its lookups miss, and its Sets return nil and
// store nothing, which SetIfAbsent and the like report.
//
// A second call does nothing. After Close, Drop returns [ErrClosed], and a file keeps what it has,
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

// SetQuota bounds the bytes that the namespace may hold, [NamespaceStats].Bytes, to maxBytes; 0
// removes the bound. From fifteen sixteenths of it on, a Set in the namespace removes expired
// entries that a short search finds, and then evicts other entries of the namespace in about the
// order in which they were set; those that were read lately are passed over at first (not with
// [PolicyFIFO]). An entry that does not fit even so, or is longer than the quota, is not stored:
// its Set returns nil, SetIfAbsent, SetIfChanged and CompareAndSwap report false, and an older
// value is gone. Other namespaces lose nothing. A namespace above a new quota gives up entries
// before SetQuota returns, expired ones first.
//
// The quota is shared by all Namespaces of the name, survives Invalidate, and is not kept in a
// file: set it when the program starts. An entry of a namespace with a quota takes 8 to 32
// bytes of the Go heap, without pointers. SetQuota returns [ErrInvalidOptions] if maxBytes is
// below 0. It locks one bucket after another. If the namespace has entries and had no quota, or
// more than the new one, it looks at all records of the cache.
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
