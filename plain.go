package ringcache

import "math"

// A plain Set is one in a cache that tells nobody what leaves it, of a value that does not
// expire: what nearly all Sets are. In the common case there is an older value of the key, in
// the same place as ever, and then it goes by few functions and no struct of its own: what
// is said of instructions in glance.go holds here too. All else is write's.

// set is Set of a key. prompt tells that h is its hash, and that its line of the index and
// its record have been asked for. Errors do not name the package.
func (c *Cache) set(k, v []byte, h uint64, prompt bool) error {
	switch {
	case prompt:
	case len(k) <= mostHashed:
		h = askShort(c, k)
	default:
		h = c.askPath(k)
	}
	n := headerSize(len(k), len(v)) + len(k) + len(v)
	if !c.plain || len(k) > maxKey || len(v) > c.shared.maxValue() || c.isLarge(n) {
		return c.setAny(k, v, h, prompt)
	}
	var lane uint
	var a *agenda
	var p *aside // where it may wait
	if !prompt && c.shared.patient.Load() {
		lane = laneHere()
		a = c.shared.agendas.of(lane)
		p = a.here()
		c.comeBack(p)
	}
	b := c.bucket(h)
	b.lockToSet()
	if n > b.most || b.flights != nil || c.shared.strays(h).Load() != 0 {
		b.mu.Unlock()
		return c.setAny(k, v, h, prompt)
	}
	if p != nil && b.putsOffLocked(len(k)+len(v)) && p.claim(h) {
		b.setAsideLocked(p, k, v, h, 0, unsought)
		ask := foresee(c, a.half())
		a.passed()
		c.endSet(b, n, ask, lane)
		return nil
	}
	var room int
	if b.outlook == tight {
		room = b.readyLocked(n)
	}
	record, ok := replace(b, k, v, h, p)
	if ok {
		b.noteRepeatLocked(true)
		if record.n > 0 {
			b.aside = p
			a.passed()
		}
	} else if !b.addLocked(k, v, h, n, room) {
		return c.setNewAndUnlock(b, k, v, h, prompt, room)
	}
	c.endSet(b, n, record, lane)
	return nil
}

// endSet counts a Set of a record of n bytes, gives up the lock, and asks for lines.
func (c *Cache) endSet(b *bucket, n int, ask lines, lane uint) {
	b.mu.sets++
	var flowed tally
	if b.flowLocked(n) {
		flowed = b.reportLocked()
	}
	b.mu.Unlock()
	if ask.n > 0 {
		ask.prefetchSoon(lane)
	}
	if flowed.bytes > 0 {
		c.plainFlowed(flowed)
	}
}

// plainFlowed is flowed where nobody is told what leaves. It is apart so that set, which
// seldom calls it, need not clear a write.
func (c *Cache) plainFlowed(t tally) {
	var w write
	c.flowed(t, &w)
}

// addLocked is setLocked of a new key where there is room for the record, of n bytes: because
// readyLocked has made it, or some is left. It reports whether it has stored it.
func (b *bucket) addLocked(k, v []byte, h uint64, n, room int) bool {
	if room == 0 {
		if !b.isOpenLocked(n) {
			return false
		}
		room = math.MaxInt // nobody has asked, and no chunk is taken
	}
	if !isNew(b, h) {
		return false
	}
	ring := b.entry
	r := &b.rings[ring]
	if r.extend(uint64(n), room) != nil {
		return false
	}
	var buf [maxHeader]byte
	r.count(1, n, false)
	b.noteLengthLocked(len(v))
	pos := r.append(putHeader(&buf, len(k), len(v)), k, v)
	b.noteRepeatLocked(false)
	b.foreseeLocked(ring, n, room, true)
	b.enterLocked(h, ring, pos)
	b.endSetLocked(ring, n)
	return true
}

// setNewAndUnlock is the rest of set where there is no older value that is easily replaced.
func (c *Cache) setNewAndUnlock(b *bucket, k, v []byte, h uint64, prompt bool, room int) error {
	var w write
	w.k, w.v, w.h, w.prompt, w.reason = k, v, h, prompt, EvictReplaced
	w.measure()
	if b.closed || c.isScarce(w.n) {
		b.mu.Unlock()
		return c.store(&w)
	}
	b.mu.sets++
	w.room = room                      // it holds as long as the lock is held
	w.fresh = room == 0 && isNew(b, h) // else it has been asked (addLocked)
	flowed, err := b.setAndUnlock(&w)
	if flowed.bytes > 0 {
		c.flowed(flowed, &w)
	}
	if err != nil {
		return w.failed(err)
	}
	return nil
}

// isScarce reports whether the large buckets may have to lend memory for a record of n bytes.
func (c *Cache) isScarce(n int) bool {
	return c.shared.flow.held.Load() > 0 && c.shared.pool.isShort(n)
}

// setAny is set for every case.
func (c *Cache) setAny(k, v []byte, h uint64, prompt bool) error {
	var w write
	w.k, w.v, w.h, w.prompt = k, v, h, prompt
	w.expiry, w.reason = c.shared.usual(), EvictReplaced
	return c.store(&w)
}
