//go:build !(amd64 && !purego && !ringcache_heap && !race && !asan && !msan)

package ringcache

// glance computes the hash, and leaves every lookup to getLocked.
func glance(c *Cache, _, k []byte, _ uint) (h uint64, n int) { return c.shared.hash(k), glanceUnsure }

// glanceHashed leaves every lookup to getLocked.
func glanceHashed(*Cache, []byte, []byte, uint, uint64) int { return glanceUnsure }

// read leaves every lookup to getDirect.
func read(*Cache, []byte, []byte, uint64) int { return glanceUnsure }

// quest is nothing here.
type quest struct{}

// getKeys leaves every lookup to getLocked.
func getKeys(_ *Cache, dst []byte, _ [][]byte, _ *uint64, _ *int, _ uint, _ *quest) (n, entered, end int) {
	return 0, 0, len(dst)
}

// askKeys leaves every key to ask.
func askKeys(*Cache, [][]byte, *uint64) int { return 0 }

// noteRecords leaves every record to recordLines.
func noteRecords(_ *Cache, _ *uint64, records *[batchSize]lines, n int, _ uint) (unknown int) {
	for i := range records[:n] {
		records[i].n = linesUnknown
	}
	return n
}

// askShort is askPath.
func askShort(c *Cache, k []byte) uint64 { return c.askPath(k) }

// replace writes v over the value of k, with hash h, or puts that aside, in the common
// case, and reports whether it has.
func replace(b *bucket, k, v []byte, h uint64, p *aside) (ask lines, ok bool) {
	var w write
	w.k, w.v, w.h = k, v, h
	ok = b.tryLocked(&w, p)
	return w.ask, ok
}

// takeUp leaves every Set that was put aside to takeUpAnyLocked.
func takeUp(*bucket, *aside) bool { return false }

// foresee returns the lines of the record of the Set that was put off at p, if one was and nobody is busy with its
// bucket. It is only tried for, as another bucket is locked.
func foresee(c *Cache, p *aside) (ask lines) {
	state := p.state.Load()
	if state == placeFree {
		return lines{}
	}
	b := c.bucket(state - placeFree - 1)
	if !b.mu.mu.TryLock() {
		return lines{}
	}
	defer b.mu.mu.Unlock()
	if b.asideTag == 0 || b.aside != p || p.slot != unsought {
		return lines{}
	}
	if slot, ok := b.likely(p.hash); ok {
		p.slot = slot
		b.noteAsideLocked(&ask, slot)
	}
	return ask
}

// isNew leaves every key to find.
func isNew(*bucket, uint64) bool { return false }

// space is index.space.
func space(b *bucket, h uint64) (at uint32, i int) { return b.index.space(h, b.windows()) }
