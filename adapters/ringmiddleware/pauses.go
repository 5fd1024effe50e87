package ringmiddleware

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// revalidateTries is how often a response is revalidated within the time that it may be stale, if
// each fails at once.
const revalidateTries = 8

// pauses remember in a fixed space until when what has failed is not to be revalidated again. Keys
// may share a place: then they share a pause, or one ends early.
type pauses [1 << 8]atomic.Int64 // Unix time in nanoseconds

var pauseSeed = maphash.MakeSeed()

func (p *pauses) at(key string) *atomic.Int64 {
	return &p[maphash.String(pauseSeed, key)%uint64(len(p))]
}

func (p *pauses) begin(key string, d time.Duration) {
	p.at(key).Store(time.Now().Add(d).UnixNano())
}

func (p *pauses) holds(key string) bool { return time.Now().UnixNano() < p.at(key).Load() }
