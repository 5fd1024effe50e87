package ringmemlimit

import "time"

// reading is what is known at one moment. All are bytes.
type reading struct {
	levels []level // at least one
	heap   int64   // of the Go runtime: what GOMEMLIMIT bounds
	held   int64   // of the cache: what its rings and indexes hold
	bound  int64   // on the cache
}

// plan is what a governor makes of a reading.
type plan struct {
	limit int64 // of the level with the least room
	used  int64 // there, the cache included
	rest  int64 // the part of used that is not the cache
	room  int64 // for the cache, beside the rest and the margin
	bound int64 // on the cache, from now on
}

// governor decides on the bound of a cache. It shrinks the cache as soon as there is too little
// room, and lets it grow when there was more for some time: what a heap has given back it often
// takes again, and what is evicted must be loaded again.
type governor struct {
	share          float64 // of a limit, for the cache and the rest together
	floor, ceiling int64
	hold           time.Duration

	// least has the least room since the moment since, and in the span of the same length
	// before: of the last hold at least, and at most twice that.
	least [2]int64
	since time.Time
}

// stepShare is the hysteresis: room that differs from the bound by less than this part of the limit
// changes nothing.
const stepShare = 32

// step returns the hysteresis in bytes.
func (p plan) step() int64 { return p.limit / stepShare }

// weigh finds the level with the least room. The plan keeps the bound.
func (g *governor) weigh(r reading) plan {
	var tightest plan
	for i, l := range r.levels {
		p := plan{limit: l.limit, used: l.used, bound: r.bound}
		// The cache may hold memory that is not in use there: pages of a file that another
		// cgroup was charged for, or chunks that nothing was written to. The heap is.
		p.rest = max(l.used-r.held, r.heap, 0)
		p.room = int64(g.share*float64(l.limit)) - p.rest
		if i == 0 || p.room < tightest.room {
			tightest = p
		}
	}
	return tightest
}

// begin returns the plan for the first reading: the cache takes what room there is.
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

// heapLimit returns GOMEMLIMIT beside a cache of that bound. It is halfway between the share and
// the limit, so that the heap can grow until the next reading. A heap that comes so far is
// collected, and each collection causes a reading.
func (g *governor) heapLimit(p plan, heap, bound int64) int64 {
	others := p.rest - heap // other memory of the program, and other processes
	most := int64((1 + g.share) / 2 * float64(p.limit))
	return max(most-bound-others, p.limit/16)
}
