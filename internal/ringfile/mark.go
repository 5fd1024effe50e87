package ringfile

import (
	"time"

	"github.com/ringcache/ringcache/internal/clock"
)

// Mark is how old the cache's clock was at a moment. The file has two: of when it was opened,
// for a process that finds it in use, and of when it was closed.
type Mark struct {
	Age time.Duration
	At  clock.Moment
}

const (
	openedAt = stateAt + 64
	closedAt = stateAt + 128

	markWords = 4 // age, time since the boot, Unix time, each in milliseconds; boot
)

// SetOpened notes the clock's mark before the first entry is set, and SetClosed does behind
// the last one.
func (f *File) SetOpened(m Mark) { f.setMark(openedAt, m) }

// SetClosed notes the clock's mark. The state that says that the file was closed comes later.
func (f *File) SetClosed(m Mark) { f.setMark(closedAt, m) }

// lastMark returns the mark that a process goes on from, or the zero Mark: that of the closing,
// or where the file is in use, that of the opening. This one counts only in its boot, as what
// the wall clock has done since is not known.
func (f *File) lastMark(boot string) Mark {
	if f.stateWord().Load() != stateOf(boot, false) {
		m, _ := f.mark(closedAt)
		return m
	}
	if m, ok := f.mark(openedAt); ok && m.At.ID == clock.HashBoot(boot) {
		return m
	}
	return Mark{}
}

// setMark writes a mark. The boot is cleared first and comes last, so that death in between
// leaves none.
func (f *File) setMark(at int, m Mark) {
	w := words(f.head[at:], markWords)
	boot := &w[markWords-1]
	boot.Store(0)
	// Rounded so that the clock that goes on is ahead of this one, and never behind.
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
