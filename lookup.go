package ringcache

import (
	"runtime"
	"sync/atomic"

	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/memo"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/stripe"
	"github.com/ringcache/ringcache/internal/torn"
)

// lookupMode selects the effects of a lookup.
type lookupMode uint8

const (
	withValue   lookupMode = 1 << iota // append the value
	counted                            // count in Stats, including near misses
	touching                           // raise the frequency
	orStale                            // accept expired entries that Options.StaleIfError keeps
	wantPromote                        // move the entry from the cold part to main
	precounted                         // already counted, as a hit
	renewing                           // extend the expiry (Options.ExpireAfterAccess)

	reading = touching | renewing // the effects of a read on an entry
	getMode = withValue | counted | reading
)

// outcome is the result of a lookup: one of the store's, or what this package alone knows.
type outcome uint8

const (
	miss         = outcome(store.Miss)
	hit          = outcome(store.Hit) // the value was found
	unclear      = outcome(store.Unclear)
	negative     = unclear + iota // a load found no value: a miss except to loads
	needsRefresh                  // a hit that must start a load of the value (Cache.getAhead)
	elsewhere                     // not here, but perhaps in a large bucket
	inCold                        // in the cold part: to be read by Cache.lookupCold
	due                           // found, and its expiry must be extended (Cache.putOff)
	retry                         // torn: the bucket was written to meanwhile
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
		if out, expiry, got = c.lookupLocking(b, dst, k, h, n, mode); got == inCold {
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

// lookupLocking is lookupAny under the lock of the key's small bucket b.
func (c *engine) lookupLocking(
	b *bucket, dst, k []byte, h uint64, n *stripe.Counter, mode lookupMode,
) (out []byte, expiry uint32, got outcome) {
	b.mu.Lock()
	defer b.mu.Unlock() // even after a fault in the caller's dst
	return c.lookupUnder(b, dst, k, h, n, mode)
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

// peek appends the value of the key to dst, without counting as a lookup.
func (c *engine) peek(dst []byte, w *write) ([]byte, bool) {
	out, _, got := c.lookup(dst, w.Key, w.Hash, withValue)
	return out, got == hit
}
