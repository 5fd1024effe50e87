package ringcache

// How Options.OnEvict hears of the entries that leave. A bucket copies them
// under its lock, the call that caused it takes the copies with it when it
// leaves the lock, and hands them over when it holds none.

// Reason is why an entry has left the cache.
type Reason uint8

const (
	// unsaid is the reason of what is only written again in another place.
	unsaid Reason = iota

	// EvictCapacity is the reason of an entry that was dropped to make room.
	EvictCapacity

	// EvictExpired is the reason of one that was reclaimed after its time to
	// live. That may be long after it was last found.
	EvictExpired

	// EvictDeleted is the reason of one that was removed by Del, GetAndDel, an
	// Update that did not keep it, or a time to live below 0.
	EvictDeleted

	// EvictReplaced is the reason of a value in whose place another one was set,
	// or should have been: a Set that returns an error removes it too.
	EvictReplaced

	// EvictReset is the reason of one that was there when Reset was called.
	EvictReset
)

// String returns the name of the reason.
func (r Reason) String() string {
	switch r {
	case EvictCapacity:
		return "capacity"
	case EvictExpired:
		return "expired"
	case EvictDeleted:
		return "deleted"
	case EvictReplaced:
		return "replaced"
	case EvictReset:
		return "reset"
	default:
		return "unknown"
	}
}

// departed is an entry that has left, for OnEvict to hear of.
type departed struct {
	k, v   []byte
	reason Reason
}

// partLocked is called for each live record that leaves a ring, while it is
// still there.
func (b *bucket) partLocked(r *ring, pos uint64, h header, reason Reason) {
	if b.shared.onEvict != nil {
		b.copyLocked(r, pos, h, reason)
	}
}

// copyLocked keeps a copy of a record for OnEvict. Of a mark there is nothing to
// tell.
func (b *bucket) copyLocked(r *ring, pos uint64, h header, reason Reason) {
	if n := h.klen + h.vlen; reason != unsaid && !h.absent {
		b.keepLocked(r.read(make([]byte, 0, n), pos+uint64(h.size), n), h.klen, reason)
	}
}

// keepLocked keeps an entry for OnEvict. kv is its key and value.
func (b *bucket) keepLocked(kv []byte, klen int, reason Reason) {
	if b.departed == nil {
		b.departed = new([]departed)
	}
	*b.departed = append(*b.departed, departed{k: kv[:klen:klen], v: kv[klen:], reason: reason})
}

// unlock gives up the bucket's lock. What has left under it goes with the write.
func (b *bucket) unlock(w *write) {
	if b.departed != nil {
		b.handOverLocked(w)
	}
	b.mu.Unlock()
}

func (b *bucket) handOverLocked(w *write) {
	if w.left == nil {
		w.left = b.departed
	} else {
		*w.left = append(*w.left, *b.departed...)
	}
	b.departed = nil
}

// announce tells OnEvict what has left because of a write. No lock is held.
func (c *Cache) announce(w *write) {
	if w.left == nil {
		return
	}
	left := *w.left
	w.left = nil
	for _, e := range left {
		c.shared.onEvict(e.k, e.v, e.reason)
	}
}
