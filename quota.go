package ringcache

import (
	"encoding/binary"

	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/store"
)

// How a namespace is kept within its quota: before a Set that needs room locks its bucket, it
// evicts the oldest entries of the namespace, in any bucket. An entry that was read since becomes
// the youngest, once for each read, as in the CLOCK algorithm.
//
// Expired entries go first. The order does not show them, because times to live differ, so the Set
// searches some buckets for them. The search advances from bucket to bucket with each Set.

const (
	// A namespace evicts entries once it has filled its quota less 1/quotaSlack, so that concurrent
	// Sets find room too.
	quotaSlack = 16

	// quotaLooks is the number of entries that a Set examines at most. It skips only entries that were
	// read or have already been removed.
	quotaLooks = 1024

	// quotaSearches is the number of buckets that a Set searches for expired entries at most, and
	// quotaMisses the number of consecutive buckets without any after which it stops.
	quotaSearches, quotaMisses = 16, 8
)

// isNearQuota reports whether n more bytes bring a namespace near its quota. It is false for a
// record longer than the quota, for which no room can be made.
func isNearQuota(u *generation.Usage, n int) bool {
	quota := u.Quota.Load()
	near := u.Bytes.Load()+int64(n) > quota-quota/quotaSlack
	return quota > 0 && near && int64(n) <= quota
}

// makeQuotaRoom evicts entries of the namespace of a write if the record brings it near its quota,
// but never the entry of the write's own key. It reports whether the condition of the write does
// not hold: then no room is needed.
func (c *Cache) makeQuotaRoom(w *write) (unmet bool) {
	u, _ := c.shared.UsageOf(w.Key)
	if u == nil || u.Quota.Load() == 0 || w.quiet || w.Same {
		return false
	}
	if isNearQuota(u, w.Bytes) {
		if c.isUnmet(c.bucket(w.Hash), w) {
			return true
		}
		c.giveUpFor(w, u, w.Bytes-c.lengthOf(w))
	}
	// Entries that were removed for other reasons must not make the order long.
	g := binary.LittleEndian.Uint64(w.Key)
	for i := 0; i < 2 && int64(u.Order.Len()) > 2*u.Entries.Load()+quotaLooks; i++ {
		c.lookAtOldest(u, g, false)
	}
	return false
}

// giveUpFor evicts entries of the namespace of a write until n more bytes do not bring it near its
// quota.
func (c *Cache) giveUpFor(w *write, u *generation.Usage, n int) {
	if n <= 0 {
		return
	}
	c.expireNearQuota(u, n)
	own, g := false, binary.LittleEndian.Uint64(w.Key)
	for i := 0; i < quotaLooks && isNearQuota(u, n); i++ {
		h, ok := u.Order.Pop()
		switch {
		case !ok:
			i = quotaLooks
		case h == w.Hash:
			own = true
		case c.look(h, g, true):
			u.Order.Push(h)
		}
	}
	if own {
		u.Order.Push(w.Hash)
	}
}

// lengthOf returns the size of the current record of a write's key.
func (c *Cache) lengthOf(w *write) (n int) {
	b, of := c.bucket(w.Hash), write{Write: store.Write{Hash: w.Hash}}
	defer c.notify(&of)
	b.lock()
	defer b.unlockFor(&of)
	if n = b.lengthOf(w); n == 0 {
		c.inLargeLocked(&of, func(lb *bucket) bool {
			n = lb.lengthOf(w)
			return n > 0
		})
	}
	return n
}

// lengthOf is Cache.lengthOf for a locked bucket.
func (b *bucket) lengthOf(w *write) int {
	var f store.Found
	there := b.Find(&f, w.Key, w.Hash)
	if b.CountOddities(&f); !there {
		return 0
	}
	return f.Total()
}

// expireNearQuota searches some buckets for expired entries if a record of n bytes brings the
// namespace near its quota: buckets of the kind to which the record itself belongs.
func (c *Cache) expireNearQuota(u *generation.Usage, n int) {
	if !c.shared.Expiring.Load() {
		return
	}
	buckets := c.buckets
	if c.shared.IsLarge(n) {
		buckets = c.arena.buckets[:]
	}
	missed := 0
	for i := 0; i < quotaSearches && missed < quotaMisses && isNearQuota(u, n); i++ {
		missed++
		if c.expireSome(&buckets[c.quotaHand.Add(1)%uint32(len(buckets))]) {
			missed = 0
		}
	}
}

// expireSome does a Set's share of a bucket's search for expired entries, and reports whether it
// has found any.
func (c *Cache) expireSome(b *bucket) bool {
	var w write
	defer c.notify(&w)
	b.lock()
	defer b.unlockFor(&w)
	return b.ExpireSome()
}

// lookAtOldest removes the oldest entry from the order of generation g, and evicts it if evict is
// set, unless it was read: then it becomes the youngest. It reports false if the order is empty.
func (c *Cache) lookAtOldest(u *generation.Usage, g uint64, evict bool) bool {
	h, ok := u.Order.Pop()
	if ok && c.look(h, g, evict) {
		u.Order.Push(h)
	}
	return ok
}

// look examines the entry of generation g whose key has hash h, evicts it if evict is set and it
// was not read, and reports whether it stays.
func (c *Cache) look(h, g uint64, evict bool) (stays bool) {
	w := write{Write: store.Write{Hash: h}}
	defer c.notify(&w)
	b := c.bucket(h)
	b.lock()
	defer b.unlockFor(&w)
	if b.Closed {
		return false
	}
	there, stays := b.Namespaces().LookAt(h, g, evict)
	if !there {
		c.inLargeLocked(&w, func(lb *bucket) bool {
			there, stays = lb.Namespaces().LookAt(h, g, evict)
			return there
		})
	}
	return stays
}
