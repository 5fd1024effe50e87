package ringcache

import (
	"fmt"
	"time"

	"github.com/ringcache/ringcache/internal/clock"
)

// fakeMachine is a machine whose clocks a test moves.
type fakeMachine struct {
	wall     time.Time
	up       time.Duration // of the monotonic clock
	boot     time.Duration // since the boot; below 0: the system does not tell
	boots    int
	realTime time.Duration // that has passed
}

// newFakeMachine returns a machine that has run for an hour.
func newFakeMachine() *fakeMachine {
	return &fakeMachine{wall: time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC), boot: time.Hour}
}

// machine returns the clocks.
func (m *fakeMachine) machine() *clock.Machine {
	return &clock.Machine{
		Now:       func() time.Time { return m.wall },
		SinceBoot: func() (time.Duration, bool) { return m.boot, m.boot >= 0 },
		BootID:    func() string { return fmt.Sprint("boot ", m.boots) },
		Uptime:    func() time.Duration { return m.up },
	}
}

// pass lets time go by, which all clocks count.
func (m *fakeMachine) pass(d time.Duration) {
	m.wall, m.up, m.realTime = m.wall.Add(d), m.up+d, m.realTime+d
	if m.boot >= 0 {
		m.boot += d
	}
}

// reboot starts the machine again after a time.
func (m *fakeMachine) reboot(off time.Duration) {
	m.pass(off)
	m.boots++
	m.boot = min(m.boot, time.Second)
}
