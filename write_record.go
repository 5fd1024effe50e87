package ringcache

import (
	"math"

	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
)

// Write is one change to one key: a record to be stored, or a removal. It is passed by pointer
// and stays on the caller's stack.
type Write struct {
	k, v     []byte
	h        uint64 // hash of k
	n        int    // bytes of the record
	expiry   uint32 // tick, 0: never
	same     bool   // the value is there already: only its form changes
	packed   bool   // not done: it needs the value, which is packed: to be tried again
	negative bool   // a negative entry instead of a value; it has an expiry
	internal bool   // a record of the cache's own
	unstored bool   // nothing was stored, and that is no error
	reason   Reason // why an older value is removed

	restored bool        // it goes where it was in another cache, and its key is not there
	in       policy.Ring // of a restored one: its ring
	freq     int         // and its frequency
}

// why returns the reason that OnRemove is told for the older value.
func (w *Write) why() Reason {
	if w.same {
		return Unsaid
	}
	return w.reason
}

// measure counts the bytes of the record.
func (w *Write) measure(form record.Form) {
	w.n = len(w.k) + len(w.v)
	switch {
	case w.negative:
		if w.n += form.NegativeSize(); w.expiry == 0 {
			w.expiry = math.MaxUint32 // it has one: the last tick that there is
		}
	case w.internal:
		w.n += form.InternalSize()
	default:
		w.n += form.HeaderSize(len(w.k), len(w.v), w.expiry != 0)
	}
}
