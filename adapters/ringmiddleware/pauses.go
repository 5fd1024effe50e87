package ringmiddleware

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// revalidateTries is the maximum number of failing revalidations during the time for which a
// response may be stale.
const revalidateTries = 8

// pauses prevent responses whose revalidation has failed from being revalidated again at once.
// Their number is fixed. Keys with the same hash share one: the later pause replaces the earlier
// one.
type pauses [1 << 8]atomic.Int64 // Unix time in nanoseconds

var pauseSeed = maphash.MakeSeed()

func (p *pauses) at(key string) *atomic.Int64 {
	return &p[maphash.String(pauseSeed, key)%uint64(len(p))]
}

func (p *pauses) begin(key string, d time.Duration) {
	p.at(key).Store(time.Now().Add(d).UnixNano())
}

func (p *pauses) holds(key string) bool { return time.Now().UnixNano() < p.at(key).Load() }
