package ringfile

import (
	"time"

	"github.com/ringcache/ringcache/internal/clock"
)

// Mark is the age of the cache's clock at a moment. The file has two: one of its opening, for a
// process that finds a file that was not closed, and one of its closing.
type Mark struct {
	Age time.Duration
	At  clock.Moment
}

const (
	openedAt = stateAt + 64
	closedAt = stateAt + 128

	markWords = 4 // age, time since the boot, Unix time, each in milliseconds; boot
)

// SetOpened notes the clock's mark, before the first entry is set.
func (f *File) SetOpened(m Mark) { f.setMark(openedAt, m) }

// SetClosed notes the clock's mark, after the last entry is set. The state that says that the file
// was closed is written later.
func (f *File) SetClosed(m Mark) { f.setMark(closedAt, m) }

// lastMark returns the mark from which a process continues: that of the closing, or, if the file
// was not closed, that of the opening. The latter is valid only during the same boot, since it is
// not known how the wall clock was set later. lastMark returns the zero Mark if there is no valid
// one.
func (f *File) lastMark(boot uint64) Mark {
	if f.stateWord().Load() != stateOf(boot, false) {
		m, _ := f.mark(closedAt)
		return m
	}
	if m, ok := f.mark(openedAt); ok && m.At.ID == boot {
		return m
	}
	return Mark{}
}

// setMark writes a mark. The boot is cleared first and written last, so that there is no mark if
// the process dies in between.
func (f *File) setMark(at int, m Mark) {
	w := words(f.head[at:], markWords)
	boot := &w[markWords-1]
	boot.Store(0)
	// The age is rounded up, so that the clock that continues is never behind this one.
	for i, n := range []int64{
		m.Age.Milliseconds() + 1, m.At.Boot.Milliseconds(), m.At.Wall.UnixMilli(),
	} {
		w[i].Store(withCheck(uint64(min(max(n, 0), 1<<valueBits-1)), uint64(at+i)))
	}
	boot.Store(withCheck(m.At.ID, uint64(at+markWords-1)))
}

// mark reads a mark.
func (f *File) mark(at int) (m Mark, ok bool) {
	var n [markWords]uint64
	for i := range n {
		word := words(f.head[at:], markWords)[i].Load()
		if n[i], ok = checked(word, uint64(at+i)); !ok {
			return Mark{}, false
		}
	}
	m.Age = time.Duration(n[0]) * time.Millisecond // 139 years at most
	m.At = clock.Moment{
		Boot: time.Duration(n[1]) * time.Millisecond,
		Wall: time.UnixMilli(int64(n[2])),
		ID:   n[3],
	}
	return m, true
}
