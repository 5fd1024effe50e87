package ringcache

import "github.com/ringcache/ringcache/internal/store"

// How Options.OnRemove is told of the entries that are removed. A bucket copies them under its
// lock. The call that removed them takes the copies when it releases the lock, and calls OnRemove
// once it holds no lock. The copies are on the Go heap, outside the cache's bound, and the copy of
// a short record is several times as large as the record. So a call that removes many entries works
// in steps and calls OnRemove after each of them: store.Removals.IsStep.

// RemovalReason tells why an entry was removed from the cache: see [Options].OnRemove.
type RemovalReason uint8

// The reasons why an entry is removed.
const (
	// RemovedEvicted means that the entry was evicted: the cache, or the quota of its
	// namespace, had no room left for it.
	RemovedEvicted RemovalReason = RemovalReason(store.Evicted)

	// RemovedExpired means that the entry's time to live was over. Expired entries are removed
	// when their memory is needed, which may be long after they have expired.
	RemovedExpired RemovalReason = RemovalReason(store.Expired)

	// RemovedDeleted means that the entry was deleted: by Del or GetAndDel, by an Update that
	// did not keep it, by a negative time to live, by a load that found no value, or by the
	// Invalidate or Drop of its namespace.
	RemovedDeleted RemovalReason = RemovalReason(store.Deleted)

	// RemovedReplaced means that the entry's value was replaced by another one, or removed by
	// a Set that failed.
	RemovedReplaced RemovalReason = RemovalReason(store.Replaced)

	// RemovedReset means that Reset removed the entry.
	RemovedReset RemovalReason = RemovalReason(store.Dropped)
)

// String returns the reason in one word: evicted, expired, deleted, replaced or reset.
func (r RemovalReason) String() string {
	names := [...]string{store.Unsaid: "unknown", RemovedEvicted: "evicted", RemovedExpired: "expired",
		RemovedDeleted: "deleted", RemovedReplaced: "replaced", RemovedReset: "reset"}
	if int(r) >= len(names) {
		r = RemovalReason(store.Unsaid)
	}
	return names[r]
}

// notify tells OnRemove of the entries that a write has removed. The caller holds no lock, or has
// set w.quiet, and then the holder of the lock calls notifyQuiet after releasing it.
func (c *Cache) notify(w *write) {
	if w.removals != nil && !w.quiet {
		c.notifyQuiet(w)
	}
}

// notifyQuiet is notify for a quiet write.
func (c *Cache) notifyQuiet(w *write) {
	if w.removals == nil {
		return
	}
	list := w.removals.List
	w.removals = nil
	for _, e := range list {
		if e.Dict != nil {
			v, err := c.shared.Compression.Unpack(nil, e.Value, e.Dict)
			if err != nil {
				continue // the value is lost
			}
			e.Value = v
		}
		c.onRemove(e.Key, e.Value, RemovalReason(e.Reason))
	}
}
