package clock

import (
	"crypto/rand"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Machine is where the times of a process come from. Tests put a fake one in its place.
type Machine struct {
	// Now returns the time by the wall clock, which may be set to anything at any time.
	Now func() time.Time

	// SinceBoot returns how long ago the machine was started, with the time that it slept.
	// It reports false where the system does not tell.
	SinceBoot func() (time.Duration, bool)

	// BootID returns a name that the machine keeps until it is started again, or a new one
	// for each call if there is none.
	BootID func() string

	// Uptime, if not nil, takes the place of the monotonic clock that [Clock] reads.
	Uptime func() time.Duration
}

// System is the machine that the process runs on.
var System = Machine{Now: time.Now, SinceBoot: sinceBoot, BootID: bootID}

// bootID returns the system's name of this boot, or a random one.
func bootID() string {
	if id := systemBootID(); id != "" {
		return id
	}
	return rand.Text()
}

// Moment is a point in time as a file keeps it, for a process that goes on from there.
// The zero value is one of which nothing is known.
type Moment struct {
	Wall time.Time     // Unix milliseconds in a file
	Boot time.Duration // since the machine was started, or 0 if that is not known
	ID   uint64        // of the boot, as HashBoot returns it
}

// HashBoot returns a number of 42 bits, not 0, for the name of a boot.
func HashBoot(id string) uint64 { return max(xxhash.Sum64String(id)>>22, 1) }

// Moment returns the present one.
func (m *Machine) Moment() Moment {
	at := Moment{ID: HashBoot(m.BootID())}
	at.Boot, _ = m.SinceBoot()
	at.Wall = m.Now().Round(0) // without the monotonic clock, which would hide that it was set
	return at
}

// earliest is before any time at which a process with this code runs: an earlier wall clock
// has not been set since the machine was started.
var earliest = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// Since returns how much time has passed since an earlier moment, or reports false if that
// cannot be known. Within one boot the wall clock plays no part in it. Otherwise it is all
// that there is: it is believed unless it was never set, or says that no time has passed.
func (m Moment) Since(from Moment) (time.Duration, bool) {
	if from.ID == m.ID && from.Boot > 0 && m.Boot > 0 {
		return m.Boot - from.Boot, m.Boot >= from.Boot
	}
	passed := m.Wall.Sub(from.Wall)
	return passed, passed >= 0 && !from.Wall.Before(earliest)
}

// Resume returns the age, at the present moment, of a clock that had an age at an earlier
// one. It reports false if that cannot be known, or if so little would be left of the ticks
// that new expiries could be beyond the clock's end.
func (m Moment) Resume(age time.Duration, from Moment) (time.Duration, bool) {
	passed, ok := m.Since(from)
	if !ok || age < 0 || passed > maxAge || age > maxAge-passed {
		return 0, false
	}
	return age + passed, true
}

// maxAge is how old a clock may be when it is resumed: half of what it can count.
const maxAge = Never / 2 * Tick
