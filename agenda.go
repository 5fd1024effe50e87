package ringcache

import "sync/atomic"

// Where Sets wait that were put aside, and who makes them.
//
// Such a Set is kept in a place of the lane that it came by, not of its bucket, and the lane's next
// Sets come back to it: after half as many as there are places to ask for its record, and when the
// place is needed again to make it. By then its lines have come, and all that it takes is still in the nearest cache
// of the processor that asked for them. Left to the bucket's next Set, some hundred others later,
// it would have left that cache, or another processor would come, that has to fetch place, record and
// the translation of its address.
//
// Nobody has to come back: who locks a bucket makes the Set that waits there, whosever it is. So a lane skips what
// others are busy with, and a goroutine that sets no more leaves nothing undone.

// agendaPlaces is how many Sets may wait for one lane.
const agendaPlaces = 16

// agenda is the places of a lane. Two goroutines may have the same lane: each place is claimed by one of them.
type agenda struct {
	next   atomic.Uint64 // place of the next Set, and how many there have been
	_      [cacheLine - 8]byte
	places [agendaPlaces]aside
}

// agendas are those of the lanes that have needed one.
type agendas [1 << laneBits]atomic.Pointer[agenda]

// of returns the agenda of a lane, which it makes if there is none.
func (all *agendas) of(lane uint) *agenda {
	if a := all[lane].Load(); a != nil {
		return a
	}
	all[lane].CompareAndSwap(nil, new(agenda))
	return all[lane].Load()
}

// here returns the place of the next Set.
func (a *agenda) here() *aside { return &a.places[a.next.Load()%agendaPlaces] }

// half returns the place of the Set that has waited for half of its time.
func (a *agenda) half() *aside {
	return &a.places[(a.next.Load()+agendaPlaces/2)%agendaPlaces]
}

// passed notes that a Set waits at here.
func (a *agenda) passed() { addOwned(&a.next, 1) }

// placeFree is the state of a place where no Set waits. Where one does it is larger by 1 and by the bits of the hash that
// choose a bucket.
const placeFree = 0

// claim takes the place for a Set of a key of hash h, under its bucket's lock, and reports whether it was free.
func (a *aside) claim(h uint64) bool {
	return a.state.CompareAndSwap(placeFree, placeFree+1+h&(bucketCount-1))
}

// free gives the place up, under the lock of the same bucket.
func (a *aside) free() { addOwned(&a.state, placeFree-a.state.Load()) }

// agenda returns the agenda of a lane, or nil if no Set is put aside in this cache.
func (c *Cache) agenda(lane uint) *agenda {
	if !c.shared.patient.Load() {
		return nil
	}
	return c.shared.agendas.of(lane)
}

// comeBack makes the Set that waits at a place, unless somebody is busy with its bucket.
func (c *Cache) comeBack(p *aside) {
	state := p.state.Load()
	if state == placeFree {
		return
	}
	b := c.bucket(state - placeFree - 1)
	if !b.mu.tryLock() {
		return
	}
	if b.asideTag != 0 {
		b.takeUpLocked()
	}
	b.mu.Unlock()
}
