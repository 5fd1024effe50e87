package ringcache

import (
	"runtime"
	"sync/atomic"

	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/memo"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/scratch"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/stripe"
	"github.com/ringcache/ringcache/internal/torn"
)

// readTries is the number of attempts before a reader takes the lock; they last longer than most
// Sets.
const readTries = 4

// lookup appends the value of k, whose hash is h, to dst. The expiry is that of a hit; 0 means
// never. This is the common case of bucket.read, with the same steps.
func (c *engine) lookup(
	dst, k []byte, h uint64, mode lookupMode,
) (out []byte, expiry uint32, got outcome) {
	b := c.bucket(h)
	seq := b.seq.Load() &^ 1 // an odd one is never found again
	var now uint32           // 0: not read yet
	rec, slot, s, candidate := b.Candidate(h, &now)
	if candidate == store.Hit && !torn.Overlaps(dst, k) {
		if mode&counted != 0 {
			c.counters.Here().Hits.Add(1) // while the record is fetched, though it may be no hit
		}
		if mode&touching != 0 && b.Touches {
			index.Raise(slot, s)
			mode &^= touching
		}
		value, expiry, known := store.ValueIn(b.Form, rec, k)
		if known && (expiry == 0 || b.Shared.FreshAt(expiry, now)) {
			if out = dst; mode&withValue != 0 {
				out = torn.Append(dst, value)
			}
			if b.isUnchanged(seq) {
				runtime.KeepAlive(&c.mask) // and with it the engine: its memory stays mapped until here
				return out, expiry, hit
			}
		}
		mode |= precounted
	}
	if candidate == store.Miss && c.shared.LargeKeysOf(h).Load() == 0 && b.isUnchanged(seq) {
		if mode&counted != 0 {
			if c.counters.Here().Misses.Add(1); slot != nil {
				b.NoteGhostMiss(slot)
			}
		}
		runtime.KeepAlive(&c.mask)
		return dst, 0, miss
	}
	return c.lookupAny(dst, k, h, mode)
}

// identity is an entry that was found without reading its value.
type identity struct {
	memo.EntryID
	expiry uint32
	slot   *atomic.Uint64
	was    uint64 // the content of the slot
}

// identify returns the identity of k's entry, whose hash is h, without any effect of a lookup. It
// returns the zero value if there is none, or if the entry needs more than the common lookup.
func (c *engine) identify(k []byte, h uint64) identity {
	b := c.bucket(h)
	seq := b.seq.Load() &^ 1
	var now uint32
	rec, slot, s, candidate := b.Candidate(h, &now)
	if candidate != store.Hit {
		return identity{}
	}
	_, expiry, known := store.ValueIn(b.Form, rec, k)
	known = known && b.Shared.FreshAt(expiry, now)
	id := identity{b.entryID(c.bucketID(h), s), expiry, slot, s}
	if !known || !b.isUnchanged(seq) {
		return identity{}
	}
	runtime.KeepAlive(&c.mask) // and with it the engine: its memory stays mapped until here
	return id
}

// bucketID returns the number of the small bucket for hash h, which no other bucket of the process
// has.
func (c *engine) bucketID(h uint64) uint64 { return c.number<<store.BucketBits | h&c.mask }

// noteHit has the effects of a Get on an entry that identify has found.
func (c *engine) noteHit(h uint64, id identity) {
	c.counters.Here().Hits.Add(1)
	if c.bucket(h).Touches {
		index.Raise(id.slot, id.was)
	}
	runtime.KeepAlive(&c.mask) // and with it the engine: its memory stays mapped until here
}

// lookupAny is lookup for records of every form. It takes the lock if writers keep interfering, or
// if k may be in a large bucket.
func (c *engine) lookupAny(
	dst, k []byte, h uint64, mode lookupMode,
) (out []byte, expiry uint32, got outcome) {
	b, n := c.bucket(h), c.counters.Here()
	if !torn.Overlaps(dst, k) {
		for range readTries {
			out, expiry, got = b.read(dst, k, h, n, mode)
			if got == due {
				n.Locked.Add(1)
				c.putOff(k, h)
				mode &^= renewing
			}
			if got == due || got == retry {
				continue
			}
			if got == elsewhere || got == inCold {
				break
			}
			return out, expiry, got
		}
	}
	n.Locked.Add(1)
	for {
		b.look(func(*store.Store) { out, expiry, got = c.lookupUnder(b, dst, k, h, n, mode) })
		if got == inCold {
			out, expiry, got = c.lookupCold(dst, k, h, n, mode)
		}
		switch got {
		case due:
			c.putOff(k, h)
			mode &^= renewing
		case retry:
		default:
			return out, expiry, got
		}
	}
}

// putOff extends the expiry of k's entry after a read.
func (c *engine) putOff(k []byte, h uint64) {
	b := c.bucket(h)
	b.lock()
	defer b.unlock()
	if b.PutOff(k, h) || c.shared.LargeKeysOf(h).Load() == 0 {
		return
	}
	lb := c.largeBucket(h)
	lb.lock()
	defer lb.unlock()
	lb.PutOff(k, h)
}

// lookupUnder is lookup under the lock of the key's small bucket b: nothing is written there, and
// the key stays in its place.
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

// lookupCold is lookup of a key that is in the cold part. It returns retry if it no longer is.
//
// The record is copied under the lock, and its value unpacked without one: no user code runs under
// a lock. If the entry was read there before, it goes back to main.
func (c *engine) lookupCold(
	dst, k []byte, h uint64, n *stripe.Counter, mode lookupMode,
) (out []byte, expiry uint32, got outcome) {
	stored, value := scratch.Get(), scratch.Get()
	defer stored.Release()
	defer value.Release()
	b := c.bucket(h)
	var f store.Found
	there := false
	b.look(func(s *store.Store) {
		touch, orStale := mode&touching != 0, mode&orStale != 0
		stored.Bytes, there = s.ReadCold(&f, stored.Bytes[:0], k, h, touch, orStale)
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
	if got = hit; c.shared.Expired(f.Expiry) {
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

// promote moves to main the record that was found in the cold part, with value v. It must, for a
// write that needs the value.
func (c *engine) promote(b *bucket, was *store.Found, k, v []byte, h uint64, must bool) {
	var w write
	w.Key, w.Value, w.Hash, w.RewriteOnly, w.uncounted = k, v, h, true, true
	defer c.notify(&w)
	b.lock()
	defer b.unlockFor(&w)
	b.Promote(was, &w.Write, must)
}
