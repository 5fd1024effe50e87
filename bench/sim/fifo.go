package sim

// fifo drops what has been held longest.
type fifo struct {
	entries
	queue queue
}

// NewFIFO returns first-in first-out: what fastcache and BigCache do.
func NewFIFO(capacity int64, keys int) Policy {
	return &fifo{entries: newEntries(capacity, keys)}
}

func (f *fifo) Get(key uint32) bool { return f.holds(key) }

func (f *fifo) Access(key, size uint32) bool {
	if f.Get(key) {
		return true
	}
	if !f.fits(size) {
		return false
	}
	for f.full(size) {
		f.remove(f.queue.pop())
	}
	f.add(key, size)
	f.queue.push(key)
	return false
}

// clock is FIFO that spares what was read since it was last considered.
type clock struct {
	entries
	queue queue
	freq  []uint8
}

// NewClock returns CLOCK with two bits for each entry: up to three reads count.
func NewClock(capacity int64, keys int) Policy {
	return &clock{entries: newEntries(capacity, keys), freq: make([]uint8, keys)}
}

func (c *clock) Get(key uint32) bool { return c.holds(key) && read(c.freq, key) }

func (c *clock) Access(key, size uint32) bool {
	if c.Get(key) {
		return true
	}
	if !c.fits(size) {
		return false
	}
	for c.full(size) {
		c.evict()
	}
	c.add(key, size)
	c.freq[key] = 0
	c.queue.push(key)
	return false
}

func (c *clock) evict() {
	for {
		key := c.queue.pop()
		if c.freq[key] == 0 {
			c.remove(key)
			return
		}
		c.freq[key]--
		c.queue.push(key)
	}
}
