package ringtest

import (
	"time"

	"github.com/ringcache/ringcache/internal/clock"
)

// FakeMachine is a machine whose clocks a test moves.
type FakeMachine struct {
	Wall     time.Time
	up       time.Duration // of the monotonic clock
	Boot     time.Duration // since the boot; 0: the system does not tell
	Boots    int
	RealTime time.Duration // that has passed
}

// NewFakeMachine returns a machine that has run for an hour.
func NewFakeMachine() *FakeMachine {
	return &FakeMachine{Wall: time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC), Boot: time.Hour}
}

// Machine returns the clocks.
func (m *FakeMachine) Machine() *clock.Machine {
	return &clock.Machine{
		Moment: func() clock.Moment {
			return clock.Moment{Wall: m.Wall, Boot: m.Boot, ID: uint64(m.Boots) + 1}
		},
		Uptime: func() time.Duration { return m.up },
	}
}

// Pass lets time go by, which all clocks count.
func (m *FakeMachine) Pass(d time.Duration) {
	m.Wall, m.up, m.RealTime = m.Wall.Add(d), m.up+d, m.RealTime+d
	if m.Boot > 0 {
		m.Boot += d
	}
}

// Reboot starts the machine again after a time.
func (m *FakeMachine) Reboot(off time.Duration) {
	m.Pass(off)
	m.Boots++
	m.Boot = min(m.Boot, time.Second)
}
