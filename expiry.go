package ringcache

import (
	"context"
	"time"

	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/record"
)

// TTL returns the remaining time to live of k's entry, and whether k is present: 0 and true for an
// entry that never expires, 0 and false on a miss. With [Options].ExpireAfterAccess, reads can
// extend that time. TTL counts neither as a lookup nor as a read.
func (c *Cache) TTL(k []byte) (time.Duration, bool) {
	_, expiry, got := c.find(nil, k, 0, asWritten)
	return c.left(expiry, got), got == hit
}

// GetWithTTL combines [Cache.HasGet] and [Cache.TTL] in one lookup: it appends the value of k to
// dst, and returns the extended slice, the remaining time to live, and whether k was present. The
// time is positive for an entry that expires, and otherwise 0. It allocates and locks like Get.
func (c *Cache) GetWithTTL(dst, k []byte) ([]byte, time.Duration, bool) {
	out, expiry, got := c.find(dst, k, 0, getMode|asWritten)
	return out, c.left(expiry, got), got == hit
}

// left returns the time until the expiry of an entry that was found, 0 for never. It is not 0 for
// an entry that has expired since, because that is not never.
func (c *engine) left(expiry uint32, got outcome) time.Duration {
	if got != hit || expiry == 0 {
		return 0
	}
	return max(c.shared.Until(expiry), 1)
}

// DeleteExpired removes expired entries, including negative ones ([Cache.GetOrLoad]), once
// [Options].StaleIfError has passed too, and returns their number. Call it regularly so that
// [Options].OnRemove is called on time. You need not call it to free memory, which Sets reclaim
// themselves.
func (c *Cache) DeleteExpired() (n int) {
	c.each(func(b *bucket) {
		for first, done := true, false; !done; first = false {
			var dropped int
			dropped, done = c.deleteStep(b, first)
			n += dropped
		}
	})
	return n
}

// deleteStep is one step of DeleteExpired in a bucket.
func (c *engine) deleteStep(b *bucket, first bool) (dropped int, done bool) {
	var w write
	defer c.notify(&w)
	b.lock()
	defer b.unlockFor(&w)
	return b.DeleteStep(first)
}

// What GetOrLoad does depends on the value in the cache:
//
//   - It is fresh: GetOrLoad returns it.
//   - It is usable: it is due (Options.RefreshAhead), or has expired and is kept
//     (Options.StaleIfError). Its load is a refresh, which goes on in the background when no caller
//     waits, until Options.RefreshTimeout. A caller waits only if the value has expired, at most
//     for Options.SoftTimeout. After a refresh has failed or was late, the next one of the key
//     comes after a pause and nobody waits for it, and of the callers for other keys one waits
//     after each pause, until a refresh succeeds in time.
//   - It is gone: callers wait for the load, which ends with the context of the last of them.

// isDue reports whether a hit on an entry with that expiry starts a load.
func (c *engine) isDue(expiry uint32) bool {
	ahead := c.options.RefreshAhead
	return ahead > 0 && expiry != 0 && c.shared.Until(expiry) <= ahead
}

// next returns what a caller does after a lookup with hash h has found an entry with that expiry:
// hit to use the value, needsRefresh to start a load as well, stale to wait for a load within
// Options.SoftTimeout, or the other outcomes of the lookup.
func (c *engine) next(ctx context.Context, h uint64, expiry uint32, got outcome) outcome {
	if got != stale && (got != hit || !c.isDue(expiry)) {
		return got
	}
	next := hit
	if now := c.shared.Now(); ctx.Err() == nil {
		// The delay after a success is for entries that are due.
		if ok, again := c.pauses.Of(h).Try(now); ok || got == stale && !again {
			next = needsRefresh
			if got == stale && !again {
				if ok, _ := c.pauses.All.Try(now); ok {
					return stale
				}
			}
		}
	}
	if got == stale {
		c.counters.Here().Stale.Add(1)
	}
	return next
}

// holdOff delays the next refresh of a key, and of all keys unless it was only late for one caller,
// after one has failed or is late.
func (c *engine) holdOff(h uint64, all bool) {
	now := c.shared.Now()
	if all {
		c.pauses.All.Begin(now)
	}
	c.pauses.Of(h).Begin(now)
}

// usable returns the value of a key that is there, expired or set meanwhile, in place of the result
// of a refresh, and whether there is one. It is always that of the key's last write, because
// every write removes the value that it does not replace, expired or not.
func (c *engine) usable(w *wanted) (v []byte, ok bool) {
	v, _, got := c.lookupAny(nil, w.key, w.hash, withValue|orStale)
	if w.group.kind&record.Spaced != 0 &&
		c.shared.Generations.Of(generation.Of(w.key)).IsForgotten() {
		return nil, false // its namespace was reset meanwhile
	}
	if got == stale {
		c.counters.Here().Stale.Add(1)
	}
	return v, got == hit || got == stale
}

// takeResult takes the result of a load that has ended, or panics as the load has.
func (c *engine) takeResult(w *wanted) {
	l := &w.call.Result
	if l.panicked != nil {
		panic(l.panicked)
	}
	if w.value, w.err = nil, l.Err; l.Err == nil {
		w.value = l.Value
	} else if w.group.refresh && l.failed() && l.Err != errLoadExited {
		if v, ok := c.usable(w); ok {
			w.value, w.err = v, nil
		}
	}
}
