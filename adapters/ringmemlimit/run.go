package ringmemlimit

import (
	"errors"
	"time"

	"github.com/ringcache/ringcache"
)

// run reads and follows until it is told to stop, or the cache is gone.
func (c *Controller) run() {
	defer close(c.done)
	defer c.sources.stop()
	tick := time.NewTicker(c.interval)
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
		select { // collections may come by the hundred
		case <-c.stopping:
			return
		case <-time.After(leastInterval):
		}
	}
}

// step does what one reading asks for. It reports false when the cache is gone.
func (c *Controller) step() bool {
	cache := c.sources.cache()
	r, err := c.read(cache)
	if err == nil {
		p := c.governor.next(time.Now(), r)
		if cache == nil {
			c.limitHeap(r, p, 0)
			return false
		}
		err = c.follow(cache, r, p)
	}
	if errors.Is(err, ringcache.ErrClosed) {
		c.logger.Info("ringmemlimit: cache is closed")
		return false
	}
	c.note(err)
	return true
}

// read returns the state of things. Without a cache, it holds nothing.
func (c *Controller) read(cache resizable) (r reading, err error) {
	r.levels, err = c.sources.levels()
	r.heap = c.sources.heap()
	if cache != nil {
		s := cache.Stats()
		r.held, r.bound = int64(s.ReservedBytes), int64(s.MaxBytesSize)
	}
	return r, err
}

// follow does what the plan says. While the cache is larger, GOMEMLIMIT is the lower of the two.
func (c *Controller) follow(cache resizable, r reading, p plan) error {
	if p.bound > r.bound {
		c.limitHeap(r, p, p.bound)
	}
	var err error
	switch {
	case p.bound != r.bound:
		err = c.resize(cache, r, &p)
	case r.held == 0: // it may be closed, which only Resize tells: this one changes nothing
		if closed := cache.Resize(int(r.bound)); errors.Is(closed, ringcache.ErrClosed) {
			err = closed
		}
	}
	if errors.Is(err, ringcache.ErrClosed) {
		p.bound = 0
	}
	c.limitHeap(r, p, p.bound)
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

// resize gives the cache the bound of the plan. If it cannot, the plan has the old one.
func (c *Controller) resize(cache resizable, r reading, p *plan) error {
	err := cache.Resize(int(p.bound))
	tooSmall := errors.Is(err, ringcache.ErrInvalidOptions) && p.bound < mostLeastBound
	if tooSmall && mostLeastBound <= c.governor.ceiling {
		// It was made with a greater bound than it had at Start. No cache has a greater least.
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

// limitHeap sets GOMEMLIMIT to what may come beside a cache of that bound, if that differs from the
// last one by a quarter of the hysteresis.
func (c *Controller) limitHeap(r reading, p plan, bound int64) {
	limit := c.governor.heapLimit(p, r.heap, bound)
	if d := limit - c.heapWanted; d > p.step()/4 || d < -p.step()/4 {
		c.heapLimit, c.heapWanted = c.sources.setHeapLimit(limit), limit
	}
}

// note counts an error, and logs the first one of several.
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
