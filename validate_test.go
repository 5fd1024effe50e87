package ringcache

import (
	"errors"
	"fmt"
	"math/bits"
	"runtime"
)

// validate walks every bucket and checks the invariants of docs/design.md,
// under all locks that it needs. It names the invariant that does not hold.
func (c *Cache) validate() error {
	g := &c.region
	g.mu.Lock()
	defer g.mu.Unlock()
	var errs []error
	held := 0
	strays := map[int]int{}
	check := func(name string, b *bucket) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.closed {
			return
		}
		if open, inside := b.mu.inUse(); open != 0 || inside != 0 || b.mu.viewers != 0 {
			errs = append(errs, fmt.Errorf("I13: %s: lanes %b open, %d lookups in lanes, %d viewers", name, open, inside, b.mu.viewers))
		}
		if b.mu.seq%2 == 0 {
			errs = append(errs, fmt.Errorf("I13: %s: seq is %d while somebody writes", name, b.mu.seq))
		}
		held += b.heldLocked()
		if err := b.validateLocked(strays); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	for i := range c.shared.buckets {
		check(fmt.Sprintf("bucket %d", i), &c.buckets[i])
	}
	for i := range g.buckets {
		check(fmt.Sprintf("large bucket %d", i), &g.buckets[i])
	}
	if err := c.validatePlaces(); err != nil {
		errs = append(errs, err)
	}
	for i := range c.shared.stray {
		if n := int(c.shared.stray[i].Load()); n != strays[i] {
			errs = append(errs, fmt.Errorf("I8: stray count of bucket %d is %d, have %d", i, n, strays[i]))
		}
	}
	return errors.Join(errs...)
}

func (b *bucket) validateLocked(strays map[int]int) error {
	if err := b.validateAsideLocked(); err != nil {
		return err
	}
	records := map[uint64]uint64{} // slot ring and position -> hash
	for i := range b.rings {
		r := &b.rings[i]
		if err := r.validate(b.shared.pool); err != nil {
			return fmt.Errorf("ring %d: %w", i, err)
		}
		live, liveBytes, timed, spent := 0, 0, 0, 0
		for off := uint64(0); off < r.size; {
			pos := (r.tail + off) & r.mask
			h, ok := r.header(pos)
			if !ok {
				return fmt.Errorf("ring %d: no record at position %d", i, pos)
			}
			if !h.dead {
				live++
				liveBytes += h.total()
				if h.timed {
					timed++
				}
				if h.expiry != 0 && !b.reaper.walking && h.expiry < b.reaper.soonest {
					return fmt.Errorf("I11: ring %d: a record expires in tick %d, before the soonest, %d", i, h.expiry, b.reaper.soonest)
				}
				hash := b.shared.mix(r.hash(pos+uint64(h.size), h.klen))
				records[uint64(i)<<slotPosBits|pos] = hash
				if b.large {
					strays[int(hash&(bucketCount-1))]++
				}
			}
			if h.dead && h.timed {
				spent += h.total()
			}
			off += uint64(h.total())
		}
		if timed != r.timed || spent != r.spent {
			return fmt.Errorf("I10: ring %d: counts %d records with room for an expiry and %d bytes of dead ones, has %d and %d", i, r.timed, r.spent, timed, spent)
		}
		if timed+spent > 0 && !b.mortal {
			return fmt.Errorf("I11: ring %d: has records that can expire, and the bucket does not know", i)
		}
		if live != r.live || liveBytes != r.liveBytes {
			return fmt.Errorf("I7: ring %d: counts %d records of %d bytes, has %d of %d", i, r.live, r.liveBytes, live, liveBytes)
		}
	}
	return b.validateIndex(records)
}

func (r *ring) validate(p *chunkPool) error {
	if r.size > r.mask/4 {
		return fmt.Errorf("I3: %d alive bytes in a space of %d", r.size, r.mask)
	}
	if r.borrowed && r.size > uint64(r.held())<<r.shift {
		return fmt.Errorf("I1: %d bytes in %d chunks", r.size, r.held())
	}
	seen := map[chunkRef]int{}
	for i := range int(r.mapped) {
		at := r.slot(r.tail + uint64(i)<<r.shift)
		ref := r.slots[at]
		if ref == (chunkRef{}) {
			return fmt.Errorf("I2: slot %d holds no chunk", at)
		}
		if first, dup := seen[ref]; dup && (!r.borrowed || first != 0 || i != int(r.mapped)-1) {
			return fmt.Errorf("I2: slots %d and %d hold one chunk", first, i)
		}
		seen[ref] = i
	}
	if len(seen) != r.held() {
		return fmt.Errorf("I2: holds %d chunks, has %d", r.held(), len(seen))
	}
	if r.size > 0 {
		if last := ((r.tail & (1<<r.shift - 1)) + r.size - 1) >> r.shift; int(last) >= int(r.mapped) {
			return fmt.Errorf("I2: %d of %d slots hold a chunk", r.mapped, last+1)
		}
	}
	if !r.borrowed && r.mapped > 0 {
		end := (r.tail &^ (1<<r.shift - 1)) + uint64(r.mapped)<<r.shift
		if left := r.left(); uint64(left) != (end-r.head())&r.mask {
			return fmt.Errorf("ring.left: %d bytes from %d to %d", left, r.head(), end)
		}
	}
	return nil
}

// validateIndex checks the index against the live records: exactly their slots
// are alive, every slot can be found, and the overflow counts are right.
func (b *bucket) validateIndex(records map[uint64]uint64) error {
	x := &b.index
	passed := make([][2]int, x.cur.groups)
	var used [ringCount]int
	for n := range x.cur.groups {
		g := x.group(n)
		for i, s := range g.slots {
			tag := g.tagAt(i)
			if tag == 0 {
				if s != 0 {
					return fmt.Errorf("group %d: empty slot %d is not 0", n, i)
				}
				continue
			}
			used[slotRing(s)]++
			h := slotHash(s, tag)
			t, home := x.table(h)
			p := t.path(home)
			for ; p.at != n; p.next() {
				passed[p.at][s>>slotHashAt&1]++
				if p.left == 0 {
					return fmt.Errorf("I4: slot %d of group %d is not on the path from %d", i, n, home)
				}
			}
			w := b.windows().of(s)
			if !w.alive(s) {
				if w.age(s) > w.mask/4*3 {
					return fmt.Errorf("I5: stale slot of age %d in a space of %d", w.age(s), w.mask)
				}
				continue
			}
			key := s & (slotRingBit | slotPosMask)
			hash, ok := records[key]
			if !ok {
				return fmt.Errorf("I7: group %d slot %d is alive without a live record", n, i)
			}
			const known = ^uint64(0) >> slotHashAt << slotHashAt
			if hash>>slotHashAt != s>>slotHashAt || tagOf(hash) != tag {
				return fmt.Errorf("I7: hash %x in the slot of a record with hash %x (%x)", h, hash, uint64(known))
			}
			delete(records, key)
		}
	}
	if len(records) > 0 {
		return fmt.Errorf("I7: %d live records have no slot", len(records))
	}
	for n := range x.cur.groups {
		for side, has := range passed[n] {
			count := int(x.group(n).ctrl >> (56 + 4*side) & 15)
			if count != has && count != 15 { // 15 may be any number
				return fmt.Errorf("I4: group %d counts %d passed of side %d, has %d", n, count, side, has)
			}
		}
	}
	if used != x.used {
		return fmt.Errorf("I9: counts %v slots of the rings, has %v", x.used, used)
	}
	if bits.OnesCount32(uint32(1)<<x.pageShift) != 1 {
		return errors.New("page size is no power of two")
	}
	return nil
}

// inUse returns the bits of the lanes that are open, and how many lookups are
// in any. One that is about to find its lane closed is given time.
func (l *bucketLock) inUse() (open uint64, inside int) {
	for range 1000 {
		inside = 0
		for n := range uint(1) << laneBits {
			inside += int(l.lanes.at(n, 0).state.Load() & laneBusy)
		}
		if inside == 0 {
			break
		}
		runtime.Gosched()
	}
	return l.open.Load(), inside
}

// validateAsideLocked checks what was put aside, and that lookups see it.
func (b *bucket) validateAsideLocked() error {
	if b.asideTag == 0 {
		return nil
	}
	if !b.index.patient || b.large || b.shared.onEvict != nil {
		return errors.New("I14: a Set was put aside where none may be")
	}
	a := b.aside
	k := a.key()
	if h := b.shared.hash(k); a.hash != h || b.asideTag != uint8(tagOf(h)) {
		return fmt.Errorf("I14: key %x of hash %x is aside with hash %x and tag %x", k, h, a.hash, b.asideTag)
	}
	if v, ok := b.awaiting(k, a.hash); !ok || v != nil && string(v) != string(a.value()) {
		return fmt.Errorf("I14: key %x is aside, and lookups do not see it", k)
	}
	if a.slot == unsought {
		return nil
	}
	if w := (windows{&b.rings[0].window, &b.rings[1].window}); !w.alive(a.slot) || (a.slot^a.hash)>>slotHashAt != 0 {
		return fmt.Errorf("I14: key %x: something has been done since it was put aside", k)
	}
	if _, ok := b.index.at(a.hash, slotRing(a.slot), a.slot&slotPosMask); !ok {
		return fmt.Errorf("I14: key %x: the record it waits for has left the index", k)
	}
	return nil
}

// validatePlaces checks that each place is claimed by the Set that waits in it, for its bucket, or free. Nobody
// sets meanwhile.
func (c *Cache) validatePlaces() error {
	waiting := map[*aside]uint64{}
	for i := range c.shared.buckets {
		if b := &c.buckets[i]; b.asideTag != 0 {
			waiting[b.aside] = b.aside.hash & (bucketCount - 1)
		}
	}
	for lane := range c.shared.agendas {
		a := c.shared.agendas[lane].Load()
		if a == nil {
			continue
		}
		for i := range a.places {
			p := &a.places[i]
			state := p.state.Load()
			h, waits := waiting[p]
			delete(waiting, p)
			if waits && state != placeFree+1+h || !waits && state != placeFree {
				return fmt.Errorf("I15: place %d of lane %d has state %d, and a Set waits there: %v", i, lane, state, waits)
			}
		}
	}
	if len(waiting) > 0 {
		return fmt.Errorf("I15: %d Sets wait in no place", len(waiting))
	}
	return nil
}

// isAside reports whether a Set of key k was put aside.
func (b *bucket) isAside(k []byte, h uint64) bool {
	return b.asideTag == uint8(tagOf(h)) && string(b.aside.key()) == string(k)
}
