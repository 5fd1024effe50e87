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
	Until      uint32 // tick at which it expires at the latest unless it is read, 0: as Options say
	Same       bool   // the value is there already: only its form changes
	Packed     bool   // set by the store: not done, as it needs the value, which is packed
	Negative   bool   // a negative entry instead of a value; it has an expiry
	Internal   bool   // a record of the cache's own
	Unstored   bool   // nothing was stored, and that is no error
	Reason     Reason // why an older value is removed

	restored bool        // it goes where it was in another cache, and its key is not there
	ring     policy.Ring // of a restored one: its ring
	freq     int         // and its frequency
}

// why returns the reason that OnRemove is told for the older value.
func (w *Write) why() Reason {
	if w.Same {
		return Unsaid
	}
	return w.Reason
}

// times returns the deadlines of a write's record, which begin now.
func (s *Shared) times(w *Write) record.Times {
	d := s.deadlines(w)
	if d == record.Timeless {
		return record.Times{}
	}
	expiry := clock.Earlier(s.IdleEnd(w.Expiry), w.Until)
	return record.Times{Deadlines: d, Expiry: expiry, Last: w.Expiry}
}

// deadlines returns how many deadlines a write's record has room for. Where there is an idle time,
// each of a user's values has two: so it can be given any other where it lies.
func (s *Shared) deadlines(w *Write) record.Deadlines {
	switch {
	case w.Internal:
		return record.Timeless
	case s.Idles() && !w.Negative:
		return record.Idle
	case w.Expiry != 0 || w.Until != 0 || w.Negative:
		return record.Timed
	}
	return record.Timeless
}

// Measure counts the bytes of the record, and gives a negative entry the expiry that it needs.
func (w *Write) Measure(s *Shared) {
	form := s.Form
	w.Bytes = len(w.Key) + len(w.Value)
	switch {
	case w.Negative:
		if w.Bytes += form.NegativeSize(); w.Expiry == 0 {
			w.Expiry = math.MaxUint32 // it has one: the last tick that there is
		}
	case w.Internal:
		w.Bytes += form.InternalSize()
	default:
		w.Bytes += form.HeaderSize(len(w.Key), len(w.Value), s.deadlines(w))
	}
}
