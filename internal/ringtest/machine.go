package ringtest

import (
	"fmt"
	"time"

	"github.com/ringcache/ringcache/internal/clock"
)

// FakeMachine is a machine whose clocks a test moves.
type FakeMachine struct {
	Wall     time.Time
	up       time.Duration // of the monotonic clock
	boot     time.Duration // since the boot; below 0: the system does not tell
	Boots    int
	RealTime time.Duration // that has passed
}

// NewFakeMachine returns a machine that has run for an hour.
func NewFakeMachine() *FakeMachine {
	return &FakeMachine{Wall: time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC), boot: time.Hour}
}

// Machine returns the clocks.
func (m *FakeMachine) Machine() *clock.Machine {
	return &clock.Machine{
		Now:       func() time.Time { return m.Wall },
		SinceBoot: func() (time.Duration, bool) { return m.boot, m.boot >= 0 },
		BootID:    func() string { return fmt.Sprint("boot ", m.Boots) },
		Uptime:    func() time.Duration { return m.up },
	}
}

// Pass lets time go by, which all clocks count.
func (m *FakeMachine) Pass(d time.Duration) {
	m.Wall, m.up, m.RealTime = m.Wall.Add(d), m.up+d, m.RealTime+d
	if m.boot >= 0 {
		m.boot += d
	}
}

// Reboot starts the machine again after a time.
func (m *FakeMachine) Reboot(off time.Duration) {
	m.Pass(off)
	m.Boots++
	m.boot = min(m.boot, time.Second)
}
