package ringcache

import (
	"weak"

	"github.com/ringcache/ringcache/internal/cold"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/scratch"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/stripe"
)

// How the cold part is read, and the goroutine that compresses.

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
		stored.Bytes, there = s.ReadCold(
			&f, stored.Bytes[:0], k, h, mode&touching != 0, mode&orStale != 0)
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
	countLookup(n, mode, hit)
	if mode&counted != 0 {
		b.ColdHits.Add(1)
	}
	if mode&wantPromote != 0 || mode&touching != 0 && index.WasRead(f.Slot) {
		c.promote(b, &f, k, v, h)
	}
	if mode&withValue != 0 {
		dst = append(dst, v...) // k, which may overlap dst, is no longer used
	}
	return dst, f.Expiry, hit
}

// promote moves to main the record that was found in the cold part, with value v.
func (c *engine) promote(b *bucket, was *store.Found, k, v []byte, h uint64) {
	var w write
	w.Key, w.Value, w.Hash, w.RewriteOnly, w.uncounted = k, v, h, true, true
	defer c.notify(&w)
	b.lock()
	defer b.unlockFor(&w)
	b.Promote(was, &w.Write)
}

// bringToMain moves the value of a write's key to main, so that the write can look at it.
func (c *engine) bringToMain(w *write) {
	_, _, _ = c.lookupCold(nil, w.Key, w.Hash, c.counters.Here(), wantPromote)
	w.Packed = false
}

// compressInBackground is the goroutine of a cache with a Compressor. It compresses the queues that
// buckets report, until the cache is closed or collected.
func compressInBackground(cache weak.Pointer[engine], s *cold.Compression) {
	var w store.Waiting
	for {
		i, ok := s.Next()
		if !ok {
			return
		}
		for ; ok; i, ok = s.NextSoon() {
			c := cache.Value()
			if c == nil {
				return
			}
			b := &c.buckets[i]
			for b.withWaiting(&w, (*store.Store).TakeWaiting) {
				b.PackWaiting(&w)
				if !b.withWaiting(&w, (*store.Store).PutAway) {
					break
				}
			}
			s.Renew() // a dictionary, if one is due
		}
	}
}

// withWaiting calls fn under the lock.
func (b *bucket) withWaiting(w *store.Waiting, fn func(*store.Store, *store.Waiting) bool) bool {
	b.lock()
	defer b.unlock()
	return fn(&b.Store, w)
}
