package ringmiddleware

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// While the handler fails for a response that may be served stale, it is called again after a pause
// of firstPause, which is doubled with each failure, up to a fraction of the time for which the
// response may be stale.
const (
	firstPause = time.Second
	pauseTries = 8
)

// pauses are those of the responses for which the handler has failed. Their number is fixed: keys
// with the same hash share a place, and the later pause replaces the earlier one.
type pauses [1 << 8]atomic.Pointer[pause]

type pause struct {
	key    string
	length time.Duration
	until  time.Time
}

var pauseSeed = maphash.MakeSeed()

// at returns the place of a key, and its pause or nil.
func (p *pauses) at(key string) (*atomic.Pointer[pause], *pause) {
	place := &p[maphash.String(pauseSeed, key)%uint64(len(p))]
	now := place.Load()
	if now != nil && now.key != key {
		now = nil
	}
	return place, now
}

// begin begins a pause after a failure.
func (p *pauses) begin(key string, most time.Duration) {
	place, last := p.at(key)
	length := firstPause
	if last != nil {
		length = 2 * last.length
	}
	length = min(length, most)
	place.Store(&pause{key, length, time.Now().Add(length)})
}

// end forgets the failures of a key.
func (p *pauses) end(key string) {
	if place, last := p.at(key); last != nil {
		place.CompareAndSwap(last, nil)
	}
}

// holds reports whether the handler must not be called yet. When a pause is over, one caller may.
func (p *pauses) holds(key string) bool {
	place, last := p.at(key)
	if last == nil {
		return false
	}
	now := time.Now()
	next := &pause{key, last.length, now.Add(last.length)}
	return now.Before(last.until) || !place.CompareAndSwap(last, next)
}
