package clock

import (
	"crypto/rand"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Machine is the source of the times of a process. Tests replace it with a fake one.
type Machine struct {
	// Now returns the time by the wall clock, which may be set to anything at any time.
	Now func() time.Time

	// SinceBoot returns the time since the machine was started, including the time that it slept.
	// It reports false if the system does not provide it.
	SinceBoot func() (time.Duration, bool)

	// BootID returns a name that the machine keeps until it is started again, or a new name for
	// each call if it has none.
	BootID func() string

	// Uptime, if not nil, replaces the monotonic clock that [Clock] reads.
	Uptime func() time.Duration
}

// System is the machine that the process runs on.
var System = Machine{Now: time.Now, SinceBoot: sinceBoot, BootID: bootID}

// bootID returns the system's name for this boot, or a random one.
func bootID() string {
	if id := systemBootID(); id != "" {
		return id
	}
	return rand.Text()
}

// Moment is a point in time as stored in a file, from which another process continues. The zero
// value is an unknown moment.
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
	at.Wall = m.Now().Round(0) // without the monotonic reading, which would hide a change
	return at
}

// earliest is earlier than any time at which this code can run: a wall clock that is behind it has
// not been set since the machine was started.
var earliest = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// Since returns how much time has passed since an earlier moment, or reports false if that cannot
// be known. Within one boot the wall clock plays no part. Otherwise it is the only source: it is
// believed unless it was never set, or went back.
func (m Moment) Since(from Moment) (time.Duration, bool) {
	if from.ID == m.ID && from.Boot > 0 && m.Boot > 0 {
		return m.Boot - from.Boot, m.Boot >= from.Boot
	}
	passed := m.Wall.Sub(from.Wall)
	return passed, passed >= 0 && !from.Wall.Before(earliest)
}

// Resume returns the age, at moment m, of a clock that had the given age at an earlier moment. It
// reports false if that cannot be known, or if so few ticks would be left that new expiries could
// be beyond the clock's end.
func (m Moment) Resume(age time.Duration, from Moment) (time.Duration, bool) {
	passed, ok := m.Since(from)
	if !ok || age < 0 || passed > maxAge || age > maxAge-passed {
		return 0, false
	}
	return age + passed, true
}

// maxAge is the greatest age of a clock that is resumed: half of what it can count.
const maxAge = Never / 2 * Tick
