package ringcache

import (
	"runtime"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/memo"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/scratch"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/stripe"
	"github.com/ringcache/ringcache/internal/torn"
)

// readTries is the number of attempts of bucket.read before a reader takes the lock.
const readTries = 4

// find looks up k, and appends its value to dst if mode says so. With asWritten, k is the key that
// the caller wrote, and h is ignored; otherwise k is the engine's key, and h its hash. This is the
// common case of bucket.read.
//
// It is one function because a call copies nine words of parameters.
func (c *Cache) find(dst, k []byte, h uint64, mode lookupMode) ([]byte, uint32, outcome) {
	if c.space != nil {
		if mode |= inSpace; mode&asWritten != 0 {
			var room [stackKey]byte
			k, h = c.key(room[:0], k)
			mode &^= asWritten
		}
	}
	e := c.engine
	b, h := e.locate(k, h, mode)
	seq := b.seq.Load() &^ 1 // the value that precedes an odd one never returns
	g := b.Index.Group(b.Index.Geometry(h).Home(h))
	g.Prefetch()
	// Before the first load: reading the clock may wait for loads under way.
	var now uint32 // 0: not read yet
	if b.Mortal.Load() {
		now = b.Shared.Now()
	}
	rec, slot, s, candidate := b.Candidate(g, h)
	if candidate == store.Miss {
		if e.shared.LargeKeysOf(h).Load() != 0 || !b.isUnchanged(seq) {
			return c.findAny(dst, k, h, mode)
		}
		if mode&counted != 0 {
			if e.counters.Here().Misses.Add(1); slot != nil {
				b.NoteGhostMiss(slot)
			}
		}
		runtime.KeepAlive(&e.mask) // and with it the engine: its memory stays mapped until here
		if mode&inSpace != 0 {
			c.space.count(mode, miss)
		}
		return dst, 0, miss
	}
	if candidate == store.Hit && !torn.Overlaps(dst, k) {
		if mode&counted != 0 {
			e.counters.Here().Hits.Add(1) // while the record is fetched, though it may be no hit
		}
		if mode&touching != 0 && b.Touches {
			index.Raise(slot, s)
			mode &^= touching
		}
		value, expiry, known := store.ValueIn(b.Form, rec, k)
		if known && (expiry == 0 || b.Shared.FreshAt(expiry, now)) {
			out := dst
			if mode&withValue != 0 {
				out = torn.Append(dst, value)
			}
			if b.isUnchanged(seq) {
				runtime.KeepAlive(&e.mask)
				if mode&inSpace != 0 {
					c.space.count(mode, hit)
				}
				return out, expiry, hit
			}
		}
		mode |= precounted
	}
	return c.findAny(dst, k, h, mode)
}

// findAny is find by way of lookupAny.
func (c *Cache) findAny(dst, k []byte, h uint64, mode lookupMode) ([]byte, uint32, outcome) {
	out, expiry, got := c.lookupAny(dst, k, h, mode)
	if c.space != nil {
		c.space.count(mode&^precounted, got)
	}
	return out, expiry, got
}

// locate returns the small bucket of k, and its hash: h, or with asWritten that of a key of the
// whole cache.
func (c *engine) locate(k []byte, h uint64, mode lookupMode) (*bucket, uint64) {
	if mode&asWritten != 0 {
		h = c.shared.Mix(xxhash.Sum64(k))
	}
	return c.bucket(h), h
}

// count counts a completed lookup in the namespace.
func (s *space) count(mode lookupMode, got outcome) { countLookup(s.counts().Here(), mode, got) }

// identity is an entry that was found without reading its value.
type identity struct {
	memo.EntryID
	expiry uint32
	slot   *atomic.Uint64
	was    uint64 // the content of the slot
}

// identify returns the identity of k's entry, whose hash is h, without any effect of a lookup. It
// returns the zero value if the common lookup finds none.
func (c *engine) identify(k []byte, h uint64) identity {
	b := c.bucket(h)
	seq := b.seq.Load() &^ 1
	g := b.Index.Group(b.Index.Geometry(h).Home(h))
	g.Prefetch()
	var now uint32
	if b.Mortal.Load() {
		now = b.Shared.Now() // before the first load, as in find
	}
	rec, slot, s, candidate := b.Candidate(g, h)
	if candidate != store.Hit {
		return identity{}
	}
	_, expiry, known := store.ValueIn(b.Form, rec, k)
	known = known && b.Shared.FreshAt(expiry, now)
	// No other bucket of the process has this number.
	id := identity{b.entryID(c.number<<store.BucketBits|h&c.mask, s), expiry, slot, s}
	if !known || !b.isUnchanged(seq) {
		return identity{}
	}
	runtime.KeepAlive(&c.mask) // and with it the engine: its memory stays mapped until here
	return id
}

// noteHit counts a hit on an entry that identify has found, and the read.
func (c *engine) noteHit(h uint64, id identity) {
	c.counters.Here().Hits.Add(1)
	if c.bucket(h).Touches {
		index.Raise(id.slot, id.was)
	}
	runtime.KeepAlive(&c.mask) // and with it the engine: its memory stays mapped until here
}

// lookupAny is find for records of every form.
func (c *engine) lookupAny(
	dst, k []byte, h uint64, mode lookupMode,
) (out []byte, expiry uint32, got outcome) {
	b, n, free := c.bucket(h), c.counters.Here(), readTries
	if torn.Overlaps(dst, k) {
		free = 0
	}
	for ; ; free-- {
		if free > 0 {
			out, expiry, got = b.read(dst, k, h, n, mode)
		} else {
			b.look(func(*store.Store) { out, expiry, got = c.lookupUnder(b, dst, k, h, n, mode) })
		}
		if free <= 0 || got == toPutOff || got == inCold {
			n.Locked.Add(1)
		}
		if got == inCold {
			out, expiry, got = c.lookupCold(dst, k, h, n, mode)
		}
		switch got {
		case toPutOff:
			c.putOff(k, h)
			mode &^= renewing
		case elsewhere:
			free = 0
		case retry:
		default:
			return out, expiry, got
		}
	}
}

// putOff extends the expiry of k's entry after a read, if that is due.
func (c *engine) putOff(k []byte, h uint64) {
	w, b := write{Write: store.Write{Hash: h}}, c.bucket(h)
	b.lock()
	defer b.unlock()
	_ = b.PutOff(k, h) || c.inLargeLocked(&w, func(lb *bucket) bool { return lb.PutOff(k, h) })
}

// lookupUnder is lookupAny under the lock of the key's small bucket b: the key does not move to
// another bucket.
func (c *engine) lookupUnder(
	b *bucket, dst, k []byte, h uint64, n *stripe.Counter, mode lookupMode,
) (out []byte, expiry uint32, got outcome) {
	if out, expiry, got = b.read(dst, k, h, n, mode); got != elsewhere {
		return out, expiry, got
	}
	lb := c.largeBucket(h)
	if !torn.Overlaps(dst, k) {
		for range readTries {
			if out, expiry, got = lb.read(dst, k, h, n, mode); got != retry {
				return out, expiry, got
			}
		}
	}
	lb.mu.Lock()
	defer lb.mu.Unlock()
	return lb.read(dst, k, h, n, mode)
}

// lookupCold is lookupAny of a key that is in the cold part. It may return retry.
//
// The record is copied under the lock, and its value unpacked without one: no user code runs under
// a lock. A second read moves the entry to main, if there is room.
func (c *engine) lookupCold(
	dst, k []byte, h uint64, n *stripe.Counter, mode lookupMode,
) (out []byte, expiry uint32, got outcome) {
	stored, value := scratch.Get(), scratch.Get()
	defer stored.Release()
	defer value.Release()
	b := c.bucket(h)
	var f store.Found
	var expired, there bool // of one reading of the clock: unpacking takes time
	b.look(func(s *store.Store) {
		touch, orStale := mode&touching != 0, mode&orStale != 0
		stored.Bytes, expired, there = s.ReadCold(&f, stored.Bytes[:0], k, h, touch, orStale)
	})
	if !there {
		return dst, 0, retry
	}
	v, err := stored.Bytes, error(nil)
	if f.Kind.Base() == record.Packed {
		v, err = c.shared.Compression.Unpack(value.Bytes[:0], stored.Bytes)
		value.Bytes = v
	}
	if err != nil {
		dropped := false
		b.change(func(s *store.Store) { dropped = s.DropDamaged(&f, k, h) })
		if !dropped {
			return dst, 0, retry
		}
		countLookup(n, mode, miss)
		return dst, 0, miss
	}
	if got = hit; expired {
		got = stale
	}
	countLookup(n, mode, got)
	if mode&counted != 0 && got == hit {
		b.ColdHits.Add(1)
	}
	if got == hit && (mode&wantPromote != 0 || mode&touching != 0 && index.WasRead(f.Slot)) {
		c.promote(b, &f, k, v, h, mode&wantPromote != 0)
	}
	if mode&withValue != 0 {
		dst = append(dst, v...) // k, which may overlap dst, is no longer used
	}
	return dst, f.Expiry, got
}

// promote moves to main the record that was found in the cold part, with value v. With must, an
// entry that cannot move is evicted.
func (c *engine) promote(b *bucket, was *store.Found, k, v []byte, h uint64, must bool) {
	var w write
	w.Key, w.Value, w.Hash, w.RewriteOnly, w.counted = k, v, h, true, true
	defer c.notify(&w)
	b.lock()
	defer b.unlockFor(&w)
	b.Promote(was, &w.Write, must)
}
