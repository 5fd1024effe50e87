package ringfile

import (
	"time"

	"github.com/ringcache/ringcache/internal/clock"
)

const markWords = 4 // age, time since the boot, Unix time, each in milliseconds; boot

// SetMark notes the clock's mark: before the first entry is set, and after the last one. The file
// has that of its last opening or, once it was closed, of its closing. The boot is cleared first
// and written last, so that there is no mark if the process dies in between.
func (f *Rings) SetMark(m clock.Mark) {
	w := words(f.head[markAt:], markWords)
	boot := &w[markWords-1]
	boot.Store(0)
	// The age is rounded up, so that the clock that continues is never behind this one.
	for i, n := range []int64{
		m.Age.Milliseconds() + 1, m.At.Boot.Milliseconds(), m.At.Wall.UnixMilli(),
	} {
		w[i].Store(withCheck(uint64(min(max(n, 0), 1<<valueBits-1)), uint64(markAt+i)))
	}
	boot.Store(withCheck(m.At.ID, uint64(markAt+markWords-1)))
}

// lastMark returns the mark from which a process continues, or the zero Mark if there is no valid
// one. If the file was not closed, the mark is valid only during the boot in which it was noted:
// it is not known how the wall clock was set since, until the process died.
func (f *Rings) lastMark(boot uint64) (m clock.Mark) {
	var n [markWords]uint64
	for i := range n {
		var ok bool
		if n[i], ok = checked(words(f.head[markAt:], markWords)[i].Load(), uint64(markAt+i)); !ok {
			return clock.Mark{}
		}
	}
	if f.stateWord().Load() == stateOf(boot, false) && n[3] != boot {
		return clock.Mark{}
	}
	m.Age = time.Duration(n[0]) * time.Millisecond // 139 years at most
	m.At = clock.Moment{
		Boot: time.Duration(n[1]) * time.Millisecond,
		Wall: time.UnixMilli(int64(n[2])),
		ID:   n[3],
	}
	return m
}
