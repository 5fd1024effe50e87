// Package clock counts the age of a cache in ticks, which expiries are made of.
package clock

import (
	"math"
	"time"
)

// Tick is the resolution of expiries: an entry may be dropped so much too early.
// 4 bytes of such ticks last for 13.6 years.
const Tick = 100 * time.Millisecond

// Clock tells how old a cache is. It is read only where something expires. The
// first tick is 1, so that 0 is free to mean never.
type Clock struct {
	start time.Time            // with a monotonic reading: a wall clock that is set does no harm
	fake  func() time.Duration // of a test, in place of the time since start
	ttl   time.Duration        // of entries without one of their own; 0: they do not expire
}

// New returns a clock that began age ago, for entries that live for ttl. A test may
// give it another source of time.
func New(age, ttl time.Duration, fake func() time.Duration) Clock {
	return Clock{start: time.Now().Add(-age), fake: fake, ttl: ttl}
}

// age returns how long ago the clock was made.
func (c *Clock) age() time.Duration {
	if c.fake != nil {
		return c.fake()
	}
	return time.Since(c.start)
}

// Now returns the tick that it is. It is not inlined so that Expired is: nearly
// all records never ask.
//
//go:noinline
func (c *Clock) Now() uint32 { return tickAt(c.age()) }

// tickAt returns the tick of an age. After 13.6 years it does not go on.
func tickAt(age time.Duration) uint32 {
	return uint32(min(int64(age/Tick)+1, math.MaxUint32))
}

// In returns the tick from which on what is to live for ttl, above 0, is expired.
// It begins at that moment or up to a tick before, never after. 0, for never, is
// the answer if it is too far away for the clock.
func (c *Clock) In(ttl time.Duration) uint32 {
	age := c.age()
	if ttl > math.MaxInt64-age {
		return 0
	}
	if at := int64((age+ttl)/Tick) + 1; at < math.MaxUint32 {
		return uint32(at)
	}
	return 0
}

// Default returns the expiry of what is set now without a time to live of its own.
func (c *Clock) Default() uint32 {
	if c.ttl == 0 {
		return 0
	}
	return c.In(c.ttl)
}

// Until returns how long it is until a tick begins.
func (c *Clock) Until(tick uint32) time.Duration {
	return max(0, time.Duration(tick-1)*Tick-c.age())
}

// Expired reports whether a record of that expiry is expired.
func (c *Clock) Expired(expiry uint32) bool { return expiry != 0 && c.Now() >= expiry }
