//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package persist

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/ringfile"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// clockModel is a cache in a file whose process ends and starts again while clocks jump, and
// when each of its entries is due in real time.
type clockModel struct {
	*clockedFile
	due   map[string]time.Duration
	early map[string]bool // may be missing early
	wrong bool            // the wall clock was set since the mark of the last process
}

// start begins a process. If the wall clock was wrong, entries are gone early.
func (m *clockModel) start() {
	for k := range m.due {
		m.early[k] = m.early[k] || m.wrong
	}
	m.open()
	m.wrong = m.isUnset()
}

// isUnset reports whether the wall clock does not seem to be set.
func (m *clockModel) isUnset() bool { return m.Wall.Year() < 2025 }

// step does what two bytes say.
func (m *clockModel) step(op, arg byte) {
	k := fmt.Sprint("key ", op>>4)
	switch d := time.Duration(arg) * clock.Tick; op % 8 {
	case 0, 1:
		m.set(k, max(d, clock.Tick))
		m.due[k], m.early[k] = m.RealTime+max(d, clock.Tick), false
	case 2:
		if m.Touch([]byte(k), max(d, clock.Tick)) {
			m.due[k], m.early[k] = m.RealTime+max(d, clock.Tick), false
		}
	case 3:
		m.Pass(d / 7)
	case 4: // set to anything, while it runs
		m.Wall, m.wrong = m.Wall.Add(time.Duration(int8(arg))*1000*time.Hour), true
	case 5, 6: // another process, under a wall clock that was set, or in another time namespace
		if op%8 == 5 {
			m.wrong = m.isUnset()
		}
		m.leave(op%8 == 5)
		m.Pass(d / 3)
		if arg%4 == 0 {
			m.Wall, m.wrong = m.Wall.Add(time.Duration(int8(arg))*time.Minute), true
		} else if arg%4 == 1 && !m.wrong { // of one or the other, only one can be known
			m.Boot, m.wrong = d+1, true
		}
		m.start()
	case 7: // another boot, with the right time, a later one, or one that cannot be
		closing := m.Wall
		m.wrong = m.isUnset()
		m.leave(true)
		m.Reboot(d)
		switch arg % 4 {
		case 1:
			m.Wall, m.wrong = m.Wall.Add(d), true
		case 2:
			m.Wall, m.wrong = closing.Add(-d-1), true
		case 3:
			m.Wall, m.wrong = time.Unix(int64(arg), 0), true
		}
		m.start()
	}
}

// check fails if an entry is there that is overdue, or one is not that is not due, where the
// clocks let that be known.
func (m *clockModel) check(opened int) {
	for k, due := range m.due {
		left, ok := m.TTL([]byte(k))
		if m.RealTime >= due {
			require.False(m.t, ok, "%s is due for %v", k, m.RealTime-due)
		}
		require.LessOrEqual(m.t, left, max(0, due-m.RealTime), k)
		slack := 2*clock.Tick + time.Duration(2*opened)*time.Millisecond
		if !ok && due-m.RealTime > slack {
			require.True(m.t, m.early[k], "%s is due in %v", k, due-m.RealTime)
		}
		if !ok {
			delete(m.due, k)
		}
	}
}

// FuzzFileClocks opens a file again and again under clocks that jump.
func FuzzFileClocks(f *testing.F) {
	for seed := range uint64(8) {
		data := make([]byte, 300)
		ringtest.FillRandom(ringtest.NewRand(seed), data)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &clockModel{clockedFile: newClockedFile(t),
			due: map[string]time.Duration{}, early: map[string]bool{}}
		m.open()
		for i := 0; i+1 < min(len(data), 400); i += 2 {
			m.step(data[i], data[i+1])
			m.check(i)
		}
		require.NoError(t, ringtest.Validate(m.clockedFile.Cache))
		ringtest.Abandon(m.Cache)
	})
}

// sumAt is where the checksum of the head begins.
const sumAt = 120

// FuzzFileHead opens a file with any bytes in its head, with the header's checksum right or
// not: the result is an error, an empty cache, or values that were set.
func FuzzFileHead(f *testing.F) {
	d := newDamaged(f)
	f.Add(uint16(0), []byte("ringfile"), true)
	f.Add(uint16(16), []byte{0, 0x80}, true)   // chunks that are too large for the bound
	for at := uint16(8); at < sumAt; at += 4 { // each number of the header
		f.Add(at, []byte{0xff, 0xff, 0xff, 0xff}, true)
		f.Add(at, []byte{0, 0, 0, 0, 0, 0, 0, 0}, true)
		f.Add(at, []byte{1, 0, 0, 0}, true)
		f.Add(at, []byte{0, 0, 0, 0x80}, true)
		f.Add(at, []byte{0xff, 0xff, 0xff, 0x7f}, true)
	}
	for at := uint16(1 << 10); at < 1<<10+160; at += 8 { // state and marks
		f.Add(at, make([]byte, 8), false)
	}
	f.Fuzz(func(t *testing.T, at uint16, head []byte, summed bool) {
		b := bytes.Clone(d.whole)
		copy(b[int(at)%ringfile.HeadSize:ringfile.HeadSize], head)
		if summed {
			binary.LittleEndian.PutUint64(b[sumAt:], xxhash.Sum64(b[:sumAt]))
		}
		d.open(t, b, fmt.Sprint("head at ", at))
	})
}
