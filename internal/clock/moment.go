package clock

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Machine is the source of the times of a process. Tests replace it with a fake one.
type Machine struct {
	Moment func() Moment        // the present one
	Uptime func() time.Duration // replaces the monotonic clock that [Clock] reads, if not nil
}

// System is the machine that the process runs on.
var System = Machine{Moment: moment}

// OrSystem returns m, or System if m is nil. It links 44 KB: caches without a file must not use it.
func (m *Machine) OrSystem() *Machine { return cmp.Or(m, &System) }

// Moment is a point in time as stored in a file, from which another process continues. The zero
// value is an unknown moment.
type Moment struct {
	Wall time.Time     // which may be set to anything at any time; Unix milliseconds in a file
	Boot time.Duration // since the machine was started, with the time that it slept; 0: not known
	ID   uint64        // of the boot, IDBits long, not 0; another one for each moment if not known
}

// Mark is the age of a cache's clock at a moment.
type Mark struct {
	Age time.Duration
	At  Moment
}

// IDBits is the length of Moment.ID.
const IDBits = 41

func moment() Moment {
	id := rand.Uint64()
	if name := bootID(); name != "" {
		id = xxhash.Sum64String(name)
	}
	at := Moment{Boot: sinceBoot(), ID: max(id>>(64-IDBits), 1)}
	at.Wall = time.Now().Round(0) // without the monotonic reading, which would hide a change
	return at
}

// earliest is earlier than any time at which this code can run: a wall clock that is behind it has
// not been set since the machine was started.
var earliest = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// Resume returns the age, at moment m, of a clock that had the given age at an earlier moment. The
// time that has passed is what the wall clock says, or, within one boot, the clock of the boot if
// that says more. The wall clock may have been set back, and the clock of the boot stops while a
// virtual machine is suspended, and is another one in another time namespace. Resume reports false
// if the time cannot be known, because the wall clock is earlier than before or was never set, or
// if so few ticks would be left that new expiries could be beyond the clock's end.
func (m Moment) Resume(age time.Duration, from Moment) (time.Duration, bool) {
	passed := m.Wall.Sub(from.Wall)
	known := passed >= 0 && !from.Wall.Before(earliest)
	if m.ID == from.ID {
		passed = max(passed, m.Boot-from.Boot)
	}
	if !known || age < 0 || passed > maxAge || age > maxAge-passed {
		return 0, false
	}
	return age + passed, true
}

// maxAge is the greatest age of a clock that is resumed: half of what it can count.
const maxAge = Never / 2 * Tick
