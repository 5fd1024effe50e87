package store

import (
	"math"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
)

// Write is one change to one key: a record to be stored, or a removal. It is passed by pointer
// and stays on the caller's stack.
type Write struct {
	Key, Value []byte
	Hash       uint64 // hash of Key
	Bytes      int    // bytes of the record
	Expiry     uint32 // tick of the last deadline, 0: never
	Until      uint32 // tick at which it expires at the latest unless it is read; 0: no such limit
	Same       bool   // the value is there already: only its form changes
	Packed     bool   // set if nothing was done because the old value is needed and packed
	Kind       record.Kind
	Reason     Reason // why an older value is removed

	restored bool        // set by Restore: it keeps the ring and frequency below, and its key is new
	ring     policy.Ring // of a restored record
	freq     int         // of a restored record
}

// why returns the reason that OnRemove gets for the older value.
func (w *Write) why() Reason {
	if w.Same {
		return Unsaid
	}
	return w.Reason
}

// isNegative reports whether the write is of a negative entry, which has an expiry and no value.
func (w *Write) isNegative() bool { return w.Kind.Base() == record.Negative }

// times returns the deadlines of a write's record, which begin now.
func (s *Shared) times(w *Write) record.Times {
	d := s.deadlines(w)
	if d == record.Timeless {
		return record.Times{}
	}
	expiry := clock.Earlier(s.IdleEnd(w.Expiry), w.Until)
	return record.Times{Deadlines: d, Expiry: expiry, Last: w.Expiry}
}

// deadlines returns how many deadlines a write's record has room for. If the cache has an idle
// time, each of a user's values has room for two, so that any deadlines can be set in place.
func (s *Shared) deadlines(w *Write) record.Deadlines {
	switch {
	case w.Kind.Base() == record.Internal:
		return record.Timeless
	case s.Idles() && !w.isNegative():
		return record.Idle
	case w.Expiry != 0 || w.Until != 0 || w.isNegative():
		return record.Timed
	}
	return record.Timeless
}

// Measure sets Bytes, and gives a negative entry without an expiry the last possible one: its
// header always has one.
func (w *Write) Measure(s *Shared) {
	form := s.Form
	w.Bytes = len(w.Key) + len(w.Value)
	switch w.Kind.Base() {
	case record.Negative:
		if w.Bytes += form.NegativeSize(); w.Expiry == 0 {
			w.Expiry = math.MaxUint32
		}
	case record.Internal:
		w.Bytes += form.InternalSize()
	default:
		w.Bytes += form.HeaderSize(len(w.Key), len(w.Value), s.deadlines(w))
	}
}
