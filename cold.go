package ringcache

import (
	"weak"

	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/pack"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/stripe"
)

// How the cold part is read, and the goroutine that compresses.

// lookupCold is lookup of a key that is in the cold part. It returns retry if it is not
// there any more.
//
// The record is copied under the lock, and its value unpacked without one: no code of the
// user's runs under a lock. If it was read there before, it goes back to main.
func (c *Cache) lookupCold(
	dst, k []byte, h uint64, n *stripe.Counter, mode lookupMode,
) (out []byte, expiry uint32, got outcome) {
	stored, value := scratches.Get().(*scratch), scratches.Get().(*scratch)
	defer stored.release()
	defer value.release()
	b := c.bucket(h)
	var f found
	d, ok := b.readCold(&f, stored, k, h, mode)
	if !ok {
		return dst, 0, retry
	}
	v, err := c.valueOf(value.buf[:0], stored.buf, d)
	value.buf = v
	if err != nil {
		if !c.dropDamaged(b, &f, k, h) {
			return dst, 0, retry
		}
		countLookup(n, mode, miss)
		return dst, 0, miss
	}
	countLookup(n, mode, hit)
	if mode&counted != 0 {
		b.coldHits.Add(1)
	}
	if mode&toMain != 0 || mode&touching != 0 && index.WasRead(f.Slot) {
		c.promote(b, &f, k, v, h)
	}
	if mode&withValue != 0 {
		dst = append(dst, v...) // k, which may lie in there, is not used any more
	}
	return dst, f.Expiry, hit
}

// valueOf appends the value of a record to dst, which is packed with d unless that is nil.
func (c *Cache) valueOf(dst, stored []byte, d *dictionary) ([]byte, error) {
	if d != nil {
		return c.shared.compression.unpack(dst, stored, d)
	}
	return append(dst, stored...), nil
}

// readCold copies the value of the key as it is stored, and reports whether the key is in
// the cold part. If the value is packed, it returns the dictionary too.
func (b *bucket) readCold(
	f *found, to *scratch, k []byte, h uint64, mode lookupMode,
) (d *dictionary, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.findLocked(f, k, h) || !index.Ring(f.Slot).IsCold() ||
		b.shared.Expired(f.Expiry) && !b.isStale(f, mode) {
		return nil, false
	}
	to.buf, _ = f.ring.Read(to.buf[:0], f.valuePos(), f.ValueLen)
	if mode&touching != 0 && !index.WasRead(f.Slot) {
		index.MarkRead(f.Group.At(f.I), f.Slot)
	}
	if f.Kind == record.Packed {
		d = b.shared.compression.dictOf(to.buf)
	}
	return d, true
}

// findAgainLocked finds the record of the key, and reports whether it is the one that was found
// before, where it was.
func (b *bucket) findAgainLocked(f, was *found, k []byte, h uint64) bool {
	return !b.closed && b.findLocked(f, k, h) && index.Bare(f.Slot) == index.Bare(was.Slot)
}

// promote moves the record that was found in the cold part, with value v, to main.
func (c *Cache) promote(b *bucket, was *found, k, v []byte, h uint64) {
	var w write
	w.k, w.v, w.h, w.same, w.silent = k, v, h, true, true
	defer c.shared.notify(&w)
	b.lock()
	defer b.unlockFor(&w)
	b.moveHomesLocked()
	var f found
	if !b.findAgainLocked(&f, was, k, h) || b.shared.Expired(f.Expiry) {
		return
	}
	w.expiry = f.Expiry
	if w.measure(b.form); w.n > b.longest {
		b.removeLocked(&f, h, RemovedEvicted) // the cache has become too small for it
		b.countEvicted(policy.Cold, f.Header)
		return
	}
	b.promoteColdLocked(&f, &w)
}

// dropDamaged removes a record of which no value can be made. It reports false if it is
// not there any more: it may have been another one.
func (c *Cache) dropDamaged(b *bucket, was *found, k []byte, h uint64) bool {
	b.lock()
	defer b.unlock()
	var f found
	if !b.findAgainLocked(&f, was, k, h) {
		return false
	}
	b.removeLocked(&f, h, unsaid)
	b.corruptions.Add(1)
	return true
}

// bringToMain has the value of a write's key go to main, so that the write can look at it.
func (c *Cache) bringToMain(w *write) {
	_, _, _ = c.lookupCold(nil, w.k, w.h, c.counters.Here(), toMain)
	w.packed = false
}

// compressInBackground is the goroutine of a cache with a Compressor. If that ends it, by
// [runtime.Goexit], another one takes its place.
func compressInBackground(cache weak.Pointer[Cache], s *compression) {
	returned := false
	defer func() {
		if !returned {
			s.counts.failed.Add(1)
			go compressInBackground(cache, s)
		}
	}()
	compressUntilClosed(cache, s)
	returned = true
}

// compressUntilClosed compresses what buckets tell of until the cache is closed or collected.
func compressUntilClosed(cache weak.Pointer[Cache], s *compression) {
	var batch coldBatch
	for {
		select {
		case <-s.stop:
			return
		case i := <-s.buckets:
			for waits := true; waits; i, waits = s.nextSoon() {
				c := cache.Value()
				if c == nil {
					return
				}
				c.compressBucket(i, &batch)
			}
		}
	}
}

// compressBucket compresses what waits in a bucket, and sees to what is due.
func (c *Cache) compressBucket(i int32, batch *coldBatch) {
	c.buckets[i].compressQueue(batch)
	c.renewDicts()
	if s := c.shared.compression; s.isDue() {
		c.compareShares()
		s.setShare()
	}
}

// compareShares compares buckets that always have a cold part with those that never have one:
// under equal loads, those that insert more have found less.
func (c *Cache) compareShares() {
	var scouts, others uint64
	for i := 0; i < c.shared.buckets; i += scoutEach / 2 {
		b := &c.buckets[i]
		b.mu.Lock()
		if b.cold.role == scout {
			scouts += b.cold.inserts
		} else {
			others += b.cold.inserts
		}
		b.mu.Unlock()
	}
	c.shared.compression.compare.Note(scouts, others)
}

// renewDicts makes a dictionary if one is due.
func (c *Cache) renewDicts() {
	s := c.shared.compression
	cl, ok := s.due()
	if !ok || s.isEnded() {
		return
	}
	number, ok := c.freeDict()
	if !ok {
		cl.samples.Take() // gather anew: a search after each batch would take all locks each time
		return
	}
	_ = s.renew(cl, number)
}

// freeDict returns a number for a new dictionary: no record and no class uses it.
func (c *Cache) freeDict() (number uint8, ok bool) {
	s := c.shared.compression
	if s.highest < pack.Dicts-1 {
		s.highest++
		return uint8(s.highest), true
	}
	var used uses
	for i := range c.shared.buckets {
		b := &c.buckets[i]
		b.mu.Lock()
		for dict, n := range b.cold.uses {
			used[dict] += n
		}
		b.mu.Unlock()
	}
	for i := range s.classes {
		used[s.classes[i].dict]++
	}
	for dict := 1; dict < pack.Dicts; dict++ {
		if used[dict] == 0 {
			return uint8(dict), true
		}
	}
	return 0, false
}
