// Package stripe counts lookups on cache lines that cores rarely share.
//
// A counter that all cores write moves its cache line from core to core, which
// takes longer than the lookup. So each goroutine counts in one of a few dozen
// stripes, chosen by the address of its stack, and a reader adds them up.
package stripe

import (
	"sync/atomic"
	"unsafe"
)

const (
	countBits  = 6
	stackShift = 11                 // log2 of the smallest stack
	mix        = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
)

// Counter is a stripe: two cache lines, since processors fetch them in pairs.
type Counter struct {
	Hits      atomic.Uint64
	Misses    atomic.Uint64
	FalseHits atomic.Uint64 // Hits that turned out to have no value
	Locked    atomic.Uint64 // times that lookups took the lock
	Negative  atomic.Uint64 // Misses that found a negative entry
	Stale     atomic.Uint64 // expired values that were returned
	Sets      atomic.Uint64 // Sets and Dels of a namespace; buckets count those of a cache
	Dels      atomic.Uint64
	_         [128 - 8*8]byte
}

// Counters are the stripes of one cache. The zero value is ready for use.
type Counters [1 << countBits]Counter

// Here returns the calling goroutine's counter. Two goroutines may share one:
// it is atomic.
func (c *Counters) Here() *Counter {
	var here byte
	// Sound: the address is used only as a number, and never converted back to a pointer.
	addr := uint64(uintptr(unsafe.Pointer(&here)) >> stackShift)
	return &c[addr*mix>>(64-countBits)]
}

// Sums are the sums of the stripes.
type Sums struct{ Lookups, Misses, Locked, Negative, Stale, Sets, Dels uint64 }

// Sum adds up the stripes, which may change meanwhile. No sum is ever lower than in an earlier
// call. A hit is counted as lost only after it was counted as a hit, so there are never more misses
// than lookups.
func (c *Counters) Sum() (s Sums) {
	for i := range c {
		n := &c[i]
		missed := n.Misses.Load()
		s.Lookups += missed
		s.Misses += missed + n.FalseHits.Load()
		s.Locked += n.Locked.Load()
		s.Negative += n.Negative.Load()
		s.Stale += n.Stale.Load()
		s.Sets += n.Sets.Load()
		s.Dels += n.Dels.Load()
	}
	for i := range c {
		s.Lookups += c[i].Hits.Load()
	}
	return s
}
