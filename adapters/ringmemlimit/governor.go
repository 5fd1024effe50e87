package ringmemlimit

import "time"

// reading is the memory use at one moment. All figures are in bytes.
type reading struct {
	levels []level // at least one
	heap   int64   // memory of the Go runtime that counts toward GOMEMLIMIT
	held   int64   // memory of the cache
	bound  int64   // of the cache
	closed bool    // the cache is closed
}

// plan is the decision of a governor after a reading.
type plan struct {
	limit int64 // of the level with the least room
	used  int64 // at that level, including the cache
	rest  int64 // the part of used that is not the cache
	room  int64 // for the cache, next to the rest and the margin
	bound int64 // of the cache from now on
}

// governor decides on the bound of a cache. The cache shrinks as soon as there is too little room,
// and grows when there has been more for some time, because a heap that has shrunk often grows
// again, and evicted entries must be loaded again.
type governor struct {
	share          float64 // of the limit that cache and rest may use together
	floor, ceiling int64
	hold           time.Duration

	// least is the least room since the time since, and during the hold before that. Together they
	// cover between one and two holds.
	least [2]int64
	since time.Time
}

// stepShare is the hysteresis: the bound does not change if it would change by less than this
// fraction of the limit.
const stepShare = 32

// step returns the hysteresis in bytes.
func (p plan) step() int64 { return p.limit / stepShare }

// weigh returns a plan for the level with the least room, with the present bound.
func (g *governor) weigh(r reading) plan {
	var tightest plan
	for i, l := range r.levels {
		p := plan{limit: l.limit, used: l.used, bound: r.bound}
		// The rest is at least the heap: the cache may hold memory that is not charged to this
		// level, such as pages of a file, or chunks that have not been written to.
		p.rest = max(l.used-r.held, r.heap, 0)
		p.room = int64(g.share*float64(l.limit)) - p.rest
		if i == 0 || p.room < tightest.room {
			tightest = p
		}
	}
	return tightest
}

// begin returns the plan for the first reading: the cache gets all the room.
func (g *governor) begin(now time.Time, r reading) plan {
	p := g.weigh(r)
	g.least, g.since = [2]int64{p.room, p.room}, now
	p.bound = g.clamp(p.room)
	return p
}

// next returns the plan for a later reading.
func (g *governor) next(now time.Time, r reading) plan {
	p := g.weigh(r)
	if now.Sub(g.since) >= g.hold {
		g.least, g.since = [2]int64{p.room, g.least[0]}, now
	}
	g.least[0] = min(g.least[0], p.room)
	if want := g.clamp(p.room); want < r.bound-p.step() {
		p.bound = want
	}
	if want := g.clamp(min(g.least[0], g.least[1])); want > r.bound+p.step() {
		p.bound = want
	}
	return p
}

func (g *governor) clamp(bound int64) int64 { return max(g.floor, min(bound, g.ceiling)) }

// heapLimit returns GOMEMLIMIT for a cache with that bound. It is halfway between the share and the
// limit, so that the heap can grow until the next reading. A heap that reaches it is collected, and
// collections cause readings.
func (g *governor) heapLimit(p plan, heap, bound int64) int64 {
	others := p.rest - heap // other memory of the program, and other processes
	most := int64((1 + g.share) / 2 * float64(p.limit))
	return max(most-bound-others, p.limit/16)
}
