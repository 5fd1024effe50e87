package store

import (
	"encoding/binary"
	"math"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/generation"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/torn"
)

// Write is one change to one key: a record to be stored, or a removal. It is passed by pointer
// and stays on the caller's stack.
type Write struct {
	Key, Value  []byte
	Hash        uint64 // hash of Key
	Bytes       int    // bytes of the record, by Measure
	Last        uint32 // tick of the last deadline, often the only one (record.Times); 0: never
	Until       uint32 // tick at which it expires at the latest unless it is read; 0: no such limit
	RewriteOnly bool   // the value is there already: OnRemove hears of it only if Fail loses it
	Packed      bool   // set if nothing was done because the old value is needed and packed
	Kind        record.Kind
	Reason      Reason // why an older value is removed

	Times record.Times // deadlines of the record, by Measure

	Restored bool        // of a snapshot, or moved by Resize: keeps the ring and frequency below
	Ring     policy.Ring // small or main
	Freq     int
	Strict   bool // its bucket must not exceed its quota
}

// why returns the reason that OnRemove gets for the older value.
func (w *Write) why() Reason {
	if w.RewriteOnly {
		return Unreported
	}
	return w.Reason
}

// Measure sets Times, which begin now, and Bytes.
func (w *Write) Measure(s *Shared) {
	w.Times = record.Times{}
	klen, vlen, d := len(w.Key), len(w.Value), record.Timeless
	switch {
	case w.Kind == record.Value && w.Last|w.Until == 0 && !s.Idles: // nearly all
		w.Bytes = s.Form.HeaderSize(record.Value, klen, vlen, record.Timeless) + klen + vlen
		return
	case w.Kind&^record.Spaced == record.Negative:
		if w.Last == 0 {
			w.Last = math.MaxUint32 // the last possible one: it always has one
		}
		d = record.Timed
	case s.Idles:
		d = record.Idle // room for two, whatever there are, so that any can be set in place
	case w.Last|w.Until != 0:
		d = record.Timed
	}
	if d != record.Timeless {
		w.Times = record.Times{
			Deadlines: d, Expiry: clock.Earlier(s.IdleEnd(w.Last), w.Until), Last: w.Last,
		}
	}
	w.Bytes = s.Form.HeaderSize(w.Kind, klen, vlen, d) + klen + vlen
}

// Overwriting in place. A value is written over the older one if it has the same length; if it is
// shorter, and the rest becomes a dead record; or if it is longer, and the dead records behind the
// older one have enough bytes. So an entry whose length changes now and then stays in its place.

// overwritePlain is overwrite for the most common records, at the beginning of rec, to which slot s
// leads: the value has the same length as the old one, both expire or neither does, and no caller
// is told. It reports whether it has written. It changes nothing in the header but the expiry: a
// record without one must have nothing else there that a write sets.
func (b *Store) overwritePlain(rec []byte, s uint64, w *Write) bool {
	value, expiry, ok := ValueIn(b.Form, rec, w.Key)
	if !ok || len(value) != len(w.Value) || (expiry != 0) != (w.Times.Expiry != 0) ||
		w.Kind&^record.Spaced != record.Value || b.Shared.Notifies || b.Shared.Idles {
		return false
	}
	if expiry != 0 {
		// The header must have room for one deadline, which is then directly before the key.
		at := cap(rec) - cap(value) - len(w.Key) - record.DeadlineSize
		if at != record.ShortHeader+int(b.Form) || b.Shared.Expired(expiry) {
			return false
		}
		binary.LittleEndian.PutUint32(rec[at:], w.Times.Expiry)
		b.noteExpiry(w.Times.Expiry)
	}
	b.Plain++
	b.unsure = unsure{true, s, w.Hash}
	torn.Delay()
	copy(value, w.Value)
	b.unsure.on = false
	if b.Form != record.Plain {
		b.Ring(index.Ring(s)).WriteSum(index.Pos(s))
	}
	return true
}

// overwrite writes the value over that of the record f, if there is room for it in place, and
// reports whether it has.
func (b *Store) overwrite(f *Found, w *Write) bool {
	room, ok := b.roomInPlace(f, w)
	if !ok {
		return false
	}
	if b.Shared.Notifies {
		b.keepRemoved(f.Ring, f.Pos, f.Header, w.why())
	}
	if f.Deadlines != record.Timeless {
		f.Ring.SetTimes(f.Pos, f.Header, w.Times) // the checksum is written after the value
		b.noteExpiry(w.Times.Expiry)
	}
	if more := len(w.Value) - f.ValueLen; more != 0 {
		f.Ring.Refit(f.Pos, f.Header, len(w.Value), room)
		b.noteDead(f.Ring)
		if w.Kind&record.Spaced != 0 {
			b.Shared.Generations.Count(generation.Of(w.Key), 0, more)
		}
		f.ValueLen, f.Rec = len(w.Value), nil
		b.seen = max(b.seen, int32(w.Bytes))
	}
	b.Rewrites++
	b.unsure = unsure{true, f.Slot, w.Hash}
	torn.Delay()
	if f.Rec != nil {
		copy(f.Rec[f.Size+f.KeyLen:], w.Value)
	} else {
		f.Ring.Write(f.ValuePos(), w.Value)
	}
	b.unsure.on = false
	f.Ring.WriteSum(f.Pos)
	return true
}

// roomInPlace returns the bytes that the record f can have in place, including those of dead
// records behind it, and whether the write's value fits into them.
func (b *Store) roomInPlace(f *Found, w *Write) (room int, ok bool) {
	if !f.Takes(w.Times) || f.Kind.Base() != w.Kind.Base() {
		return 0, false
	}
	if f.ValueLen == len(w.Value) {
		return f.Total(), true
	}
	if b.Form.HeaderSize(f.Kind, f.KeyLen, len(w.Value), f.Deadlines) != f.Size {
		return 0, false
	}
	room, ok = f.Ring.RoomAt(f.Pos, f.Header, f.Size+f.KeyLen+len(w.Value))
	return room, ok && (room == f.Total() || !b.isWalked(f, room))
}

// isWalked reports whether a walk may continue at a dead record within the room of f. It would find
// no record there after an overwrite.
func (b *Store) isWalked(f *Found, room int) bool {
	e := &b.expirer
	return b.walks > 0 ||
		e.walking && b.Ring(e.ring) == f.Ring && e.at-f.Ring.Unwrapped(f.Pos) < uint64(room)
}

// Arrived counts a record of n bytes that was stored. Whenever these records add up to a chunk, and
// after each large one, the bucket learns from what it holds. A small bucket then counts them in
// Shared, and Arrived returns their bytes; otherwise 0.
func (b *Store) Arrived(n int) (news int) {
	b.inflow.Records++
	if b.inflow.Bytes += n; b.inflow.Bytes >= int(b.learnAt) {
		return b.takeInflow()
	}
	return 0 // inlined into each Set
}

// takeInflow is the rare part of Arrived.
//
//go:noinline
func (b *Store) takeInflow() (news int) {
	b.learn()
	if !b.Large { // the records of large buckets are counted elsewhere
		b.Shared.CountArrival(b.inflow, false)
		news = b.inflow.Bytes
	}
	b.inflow = Arrival{}
	return news
}
