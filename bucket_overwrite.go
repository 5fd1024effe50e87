package ringcache

import (
	"github.com/ringcache/ringcache/internal/delay"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/record"
)

// How a value is written over an older one where that lies: if it has the same length, if it is
// shorter, and the rest becomes a dead record, or if there are dead records behind it that
// make up for what it is longer. So an entry whose length changes now and then stays in its place.

// overwritePlainLocked is overwriteLocked for the most common record, at the beginning of
// rec, to which slot s leads: no expiry, old or new, and nobody to be told. It reports
// whether it has written.
func (b *bucket) overwritePlainLocked(rec []byte, s uint64, w *write) bool {
	value, expiry, ok := valueIn(b.form, rec, w.k)
	if !ok || len(value) != len(w.v) || expiry != 0 || w.expiry != 0 || w.internal ||
		b.shared.onRemove != nil {
		return false
	}
	faulted := true
	defer func() {
		if faulted {
			b.removeAtLocked(s, w.h)
		}
	}()
	delay.Point()
	copy(value, w.v)
	faulted = false
	b.ring(index.Ring(s)).Seal(index.Pos(s))
	return true
}

// overwriteLocked writes the value over that of the record f, if there is room for it where
// that lies, and reports whether it has.
func (b *bucket) overwriteLocked(f *found, w *write) bool {
	room, ok := b.roomInPlaceLocked(f, w)
	if !ok {
		return false
	}
	if b.shared.onRemove != nil {
		b.keepRemovedLocked(f.ring, f.pos, f.Header, w.why())
	}
	if f.HasExpiry {
		f.ring.SetExpiry(f.pos, f.Header, w.expiry) // sealed with the new value only
		b.noteExpiry(w.expiry)
	}
	if more := len(w.v) - f.ValueLen; more != 0 {
		f.ring.Refit(f.pos, f.Header, len(w.v), room)
		b.countKeyLocked(w.k, 0, more)
		f.ValueLen, f.rec = len(w.v), nil
	}
	b.rewrites++
	delay.Point()
	if f.rec != nil {
		copy(f.rec[f.Size+f.KeyLen:], w.v)
	} else {
		f.ring.Write(f.valuePos(), w.v)
	}
	f.ring.Seal(f.pos)
	return true
}

// roomInPlaceLocked returns the bytes that the record f can have where it lies, with those of dead
// records behind it, and whether the write's value fits into them.
func (b *bucket) roomInPlaceLocked(f *found, w *write) (room int, ok bool) {
	if !f.Takes(w.expiry) || (f.Kind == record.Negative) != w.negative {
		return 0, false
	}
	if f.ValueLen == len(w.v) {
		return f.Total(), true
	}
	if b.form.HeaderSize(f.KeyLen, len(w.v), f.HasExpiry) != f.Size || b.isOverQuotaLocked(f, w) {
		return 0, false
	}
	room, ok = f.ring.RoomAt(f.pos, f.Header, f.Size+f.KeyLen+len(w.v))
	return room, ok && (room == f.Total() || !b.isWalkedLocked(f, room))
}

// isWalkedLocked reports whether a walk is going to go on at a dead record in the room of f: it
// would find no record there.
func (b *bucket) isWalkedLocked(f *found, room int) bool {
	within := func(w *walk) bool {
		mask, n := f.ring.Mask, uint64(room)
		return b.ring(w.ring) == f.ring && ((w.pos-f.pos)&mask < n || (w.end-f.pos)&mask < n)
	}
	return b.sweeps > 0 || b.expirer.walking && within(&b.expirer.walk)
}
