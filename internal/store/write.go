package store

import (
	"math"

	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
)

// Write is one change to one key: a record to be stored, or a removal. It is passed by pointer
// and stays on the caller's stack.
type Write struct {
	Key, Value []byte
	Hash       uint64 // hash of Key
	Bytes      int    // bytes of the record
	Expiry     uint32 // tick, 0: never
	Same       bool   // the value is there already: only its form changes
	Packed     bool   // not done: it needs the value, which is packed: to be tried again
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

// Measure counts the bytes of the record.
func (w *Write) Measure(form record.Form) {
	w.Bytes = len(w.Key) + len(w.Value)
	switch {
	case w.Negative:
		if w.Bytes += form.NegativeSize(); w.Expiry == 0 {
			w.Expiry = math.MaxUint32 // it has one: the last tick that there is
		}
	case w.Internal:
		w.Bytes += form.InternalSize()
	default:
		w.Bytes += form.HeaderSize(len(w.Key), len(w.Value), w.Expiry != 0)
	}
}
