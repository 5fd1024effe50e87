//go:build !purego && !ringcache_heap && !race && !asan && !msan

package ringcache

import "unsafe"

// A prefetch holds up what comes after it until its address is translated, which takes about
// as long as a miss where pages are many; but the processor translates several addresses at a
// time. So lines that nothing needs before the next Set in their bucket wait here until
// there are soonMost others, and then all are asked for together.

// soonMost is how many may wait in a lane. More gain nothing (docs/decisions.md).
const (
	soonMost  = 2
	soonShift = 6 // log2 of the size of soonLines
)

// soonLines are the lines that wait in one lane: where the first ones are, and how many.
//
// Two goroutines that have the same lane may mix each other's up: then some are not asked for, or
// some that nobody needs. Those that wait may be of a cache that is closed by now. Both
// are harmless, as a prefetch reads nothing and cannot fault.
type soonLines struct {
	waiting uint64
	at      [soonMost]struct {
		first uintptr
		n     int
	}
	_ [1<<soonShift - 8 - 16*soonMost]byte
}

var soon [1 << laneBits]soonLines

// prefetchSoon asks for n cache lines, n > 0, the first of them at p, to be written to, now
// or by one of the next calls that have the same lane.
//
//go:noescape
func prefetchSoon(p unsafe.Pointer, n int, lane uint)
