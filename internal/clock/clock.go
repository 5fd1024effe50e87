// Package clock counts the age of a cache in ticks, which expiries are made of.
package clock

import (
	"math"
	"math/rand/v2"
	"time"
)

// Tick is the resolution of expiries: an entry may be dropped so much too early.
// 4 bytes of such ticks last for 13.6 years.
const Tick = 100 * time.Millisecond

// Clock tells how old a cache is. It is read where something expires, and now and
// then for how long entries stay. The first tick is 1, so that 0 is free to mean never.
type Clock struct {
	start time.Time            // with a monotonic reading: a wall clock that is set does no harm
	fake  func() time.Duration // of a test, in place of all that age does
	times Times
	grace uint32 // ticks of Times.Grace
	half  int64  // ticks of half of Times.Idle, rounded up
	sleep sleep
}

// Times are how long entries live. The zero value means for ever.
type Times struct {
	TTL    time.Duration // of entries stored without one; 0: they do not expire
	Jitter float64       // the part of a TTL that chance may take away, below 1
	Grace  time.Duration // how long an expired entry is kept
	Idle   time.Duration // of entries that are neither read nor written; 0: that does not matter
}

// New returns a clock that began at start, a time with a monotonic reading. A test may give
// it another source of time.
func New(start time.Time, t Times, fake func() time.Duration) Clock {
	grace := uint32(min(int64(t.Grace/Tick), math.MaxUint32))
	half := min(int64((t.Idle/2+Tick-1)/Tick), math.MaxUint32)
	return Clock{start: start, fake: fake, times: t, grace: grace, half: half,
		sleep: sleep{source: asleep, before: asleep()}}
}

// Age returns how long ago the clock was made.
func (c *Clock) Age() time.Duration {
	if c.fake != nil {
		return c.fake()
	}
	awake := time.Since(c.start)
	return awake + c.sleep.until(awake)
}

// Now returns the tick that it is. It is not inlined so that Expired and FreshAt are:
// nearly all records never ask.
//
//go:noinline
func (c *Clock) Now() uint32 { return tickAt(c.Age()) }

// tickAt returns the tick of an age. After 13.6 years it does not go on.
func tickAt(age time.Duration) uint32 {
	return uint32(min(int64(age/Tick)+1, math.MaxUint32))
}

// In returns the tick from which on what is to live for ttl, above 0, is expired.
// It begins at that moment or up to a tick before, never after. 0, for never, is
// the answer if it is too far away for the clock.
func (c *Clock) In(ttl time.Duration) uint32 {
	age := c.Age()
	if ttl > math.MaxInt64-age {
		return 0
	}
	if at := int64((age+ttl)/Tick) + 1; at < math.MaxUint32 {
		return uint32(at)
	}
	return 0
}

// Default returns the expiry of an entry that is set now without a time to live.
func (c *Clock) Default() uint32 {
	if c.times.TTL == 0 {
		return 0
	}
	return c.jitteredDefault()
}

// jitteredDefault is Default where there is a TTL: apart, so that Default is inlined.
func (c *Clock) jitteredDefault() uint32 { return c.In(c.Jittered(c.times.TTL)) }

// Jittered returns a time to live that is by chance shorter than ttl, but not below a tick.
func (c *Clock) Jittered(ttl time.Duration) time.Duration {
	if c.times.Jitter == 0 || ttl < Tick {
		return ttl
	}
	return max(Tick, ttl-time.Duration(rand.Float64()*c.times.Jitter*float64(ttl)))
}

// Until returns how long it is until a tick begins.
func (c *Clock) Until(tick uint32) time.Duration {
	return max(0, time.Duration(tick-1)*Tick-c.Age())
}

// Expired reports whether a record of that expiry is expired.
func (c *Clock) Expired(expiry uint32) bool { return expiry != 0 && c.Now() >= expiry }

// FreshAt reports whether a read of a record of that expiry leaves it as it is: it is neither
// expired nor in the second half of its idle time. now is a tick that was read before; if it is 0,
// FreshAt reads the clock.
func (c *Clock) FreshAt(expiry, now uint32) bool {
	if expiry == 0 {
		return true
	}
	if now == 0 {
		now = c.Now()
	}
	return int64(expiry)-int64(now) > c.half
}

// Idles reports whether records have an idle time, and with it two deadlines.
func (c *Clock) Idles() bool { return c.times.Idle != 0 }

// IdleEnd returns the expiry of a record that is read or written now and whose last deadline is
// last; 0 means never.
func (c *Clock) IdleEnd(last uint32) uint32 {
	if c.times.Idle == 0 {
		return last
	}
	return Earlier(last, c.In(c.times.Idle))
}

// Earlier returns the earlier of two ticks, of which 0 is never.
func Earlier(a, b uint32) uint32 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Keeps reports whether expired records are kept for a while.
func (c *Clock) Keeps() bool { return c.grace > 0 }

// KeptUntil returns the tick from which on a record of an expiry, not 0, is not kept.
func (c *Clock) KeptUntil(expiry uint32) uint32 {
	if end := expiry + c.grace; end >= expiry {
		return end
	}
	return math.MaxUint32
}
