package ringcache

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/scratch"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/torn"
)

// batchSize is the most keys of a batch that are processed together, so that their cache misses
// overlap.
const batchSize = 32

// mustFit panics if one of the slices that belong to keys is shorter than keys.
func mustFit(verb string, keys int, beside ...int) {
	for _, n := range beside {
		if n < keys {
			panic(fmt.Sprintf("ringcache: %s: a slice of %d for %d keys", verb, n, keys))
		}
	}
}

// GetBatch looks up keys and appends the values found to dst, in the order of the keys. It sets
// vals[i] to the value of keys[i], a part of the returned slice, or to nil on a miss; an empty
// value is not nil. It returns the extended slice and the number of hits. Keys may repeat, and must
// not alias dst. GetBatch panics if vals is shorter than keys.
//
// It reads memory for many keys in parallel, which is usually faster than Gets if the cache exceeds
// the CPU cache. It allocates and locks like Get.
func (c *Cache) GetBatch(dst []byte, keys, vals [][]byte) (out []byte, hits int) {
	mustFit("get batch", len(keys), len(vals))
	from := len(dst)
	bl := lookups{mode: getMode, room: scratch.Get()}
	defer bl.room.Release()
	for i := 0; i < len(keys); i += batchSize {
		end := min(i+batchSize, len(keys))
		var found int
		dst, found = c.getBlock(&bl, dst, keys[i:end], vals[i:end])
		hits += found
	}
	c.looked(len(keys), hits)
	rebase(dst[from:], vals[:len(keys)])
	return dst, hits
}

// SetBatch stores vals[i] under keys[i] for each i, like calls to [Cache.Set] in that order, but
// reads memory for many keys in parallel. It tries all entries even if some fail, and returns the
// first error, with its index. It panics if vals is shorter than keys. It locks like Set, for each
// key separately.
func (c *Cache) SetBatch(keys, vals [][]byte) error { return c.setBatch(keys, vals, byOptions) }

// SetBatchWithTTL is [Cache.SetBatch] with the TTL of [Cache.SetWithTTL] for all entries.
func (c *Cache) SetBatchWithTTL(keys, vals [][]byte, ttl time.Duration) error {
	return c.setBatch(keys, vals, withTTL(ttl))
}

func (c *Cache) setBatch(keys, vals [][]byte, l lifetime) error {
	mustFit("set batch", len(keys), len(vals))
	var first error
	for i := 0; i < len(keys); i += batchSize {
		end := min(i+batchSize, len(keys))
		first = cmp.Or(first, c.setBlock(i, keys[i:end], vals[i:end], l))
	}
	return first
}

// rebase points vals, which are consecutive, into dst, which may have moved since.
func rebase(dst []byte, vals [][]byte) {
	for i, v := range vals {
		if n := len(v); n > 0 {
			vals[i], dst = dst[:n:n], dst[n:]
		}
	}
}

// lookups holds the keys of a batch that are processed together.
type lookups struct {
	keys   [batchSize][]byte // the engine's
	hashes [batchSize]uint64
	found  [batchSize]located
	now    uint32 // 0: not read
	mode   lookupMode
	room   *scratch.Buffer // for keys of a namespace
}

// getBlock looks up at most batchSize keys: it runs each of the two halves of find for all keys. It
// leaves the outcome for each key in bl.
func (c *Cache) getBlock(bl *lookups, dst []byte, keys, vals [][]byte) (out []byte, hits int) {
	c.prefetchBlock(bl, keys)
	n := c.counters.Here()
	counted, missed := 0, 0
	for i, k := range bl.keys[:len(keys)] {
		l := &bl.found[i]
		before := len(dst)
		var got outcome
		switch dst, got = c.finish(l, dst, k, bl.now); got {
		case hit:
			counted++
		case miss:
			missed++
		default:
			dst, l.expiry, got = c.lookupAny(dst, k, bl.hashes[i], l.mode)
			bl.now = 0 // that may have taken long: the rest read the clock
			l.got = got
		}
		if got == hit {
			hits++
		}
		vals[i] = nil
		if got == hit || got == stale {
			if vals[i] = dst[before:len(dst):len(dst)]; vals[i] == nil {
				vals[i] = []byte{} // an empty value is not nil
			}
		}
	}
	n.Hits.Add(uint64(counted))
	n.Misses.Add(uint64(missed))
	return dst, hits
}

// located is the result of the first half of a lookup, and later of the whole lookup.
type located struct {
	b      *bucket
	seq    uint64
	group  *index.Group // the home
	rec    []byte
	slot   *atomic.Uint64
	s      uint64
	expiry uint32
	got    outcome
	mode   lookupMode // of the part that is left to lookupAny
}

// prefetchBlock hashes at most batchSize keys, prefetches their homes, and then records that these
// refer to.
func (c *Cache) prefetchBlock(bl *lookups, keys [][]byte) {
	hashes, found, room := &bl.hashes, &bl.found, bl.room.Bytes[:0]
	var flip uint64
	for i, k := range keys {
		if c.space != nil {
			from := len(room)
			room = append(c.start(room), k...)
			k, flip = room[from:], math.MaxUint64 // valid even if room moves
		}
		h := c.shared.Mix(xxhash.Sum64(k) ^ flip) // HashOf, which the compiler would not inline
		bl.keys[i], hashes[i] = k, h
		l := &found[i]
		l.b = c.bucket(h)
		l.seq = l.b.seq.Load()
		l.group = l.b.Index.Group(l.b.Index.Geometry(h).Home(h))
		l.group.Prefetch()
	}
	bl.room.Bytes = room
	if c.shared.Expiring.Load() {
		bl.now = c.shared.Now() // while the groups are fetched
	}
	for i := range keys {
		l := &found[i]
		l.mode = bl.mode
		var candidate store.Outcome
		l.rec, l.slot, l.s, candidate = l.b.Candidate(l.group, hashes[i])
		if l.got = outcome(candidate); l.got == miss && c.shared.LargeKeysOf(hashes[i]).Load() != 0 {
			l.got = elsewhere
		}
	}
	// A separate loop, so that there is little code between two prefetches.
	for i := range keys {
		if l := &found[i]; l.got == hit {
			l.b.Rings[index.Ring(l.s)&1].PrefetchRecord(l.rec) // a hit is in small or main
		}
	}
}

// finish is the second half of a lookup in a batch. It leaves everything except a common hit or
// miss to lookupAny.
func (c *engine) finish(l *located, dst, k []byte, now uint32) (out []byte, got outcome) {
	if l.got != hit && l.got != miss || l.seq&1 != 0 || torn.Overlaps(dst, k) {
		return dst, retry
	}
	out = dst
	if l.got == hit {
		if l.b.Touches {
			index.Raise(l.slot, l.s)
			l.mode &^= touching
		}
		value, expiry, ok := store.ValueIn(l.b.Form, l.rec, k)
		if !ok || !l.b.Shared.FreshAt(expiry, now) {
			return dst, retry
		}
		out, l.expiry = torn.Append(dst, value), expiry
	}
	if !l.b.isUnchanged(l.seq) {
		return dst, retry
	}
	if l.got == miss && l.slot != nil {
		l.b.NoteGhostMiss(l.slot)
	}
	return out, l.got
}

// batchError returns the error of SetBatch for the entry with an index.
func batchError(index int, err error) error {
	return fmt.Errorf("ringcache: set batch: index %d: %w", index, err)
}

// setBlock stores at most batchSize entries, the first of which has index from in the batch, and
// returns the first error. Each Set takes the lock by itself.
func (c *Cache) setBlock(from int, keys, vals [][]byte, l lifetime) (first error) {
	bl := lookups{room: scratch.Get()}
	defer bl.room.Release()
	c.prefetchBlock(&bl, keys)
	for i, k := range bl.keys[:len(keys)] {
		var w write
		w.Key, w.Value, w.Hash = k, vals[i], bl.hashes[i]
		w.Kind, w.Reason, w.life = c.kind, store.Replaced, l
		if err := c.put(c.space, &w, "set"); err != nil && first == nil {
			first = batchError(from+i, err)
		}
	}
	return first
}

// A batch is loaded by a GetBatch, loads of the missing keys (loader.go), and a merge of both sets
// of values in order.

// BatchLoadFunc loads the values of keys for GetOrLoadBatch. It returns one result for each key, in
// the same order, with the same meaning as for a [LoadFunc]; an error applies to every key. The
// context is like a [LoadFunc]'s, for all keys together. No key occurs twice, unless its namespace
// is being reset. The function may keep keys and their bytes, and must not modify the results after
// it has returned.
type BatchLoadFunc[K, V any] func(ctx context.Context, keys []K) ([]Loaded[V], error)

func (fn BatchLoadFunc[K, V]) load(ctx context.Context, keys []K) ([]Loaded[V], error) {
	return fn(ctx, keys)
}

// GetOrLoadBatch is like [Cache.GetBatch], but loads the missing values, usually with one call of
// load. hits is the number of keys whose values were in the cache, unexpired.
//
// Each key is treated as by [Cache.GetOrLoad], except that a key without a value ([ErrAbsent]) is
// not an error: its value in vals is nil. The value of a failed key is nil too, and err, a
// [*BatchError], lists it. A load's panic is raised once no other load is waited for.
//
// Refreshes ([Options].RefreshTimeout) are made with another call of load. If all keys are present
// and none is due, GetOrLoadBatch allocates and locks like GetBatch.
func (c *Cache) GetOrLoadBatch(
	ctx context.Context, dst []byte, keys, vals [][]byte, load BatchLoadFunc[[]byte, []byte],
) (out []byte, hits int, err error) {
	mustBeFunc("GetOrLoadBatch", load != nil)
	mustFit("load batch", len(keys), len(vals))
	out, hits, failed := c.getOrLoadBatch(ctx, dst, keys, vals, load, nil)
	return out, hits, batchErrorOf(failed)
}

// getOrLoadBatch is GetOrLoadBatch that also loads the keys whose values are present but not
// usable; usable must remove such entries. If usable is nil, all values are usable.
func (c *Cache) getOrLoadBatch(
	ctx context.Context, dst []byte, keys, vals [][]byte, load byteLoader,
	usable func(i int, v []byte) bool,
) (out []byte, hits int, failed []KeyError) {
	from := len(dst)
	bl := lookups{mode: getMode | orStale, room: scratch.Get()}
	defer bl.room.Release()
	var all []wanted
	found, waits := 0, false
	for i := 0; i < len(keys); i += batchSize {
		end := min(i+batchSize, len(keys))
		var n int
		dst, n = c.getBlock(&bl, dst, keys[i:end], vals[i:end])
		found += n
		for j, l := range bl.found[:end-i] {
			w := wanted{at: i + j, key: bl.keys[j], hash: bl.hashes[j]}
			w.got = c.next(ctx, w.hash, l.expiry, l.got)
			switch {
			case w.got == negative:
				c.counters.Here().Negative.Add(1)
				continue
			case w.got != miss && w.got != stale && usable != nil && !usable(w.at, vals[w.at]):
				w.got = miss
			case l.got == hit:
				hits++
			}
			if w.got != hit {
				w.key = bytes.Clone(w.key) // bl is used again, before the load
				all = append(all, w)
				waits = waits || w.got != needsRefresh
			}
		}
	}
	c.looked(len(keys), found)
	if len(all) > 0 {
		c.load(ctx, all, load)
	}
	if waits {
		var n int
		n, failed = takeLoaded(vals, all)
		hits += n
		dst = append(dst[:from], slices.Concat(vals[:len(keys)]...)...)
	}
	rebase(dst[from:], vals[:len(keys)])
	return dst, hits, failed
}

// takeLoaded puts the values that were waited for into vals. It returns the number of those that
// were in the cache after all, and the errors.
func takeLoaded(vals [][]byte, all []wanted) (hits int, failed []KeyError) {
	for i := range all {
		w := &all[i]
		if w.got == needsRefresh {
			continue
		}
		if w.got == hit {
			hits++
		}
		switch vals[w.at] = nil; w.err {
		case nil:
			vals[w.at] = append([]byte{}, w.value...) // not nil, even if it is empty
		case ErrAbsent:
		default:
			failed = append(failed, KeyError{w.at, w.err})
		}
	}
	return hits, failed
}
