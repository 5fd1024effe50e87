package ringcache

import (
	"math"
	"time"
)

// tick is the resolution of expiries. It is what an entry may be dropped too
// early; 4 bytes of such ticks last for 13.6 years.
const tick = 100 * time.Millisecond

// clock tells how old the cache is, in ticks. It is read only where something
// expires. The first tick is 1, so that 0 is free to mean never.
type clock struct {
	start time.Time            // with a monotonic reading: a wall clock that is set does no harm
	fake  func() time.Duration // of a test, in place of the time since start
	ttl   time.Duration        // of entries without one of their own; 0: they do not expire
}

func newClock(g geometry) clock {
	return clock{start: time.Now(), fake: g.now, ttl: g.ttl}
}

// age returns how long ago the cache was made.
func (c *clock) age() time.Duration {
	if c.fake != nil {
		return c.fake()
	}
	return time.Since(c.start)
}

// tick returns the tick that it is.
func (c *clock) tick() uint32 { return tickAt(c.age()) }

// tickAt returns the tick of an age. After 13.6 years it does not go on.
func tickAt(age time.Duration) uint32 {
	return uint32(min(int64(age/tick)+1, math.MaxUint32))
}

// expiry returns the tick from which on what is to live for ttl, above 0, is
// expired. It begins at that moment or up to a tick before, never after. 0, for
// never, is the answer if it is too far away for the clock.
func (c *clock) expiry(ttl time.Duration) uint32 {
	age := c.age()
	if ttl > math.MaxInt64-age {
		return 0
	}
	if at := int64((age+ttl)/tick) + 1; at < math.MaxUint32 {
		return uint32(at)
	}
	return 0
}

// expired reports whether the record of a header is expired.
func (c *clock) expired(h header) bool { return h.expiry != 0 && c.past(h.expiry) }

// past reports whether a tick has begun.
func (c *clock) past(at uint32) bool { return c.tick() >= at }
