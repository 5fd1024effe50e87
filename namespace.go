package ringcache

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ringcache/ringcache/internal/stripe"
)

// How a namespace forgets all its entries at once.
//
// Every key of a namespace begins with its generation, 64 random bits. Invalidate draws
// another one: nobody can build the old keys any more, and their entries leave as others do.
//
// The generation is an entry of the cache too, under a reserved key, so that it comes back
// with a file or a snapshot. Three things make sure that an older one never does. Invalidate
// stores the new one before it takes effect, and whatever the error of a Set, the old entry
// is gone. All who store it hold space.mu, so nobody stores one that is out of date. And a
// snapshot that is loaded does not bring the generation of a namespace in use. If the entry
// is dropped, it is stored again after some Sets or loads; a process that starts before begins
// anew.

const (
	generationSize = 8

	// A namespace looks after its entry with every 1,024th Set that a stripe counts, and with
	// about as many loads.
	keepEvery = 1024
)

// Namespace is a part of a [Cache], with keys and statistics of its own, all of whose entries
// can be invalidated at once. [Cache.Namespace] makes it. It shares memory and policy with the
// rest of the cache, and its entries and calls count in the cache's [Stats] too. A method does
// what that of Cache does which has the same name.
//
// A key is stored with 8 bytes before it, the generation, so it may have 65,527 bytes. No
// method but GetOrLoadBatch allocates for them where the key has up to 120 bytes. [Cache.All]
// and OnEvict show the longer key: see [Namespace.CutKey]. Hits and Sets cost a few nanoseconds
// more than the cache's, for the key and the count.
type Namespace struct {
	cache *Cache
	space *space
}

// space is what the Namespaces of one name share. It does not lead back to the cache.
type space struct {
	generation    atomic.Uint64
	counters      stripe.Counters
	invalidations atomic.Uint64
	mu            sync.Mutex           // of the entry, and of changes of the generation
	entry         []byte               // its key
	value         [generationSize]byte // the value that it got last
}

// spaces are the namespaces of a cache. Buckets may be locked under mu. Reading the map takes
// no lock that is held meanwhile.
type spaces struct {
	mu     sync.Mutex
	byName sync.Map // string to *space
}

// NamespaceStats are the counters of a [Namespace] since the cache was made. They count what
// those of [Stats] do which have the same name.
type NamespaceStats struct {
	GetCalls uint64
	Misses   uint64
	SetCalls uint64
	DelCalls uint64

	// Invalidations counts calls of Invalidate.
	Invalidations uint64
}

// HitRatio is [Stats.HitRatio].
func (s NamespaceStats) HitRatio() float64 {
	return Stats{GetCalls: s.GetCalls, Misses: s.Misses}.HitRatio()
}

// Namespace returns the namespace of that name, which may be any bytes. All that it returns for
// one name share entries and statistics. A name takes 8 KB of the Go heap for as long as the
// cache lives.
//
// One entry of the cache tells which entries of a namespace are valid, so those come back with
// a file ([Options].File) or a snapshot. If it is dropped, it is stored again after some Sets
// or loads; a cache opened in between finds the namespace empty, as always with a name of more
// than 65,515 bytes. Load a snapshot with [Cache.ReadFrom] first, and call Namespace afterwards.
//
// The key of that entry begins with "ringcache.namespace" and a 0 byte; no other key may.
// OnEvict is not told of it; [Cache.Len] and [Cache.All] count and show it.
func (c *Cache) Namespace(name string) *Namespace {
	if s, ok := c.spaces.byName.Load(name); ok {
		return &Namespace{c, s.(*space)}
	}
	var w write
	defer c.shared.notifyQuiet(&w)
	c.spaces.mu.Lock()
	defer c.spaces.mu.Unlock()
	if s, ok := c.spaces.byName.Load(name); ok {
		return &Namespace{c, s.(*space)}
	}
	n := &Namespace{c, &space{entry: append([]byte(reserved), name...)}}
	g, ok := n.stored()
	if !ok {
		g = newGeneration()
		_ = n.storeLocked(&w, g) // nobody else has n; and it is stored again
	}
	n.space.generation.Store(g)
	c.spaces.byName.Store(name, n.space)
	return n
}

// hasNamespaceOf reports whether the key is of the generation of a namespace in use.
func (c *Cache) hasNamespaceOf(k []byte) bool {
	if !isReserved(k) {
		return false
	}
	_, ok := c.spaces.byName.Load(string(k[len(reserved):]))
	return ok
}

// newGeneration returns one that no entry has: keys cannot be guessed.
func newGeneration() uint64 {
	var b [generationSize]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// stored returns the generation that lies in the cache. The policy sees that it is in use, but
// has nothing leave for it: OnEvict must not be called under a lock of the namespace's.
func (n *Namespace) stored() (uint64, bool) {
	var room [generationSize]byte
	h := n.cache.shared.hash(n.space.entry)
	v, _, got := n.cache.lookup(room[:0], n.space.entry, h, withValue|touching|inPlace)
	if got != hit || len(v) != generationSize {
		return 0, false
	}
	return binary.LittleEndian.Uint64(v), true
}

// storeLocked stores a generation. The caller tells of the write when it holds no lock.
func (n *Namespace) storeLocked(w *write, g uint64) error {
	s := n.space
	binary.LittleEndian.PutUint64(s.value[:], g) // there, as a local one would be allocated
	w.k, w.v, w.h = s.entry, s.value[:], n.cache.shared.hash(s.entry)
	w.silent, w.quiet, w.reason = true, true, EvictReplaced
	return n.cache.store(w, "set")
}

// keep stores the generation again if its entry was dropped.
func (n *Namespace) keep() {
	s := n.space
	if !s.mu.TryLock() {
		return // it is being stored
	}
	var w write
	defer n.cache.shared.notifyQuiet(&w)
	defer s.mu.Unlock()
	g := s.generation.Load()
	if there, ok := n.stored(); !ok || there != g {
		_ = n.storeLocked(&w, g)
	}
}

// Invalidate removes all entries of the namespace, in constant time: once it has returned,
// no value that was set before is found again, not by another process on the same file
// ([Options].File) either. A Set that runs meanwhile may be removed or not, and a load that
// began before is not stored for those who call afterwards. What was removed takes memory, and
// counts in [Cache.Len], until the policy drops it, as what nobody reads any more.
//
// It returns [ErrClosed] after Close: then what lies in a file is still valid. A snapshot that
// was begun before brings back the entries of its time, if it is loaded after Invalidate by a
// new cache. Invalidate locks one bucket.
func (n *Namespace) Invalidate() error {
	var w write
	defer n.cache.shared.notifyQuiet(&w)
	s := n.space
	s.mu.Lock()
	defer s.mu.Unlock()
	g := newGeneration()
	err := n.storeLocked(&w, g) // an error means that there is none in the cache now
	s.generation.Store(g)
	s.invalidations.Add(1)
	if errors.Is(err, ErrClosed) {
		return fmt.Errorf("ringcache: invalidate namespace: %w", ErrClosed)
	}
	return nil
}

// Stats returns the counters of the namespace.
func (n *Namespace) Stats() NamespaceStats {
	s := n.space
	hits, misses := s.counters.Sum()
	sets, dels := s.counters.Writes()
	return NamespaceStats{
		GetCalls: hits + misses, Misses: misses, SetCalls: sets, DelCalls: dels,
		Invalidations: s.invalidations.Load(),
	}
}

// AppendKey appends the key that k has in the cache, until the next Invalidate, and returns
// the extended slice: for methods of [Cache] that Namespace does not have.
func (n *Namespace) AppendKey(dst, k []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, n.space.generation.Load())
	return append(dst, k...)
}

// CutKey returns what follows the generation in the key of an entry of the cache, and whether
// the entry is one of the namespace. Entries from before Invalidate are not. The result is a
// part of raw.
func (n *Namespace) CutKey(raw []byte) (k []byte, ok bool) {
	if len(raw) < generationSize ||
		binary.LittleEndian.Uint64(raw) != n.space.generation.Load() {
		return nil, false
	}
	return raw[generationSize:], true
}

// A Typed view without a namespace has a nil one, which does not count.

// looked counts a lookup.
func (n *Namespace) looked(ok bool) {
	if n == nil {
		return
	}
	if c := n.space.counters.Here(); ok {
		c.Hits.Add(1)
	} else {
		c.Misses.Add(1)
	}
}

// lookedAhead counts a lookup of GetOrLoad. Loads store as Sets do, but are none.
func (n *Namespace) lookedAhead(got outcome) {
	if n == nil {
		return
	}
	c := &n.space.counters.Here().Misses
	if got == hit || got == hitDue {
		c = &n.space.counters.Here().Hits
	}
	if c.Add(1)%keepEvery == 0 && got != hit {
		n.keep()
	}
}

// lookedFor counts the lookups of a batch.
func (n *Namespace) lookedFor(keys, hits int) {
	if n != nil {
		c := n.space.counters.Here()
		c.Hits.Add(uint64(hits))
		c.Misses.Add(uint64(keys - hits))
	}
}

// loadedFor counts the lookups of a batch that loads, and looks after the entry as other
// loads do.
func (n *Namespace) loadedFor(keys, hits int) {
	if n == nil {
		return
	}
	c := n.space.counters.Here()
	c.Hits.Add(uint64(hits))
	misses := uint64(keys - hits)
	if c.Misses.Add(misses)%keepEvery < misses {
		n.keep()
	}
}

// wrote counts Sets.
func (n *Namespace) wrote(sets int) {
	if n == nil {
		return
	}
	add := uint64(sets)
	if n.space.counters.Here().Sets.Add(add)%keepEvery < add {
		n.keep()
	}
}

// removed counts a Del.
func (n *Namespace) removed() {
	if n != nil {
		n.space.counters.Here().Dels.Add(1)
	}
}
