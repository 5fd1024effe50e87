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
	Key, Value  []byte
	Hash        uint64 // hash of Key
	Bytes       int    // bytes of the record, by Measure
	Expiry      uint32 // tick of the last deadline, 0: never
	Until       uint32 // tick at which it expires at the latest unless it is read; 0: no such limit
	RewriteOnly bool   // the value is there already: only its form changes
	Packed      bool   // set if nothing was done because the old value is needed and packed
	Kind        record.Kind
	Reason      Reason // why an older value is removed

	Times record.Times // deadlines of the record, by Measure

	Restored bool        // of a snapshot: it keeps the ring and the frequency below
	Ring     policy.Ring // small or main
	Freq     int
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
	switch {
	case w.Kind == record.Internal:
	case w.Kind&^record.Spaced == record.Negative:
		if w.Expiry == 0 {
			w.Expiry = math.MaxUint32 // the last possible one: it always has one
		}
		w.Times.Deadlines = record.Timed
	case s.Idles:
		// Room for two, whatever there are, so that any deadlines can be set in place.
		w.Times.Deadlines = record.Idle
	case w.Expiry != 0 || w.Until != 0:
		w.Times.Deadlines = record.Timed
	}
	d := w.Times.Deadlines
	if d != record.Timeless {
		w.Times.Expiry = clock.Earlier(s.IdleEnd(w.Expiry), w.Until)
		w.Times.Last = w.Expiry
	}
	klen, vlen := len(w.Key), len(w.Value)
	w.Bytes = s.Form.HeaderSize(w.Kind, klen, vlen, d) + klen + vlen
}
