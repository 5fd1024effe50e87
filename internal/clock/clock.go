// Package clock counts the age of a cache in ticks, the unit of expiries.
package clock

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// Tick is the resolution of expiries: an entry may expire early by up to one tick. Ticks of 4 bytes
// last for 13.6 years.
const Tick = 100 * time.Millisecond

// Never is the tick of an entry that has an expiry and lives forever.
const Never = math.MaxUint32

// Clock tells how old a cache is. It is read for expiries, and occasionally to measure how long
// entries stay. The first tick is 1, so that 0 can mean never.
type Clock struct {
	start    time.Time            // with a monotonic reading: the wall clock may be set
	fake     func() time.Duration // replaces Age in a test
	settings Settings
	grace    uint32 // ticks of Settings.Grace
	half     int64  // ticks of half of Settings.Idle, rounded up
	sleep    sleep
	Idles    bool // records have an idle time, and therefore two deadlines
}

// Settings determine how long entries live. The zero value means forever.
type Settings struct {
	Jitter float64       // the largest random fraction subtracted from a TTL, below 1
	Grace  time.Duration // how long an expired entry is kept
	Idle   time.Duration // after which unused entries expire; 0: they do not
}

// New returns a clock that began at start, a time with a monotonic reading. A test may pass another
// source of the age.
func New(start time.Time, s Settings, fake func() time.Duration) Clock {
	grace := uint32(min(int64(s.Grace/Tick), math.MaxUint32))
	half := min(int64((s.Idle/2+Tick-1)/Tick), math.MaxUint32)
	// Where readings are interrupted, too little counts as asleep before: if the clock leapt ahead,
	// entries that are set from then on would live longer once a clock that resumes from an earlier
	// mark measures them.
	_, before := asleep()
	return Clock{start: start, fake: fake, settings: s, grace: grace, half: half, Idles: s.Idle != 0,
		sleep: sleep{before: before, source: asleep}}
}

// Born returns when a clock begins that is made now: up to a tick earlier, by the wall clock, so
// that the ticks of all new clocks begin at the same moments, and a deadline can be moved from one
// to another without a loss.
func Born(now time.Time) time.Time { return now.Add(-time.Duration(now.UnixNano()) % Tick) }

// TicksIn returns the number of ticks that one clock is ahead of another by d, rounded down: early
// deadlines are better than late ones.
func TicksIn(d time.Duration) int64 {
	d += inexact
	return int64((d - (d%Tick+Tick)%Tick) / Tick)
}

// inexact is the difference that is ignored between clocks that are not read at the same instant.
const inexact = time.Millisecond

// Age returns how long ago the clock was made.
func (c *Clock) Age() time.Duration {
	if c.fake != nil {
		return c.fake()
	}
	awake := time.Since(c.start)
	return awake + c.sleep.until(awake)
}

// Now returns the current tick, which stops after 13.6 years. It is not inlined, so that Expired
// and FreshAt can be: for nearly all records they do not call it.
//
//go:noinline
func (c *Clock) Now() uint32 { return uint32(min(int64(c.Age()/Tick)+1, math.MaxUint32)) }

// In returns the tick at which an entry that is to live for ttl, above 0, expires. The tick begins
// at that moment or up to one tick before, never after. In returns 0, which means never, if the
// moment is too far away for the clock.
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

// Jittered returns ttl less a random part, but not less than a tick.
func (c *Clock) Jittered(ttl time.Duration) time.Duration {
	if c.settings.Jitter == 0 || ttl < Tick {
		return ttl
	}
	return max(Tick, ttl-time.Duration(rand.Float64()*c.settings.Jitter*float64(ttl)))
}

// Until returns the time until a tick begins.
func (c *Clock) Until(tick uint32) time.Duration {
	return max(0, time.Duration(tick-1)*Tick-c.Age())
}

// Expired reports whether a record with this expiry has expired.
func (c *Clock) Expired(expiry uint32) bool { return expiry != 0 && c.Now() >= expiry }

// FreshAt reports whether a read leaves a record with this expiry unchanged: it is neither expired
// nor in the second half of its idle time. now is a tick that was read before; if it is 0, FreshAt
// reads the clock.
func (c *Clock) FreshAt(expiry, now uint32) bool {
	if expiry == 0 {
		return true
	}
	if now == 0 {
		now = c.Now()
	}
	return int64(expiry)-int64(now) > c.half
}

// IdleEnd returns the expiry of a record that is read or written now and has last as its last
// deadline; 0 means never.
func (c *Clock) IdleEnd(last uint32) uint32 {
	if c.settings.Idle == 0 {
		return last
	}
	return Earlier(last, c.In(c.settings.Idle))
}

// Earlier returns the earlier of two ticks; 0 means never.
func Earlier(a, b uint32) uint32 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// KeptUntil returns the tick from which a record with this expiry, which is not 0, is no longer
// kept.
func (c *Clock) KeptUntil(expiry uint32) uint32 {
	if end := expiry + c.grace; end >= expiry {
		return end
	}
	return math.MaxUint32
}

// On Linux and macOS, Go's monotonic clock stops while the machine sleeps, and expiries must not.
// The system's clock that continues takes ten times as long to read, so a Clock reads Go's clock,
// and determines the difference every sleepCheck.

// sleepCheck is how long after the machine wakes up a clock may not yet include the sleep.
const sleepCheck = 10 * time.Millisecond

// sleep is how long the machine has slept since a clock was made.
type sleep struct {
	source func() (least, most time.Duration) // bounds of the total time asleep
	before time.Duration                      // part of the total before the clock was made
	known  atomic.Int64                       // time asleep since then, as last determined
	next   atomic.Int64                       // awake time at which to check again
}

// until returns the time asleep until the clock's awake time is awake. Smaller differences than
// inexact are ignored.
func (s *sleep) until(awake time.Duration) time.Duration {
	known := s.known.Load()
	if int64(awake) >= s.next.Load() {
		s.next.Store(int64(awake + sleepCheck))
		least, _ := s.source()
		slept := int64(least - s.before)
		for slept >= known+int64(inexact) && !s.known.CompareAndSwap(known, slept) {
			known = s.known.Load()
		}
		known = s.known.Load()
	}
	return time.Duration(known)
}
