package ringmemlimit

import (
	"errors"
	"time"

	"github.com/ringcache/ringcache"
)

// run adjusts both bounds until Close is called, or the cache is closed or collected.
func (c *Controller) run() {
	defer close(c.done)
	defer c.sources.stop()
	tick := time.NewTicker(c.sources.interval)
	defer tick.Stop()
	for {
		select {
		case <-c.stopping:
			return
		case <-tick.C:
		case <-c.sources.collected:
		}
		if !c.step() {
			return
		}
		select { // there may be hundreds of collections per second
		case <-c.stopping:
			return
		case <-time.After(leastInterval):
		}
	}
}

// step takes a reading and adjusts both bounds. It returns false if the cache is closed or
// collected.
func (c *Controller) step() bool {
	cache := c.sources.cache()
	var r reading
	var err error
	if cache != nil {
		r, err = c.read(cache)
	}
	if cache == nil || r.closed && err != nil {
		// A new reading would take memory that the cache has yet to give back for the program's.
		c.limitHeap(c.last.reading, c.last.plan, 0)
		return false
	}
	if err == nil {
		err = c.follow(cache, r, c.governor.next(time.Now(), r))
	}
	if errors.Is(err, ringcache.ErrClosed) {
		c.logger.Info("ringmemlimit: cache is closed")
		return false
	}
	c.note(err)
	return true
}

// read takes a reading.
func (c *Controller) read(cache resizable) (r reading, err error) {
	r.levels, err = c.sources.levels()
	r.heap = c.sources.heap()
	s := cache.Stats()
	r.bound = int64(s.MaxBytesSize)
	// ReservedBytes leaves out memory that a Reset, for example, has left for new entries. Only
	// Resize and Close give any back.
	c.held = min(max(c.held, int64(s.ReservedBytes)), r.bound)
	if s.ReservedBytes == 0 { // it may be closed, which only Resize reports; the bound is the same
		r.closed = errors.Is(cache.Resize(int(r.bound)), ringcache.ErrClosed)
	}
	if r.closed {
		c.held = 0
	}
	r.held = c.held
	return r, err
}

// follow applies the plan. GOMEMLIMIT is lowered before the cache grows, and raised after it has
// shrunk.
func (c *Controller) follow(cache resizable, r reading, p plan) error {
	if p.bound > r.bound {
		c.limitHeap(r, p, p.bound)
	}
	var err error
	switch {
	case r.closed:
		err = ringcache.ErrClosed
	case p.bound != r.bound:
		err = c.resize(cache, r, &p)
	}
	if errors.Is(err, ringcache.ErrClosed) {
		p.bound = 0
	}
	c.limitHeap(r, p, p.bound)
	c.last.reading, c.last.plan = r, p
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.stats
	s.Limit, s.Used, s.Rest, s.CacheBound, s.HeapLimit = p.limit, p.used, p.rest, p.bound, c.heapLimit
	if p.bound > r.bound {
		s.Grown++
	} else if p.bound < r.bound && err == nil {
		s.Shrunk++
	}
	return err
}

// resize sets the bound of the cache to that of the plan. If this fails, it sets that of the plan
// to the old bound.
func (c *Controller) resize(cache resizable, r reading, p *plan) error {
	err := cache.Resize(int(p.bound))
	tooSmall := errors.Is(err, ringcache.ErrInvalidOptions) && p.bound < mostLeastBound
	if tooSmall && mostLeastBound <= c.governor.ceiling {
		// The cache was created with a greater bound than it had at Start, so its least bound is
		// higher. No cache has a least bound above this one.
		c.governor.floor, p.bound = mostLeastBound, mostLeastBound
		err = cache.Resize(mostLeastBound)
	}
	if err != nil {
		p.bound = r.bound
		return err
	}
	c.logger.Info("ringmemlimit: cache resized", "from", r.bound, "to", p.bound,
		"limit", p.limit, "used", p.used, "rest", p.rest)
	return nil
}

// limitHeap sets GOMEMLIMIT for a cache with that bound, if it differs from the last value by more
// than a quarter of the hysteresis.
func (c *Controller) limitHeap(r reading, p plan, bound int64) {
	limit := c.governor.heapLimit(p, r.heap, bound)
	if d := limit - c.heapWanted; d > p.step()/4 || d < -p.step()/4 {
		c.heapLimit, c.heapWanted = c.sources.setHeapLimit(limit), limit
	}
}

// note counts an error, and logs the first of consecutive errors.
func (c *Controller) note(err error) {
	if err != nil {
		c.mu.Lock()
		c.stats.Errors++
		c.mu.Unlock()
		if !c.failing {
			c.logger.Warn("ringmemlimit: cannot follow the memory limit", "error", err)
		}
	}
	c.failing = err != nil
}
