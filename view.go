package ringcache

import (
	"context"
	"encoding/binary"
	"iter"
	"time"
)

// How one cache serves as several. A view adds a prefix to each key, calls the Cache method of the
// same name, and counts the call. A Namespace is a view whose keys begin with its generation; a
// Typed encodes keys and values for a view, whose keys may have another prefix as well. The view of
// the whole cache has neither: it passes keys on unchanged, and does not count.

// view is the set of entries of a cache whose keys have the same beginning. Its exported methods
// are those of Namespace, which embeds it, so their comments speak of the namespace and the
// receiver is n.
type view struct {
	cache  *Cache
	space  *space // of the namespace whose generation begins the keys; nil: none
	prefix string // of the keys, after the generation
}

// stackKey is the greatest length of a key that is built on the stack.
const stackKey = 128

// start appends the beginning of every key of the view, which is valid until the next Invalidate.
func (n *view) start(dst []byte) []byte {
	if n.space != nil {
		dst = binary.LittleEndian.AppendUint64(dst, n.space.generation.Load())
	}
	if n.prefix != "" {
		dst = append(dst, n.prefix...)
	}
	return dst
}

// startLen returns the length of what start appends.
func (n *view) startLen() int {
	if n.space == nil {
		return len(n.prefix)
	}
	return generationSize + len(n.prefix)
}

// appendKey appends the cache's key for k, which is valid until the next Invalidate.
func (n *view) appendKey(dst, k []byte) []byte { return append(n.start(dst), k...) }

// key returns the cache's key for k: k itself, or a key built in room.
func (n *view) key(room, k []byte) []byte {
	if n.space == nil && n.prefix == "" {
		return k
	}
	return n.appendKey(room, k)
}

// keysOf returns the cache's keys for at most batchSize keys.
func (n *view) keysOf(b *block, keys [][]byte) [][]byte {
	if b == nil {
		return keys
	}
	b.reset()
	for i, k := range keys {
		b.keys[i] = b.keyRoom.took(n.appendKey(b.keyRoom.next(), k))
	}
	return b.keys[:len(keys)]
}

// block returns room for keysOf, or nil if the cache has the same keys.
func (n *view) block() *block {
	if n.startLen() == 0 {
		return nil
	}
	return blocks.Get().(*block)
}

// cutKey returns the part of a cache's key that follows the beginning, and whether the entry
// belongs to the view. Entries from before Invalidate do not.
func (n *view) cutKey(raw []byte) (k []byte, ok bool) {
	if n.space != nil {
		if len(raw) < generationSize ||
			binary.LittleEndian.Uint64(raw) != n.space.generation.Load() {
			return nil, false
		}
		raw = raw[generationSize:]
	}
	if len(raw) < len(n.prefix) || string(raw[:len(n.prefix)]) != n.prefix {
		return nil, false
	}
	return raw[len(n.prefix):], true
}

// has reports whether a cache's key belongs to the view.
func (n *view) has(raw []byte) bool {
	_, ok := n.cutKey(raw)
	return ok
}

// The counters of a namespace. With every keepEvery-th Set or load that a stripe counts, the
// namespace checks the entry that tells which of its entries are valid.

// looked counts a lookup, and returns ok.
func (n *view) looked(ok bool) bool {
	if n.space == nil {
		return ok
	}
	if c := n.space.counters.Here(); ok {
		c.Hits.Add(1)
	} else {
		c.Misses.Add(1)
	}
	return ok
}

// lookedFor counts the lookups of a batch.
func (n *view) lookedFor(keys, hits int) {
	if n.space != nil {
		c := n.space.counters.Here()
		c.Hits.Add(uint64(hits))
		c.Misses.Add(uint64(keys - hits))
	}
}

// lookedAhead counts a lookup of GetOrLoad. Loads store entries, but do not count as Sets.
func (n *view) lookedAhead(got outcome) {
	if n.space == nil {
		return
	}
	c := &n.space.counters.Here().Misses
	if got == hit || got == hitDue {
		c = &n.space.counters.Here().Hits
	}
	if c.Add(1)%keepEvery == 0 && got != hit {
		n.space.keep(n.cache)
	}
}

// loadedFor counts the lookups of a batch that loads.
func (n *view) loadedFor(keys, hits int) {
	if n.space == nil {
		return
	}
	c := n.space.counters.Here()
	c.Hits.Add(uint64(hits))
	misses := uint64(keys - hits)
	if c.Misses.Add(misses)%keepEvery < misses {
		n.space.keep(n.cache)
	}
}

// wrote counts Sets.
func (n *view) wrote(sets int) {
	if n.space == nil {
		return
	}
	add := uint64(sets)
	if n.space.counters.Here().Sets.Add(add)%keepEvery < add {
		n.space.keep(n.cache)
	}
}

// removed counts a Del.
func (n *view) removed() {
	if n.space != nil {
		n.space.counters.Here().Dels.Add(1)
	}
}

// Get is [Cache.Get] in the namespace.
func (n *view) Get(dst, k []byte) []byte {
	out, _ := n.HasGet(dst, k)
	return out
}

// HasGet is [Cache.HasGet] in the namespace.
func (n *view) HasGet(dst, k []byte) ([]byte, bool) {
	var room [stackKey]byte
	out, ok := n.cache.HasGet(dst, n.key(room[:0], k))
	return out, n.looked(ok)
}

// Has is [Cache.Has] in the namespace.
func (n *view) Has(k []byte) bool {
	var room [stackKey]byte
	return n.looked(n.cache.Has(n.key(room[:0], k)))
}

// Peek is [Cache.Peek] in the namespace. It does not count in the statistics of the namespace
// either.
func (n *view) Peek(dst, k []byte) ([]byte, bool) {
	var room [stackKey]byte
	return n.cache.Peek(dst, n.key(room[:0], k))
}

// GetWithTTL is [Cache.GetWithTTL] in the namespace.
func (n *view) GetWithTTL(dst, k []byte) ([]byte, time.Duration, bool) {
	var room [stackKey]byte
	out, ttl, ok := n.cache.GetWithTTL(dst, n.key(room[:0], k))
	return out, ttl, n.looked(ok)
}

// TTL is [Cache.TTL] in the namespace.
func (n *view) TTL(k []byte) (time.Duration, bool) {
	var room [stackKey]byte
	return n.cache.TTL(n.key(room[:0], k))
}

// GetBatch looks up keys and appends the values found to dst, in the order of the keys. It sets
// vals[i] to the value of keys[i], a part of the returned slice whose capacity is limited to its
// length, or to nil on a miss; an empty value is not nil. It returns the extended slice and the
// number of hits. Keys may repeat, and must not alias dst. The bytes belong to the caller. GetBatch
// panics if vals is shorter than keys.
//
// The processor fetches many keys in parallel, so in a cache that does not fit in the CPU cache a
// key takes a fraction of the time of a Get. GetBatch does not allocate if dst has room for all
// values, and takes the same locks as that many Gets. The result is not a snapshot of one instant.
func (c *Cache) GetBatch(dst []byte, keys, vals [][]byte) (out []byte, hits int) {
	whole := view{cache: c}
	return whole.GetBatch(dst, keys, vals)
}

// GetBatch is [Cache.GetBatch] in the namespace.
func (n *view) GetBatch(dst []byte, keys, vals [][]byte) (out []byte, hits int) {
	mustFit("get batch", keys, vals)
	from, room := len(dst), cap(dst)
	var bl lookups
	b := n.block()
	defer b.release()
	for i := 0; i < len(keys); i += batchSize {
		end := min(i+batchSize, len(keys))
		var found int
		dst, found = n.cache.getBlock(&bl, dst, n.keysOf(b, keys[i:end]), vals[i:end])
		hits += found
	}
	n.lookedFor(len(keys), hits)
	if cap(dst) != room {
		rebase(dst[from:], vals[:len(keys)])
	}
	return dst, hits
}

// Set is [Cache.Set] in the namespace. If the namespace was dropped ([Namespace.Drop]), Set stores
// nothing and returns nil.
func (n *view) Set(k, v []byte) error {
	var room [stackKey]byte
	n.wrote(1)
	return n.cache.Set(n.key(room[:0], k), v)
}

// SetWithTTL is [Cache.SetWithTTL] in the namespace.
func (n *view) SetWithTTL(k, v []byte, ttl time.Duration) error {
	return n.setFor(k, v, withTTL(ttl))
}

// setFor is Set of an entry with the given lifetime.
func (n *view) setFor(k, v []byte, l lifetime) error {
	var room [stackKey]byte
	n.wrote(1)
	return n.cache.setFor(n.key(room[:0], k), v, l)
}

// SetBatch stores vals[i] under keys[i] for each i, like calls to [Cache.Set] in that order, but
// fetches the keys' parts of the index and the records to be replaced in parallel. It tries all
// entries even if some fail, and returns the first error, with its index. It ignores surplus
// values, and panics if vals is shorter than keys.
//
// SetBatch allocates only where Set does, and for an error. It locks one bucket at a time,
// separately for each key, so other goroutines may see a part of the batch.
func (c *Cache) SetBatch(keys, vals [][]byte) error {
	whole := view{cache: c}
	return whole.SetBatch(keys, vals)
}

// SetBatchWithTTL is [Cache.SetBatch] with the TTL of [Cache.SetWithTTL], the same for all entries,
// like calls to SetWithTTL in the order of the keys.
func (c *Cache) SetBatchWithTTL(keys, vals [][]byte, ttl time.Duration) error {
	whole := view{cache: c}
	return whole.SetBatchWithTTL(keys, vals, ttl)
}

// SetBatch is [Cache.SetBatch] in the namespace.
func (n *view) SetBatch(keys, vals [][]byte) error { return n.setBatch(keys, vals, byOptions) }

// SetBatchWithTTL is [Cache.SetBatchWithTTL] in the namespace.
func (n *view) SetBatchWithTTL(keys, vals [][]byte, ttl time.Duration) error {
	return n.setBatch(keys, vals, withTTL(ttl))
}

func (n *view) setBatch(keys, vals [][]byte, l lifetime) error {
	mustFit("set batch", keys, vals)
	n.wrote(len(keys))
	b := n.block()
	defer b.release()
	var first error
	for i := 0; i < len(keys); i += batchSize {
		end := min(i+batchSize, len(keys))
		at, err := n.cache.setBlock(n.keysOf(b, keys[i:end]), vals[i:end], l)
		if err != nil && first == nil {
			first = batchError(i+at, err)
		}
	}
	return first
}

// SetIfAbsent is [Cache.SetIfAbsent] in the namespace.
func (n *view) SetIfAbsent(
	dst, k, v []byte, ttl time.Duration,
) (out []byte, stored bool, err error) {
	_, stored, err = n.setIfAbsent(&dst, k, v, ttl)
	return dst, stored, err
}

// setIfAbsent is SetIfAbsent that also reports whether k was present.
func (n *view) setIfAbsent(
	dst *[]byte, k, v []byte, ttl time.Duration,
) (there, stored bool, err error) {
	var room [stackKey]byte
	n.wrote(1)
	return n.cache.setIfAbsent(dst, n.key(room[:0], k), v, ttl)
}

// CompareAndSwap is [Cache.CompareAndSwap] in the namespace.
func (n *view) CompareAndSwap(k, old, new []byte) (swapped bool, err error) {
	var room [stackKey]byte
	n.wrote(1)
	return n.cache.CompareAndSwap(n.key(room[:0], k), old, new)
}

// SetIfChanged is [Cache.SetIfChanged] in the namespace.
func (n *view) SetIfChanged(k, v []byte) (changed bool, err error) {
	var room [stackKey]byte
	n.wrote(1)
	return n.cache.SetIfChanged(n.key(room[:0], k), v)
}

// Update is [Cache.Update] in the namespace.
func (n *view) Update(k []byte, fn func(e *Entry[[]byte])) error {
	mustBeFunc("Update", fn != nil)
	return n.update(k, infallible(fn))
}

// update is Update by fn. It counts as the Set or Del that the last call of fn has decided.
func (n *view) update(k []byte, fn updater) error {
	var room [stackKey]byte
	did, err := n.cache.update(n.key(room[:0], k), fn)
	switch did {
	case set, setFor:
		n.wrote(1)
	case deleted:
		n.removed()
	}
	return err
}

// Del is [Cache.Del] in the namespace.
func (n *view) Del(k []byte) bool {
	var room [stackKey]byte
	n.removed()
	return n.cache.Del(n.key(room[:0], k))
}

// GetAndDel is [Cache.GetAndDel] in the namespace.
func (n *view) GetAndDel(dst, k []byte) ([]byte, bool) {
	var room [stackKey]byte
	n.removed()
	return n.cache.GetAndDel(dst, n.key(room[:0], k))
}

// Touch is [Cache.Touch] in the namespace.
func (n *view) Touch(k []byte, ttl time.Duration) bool {
	var room [stackKey]byte
	return n.cache.Touch(n.key(room[:0], k), ttl)
}

// GetOrLoad is [Cache.GetOrLoad] in the namespace. load receives k without the generation. A call
// after Invalidate does not wait for a load that began before it.
func (n *view) GetOrLoad(
	ctx context.Context, dst, k []byte, load LoadFunc[[]byte, []byte],
) ([]byte, error) {
	mustBeFunc("GetOrLoad", load != nil)
	var room [stackKey]byte
	key := n.key(room[:0], k)
	out, got := n.cache.getAhead(dst, key, unhashed)
	n.lookedAhead(got)
	if got == hit {
		return out, nil
	}
	start := n.startLen()
	return n.cache.loadMissing(ctx, out, key, got,
		func(ctx context.Context, raw []byte) ([]byte, time.Duration, error) {
			return load(ctx, raw[start:])
		})
}

// GetOrLoadBatch is [Cache.GetOrLoadBatch] in the namespace. load receives keys without the
// generation. GetOrLoadBatch allocates room for the keys.
func (n *view) GetOrLoadBatch(
	ctx context.Context, dst []byte, keys, vals [][]byte, load BatchLoadFunc[[]byte, []byte],
) (out []byte, hits int, err error) {
	mustBeFunc("GetOrLoadBatch", load != nil)
	mustFit("load batch", keys, vals)
	raw, room := make([][]byte, len(keys)), joined{buf: make([]byte, 0, stackKey/4*len(keys))}
	for i, k := range keys {
		raw[i] = room.took(n.appendKey(room.next(), k))
	}
	start := n.startLen()
	out, hits, failed := n.cache.getOrLoadBatch(ctx, dst, raw, vals,
		func(ctx context.Context, raw [][]byte) ([]loaded, error) {
			for i, k := range raw {
				raw[i] = k[start:]
			}
			return load(ctx, raw)
		}, nil)
	n.loadedFor(len(keys), hits)
	return out, hits, failed.orNil()
}

// All is [Cache.All] of the entries of the namespace, with the keys under which they were set. Key
// and value are valid until the next iteration. All examines the keys of all entries of the cache.
func (n *view) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		mustBeFunc("All", yield != nil)
		n.cache.loop(n.has, withValue, func(raw, value []byte) bool {
			return yield(raw[n.startLen():], value)
		})
	}
}

// Keys is [Namespace.All] without the values, which it does not copy. Each key is valid until the
// next iteration; clone it to keep it.
func (n *view) Keys() iter.Seq[[]byte] {
	return func(yield func(key []byte) bool) {
		mustBeFunc("Keys", yield != nil)
		n.cache.loop(n.has, 0, func(raw, _ []byte) bool { return yield(raw[n.startLen():]) })
	}
}
