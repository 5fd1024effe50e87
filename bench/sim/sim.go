// Package sim has exact simulators of eviction policies. They hold no bytes and
// know no time, so that a trace of a million requests takes a fraction of a
// second: enough to judge an idea on all traces, and to check the real engine.
package sim

import "fmt"

// Policy is a simulated read-through cache over the keys 0, 1, ... n-1. It is for
// one goroutine.
type Policy interface {
	// Access reports whether key is held. If it is not, it is fetched and, if
	// the policy likes, kept from now on, with a weight of size.
	Access(key, size uint32) bool
	// Get is Access that fetches nothing.
	Get(key uint32) bool
	// Used returns the weight of what is held. It is never above the capacity.
	Used() int64
}

// Make returns a policy over keys keys that holds a weight of up to capacity.
type Make func(capacity int64, keys int) Policy

// MaxFreq is where the frequency of an entry stays: it has 2 bits.
const MaxFreq = 3

// entries is what every policy knows about its keys.
type entries struct {
	size     []uint32 // 0 for what is not held
	used     int64
	count    int
	capacity int64
}

func newEntries(capacity int64, keys int) entries {
	return entries{size: make([]uint32, keys), capacity: capacity}
}

// Used returns the weight of what is held.
func (e *entries) Used() int64 { return e.used }

func (e *entries) holds(key uint32) bool { return e.size[key] > 0 }

// fits reports whether an entry can be kept at all.
func (e *entries) fits(size uint32) bool { return int64(size) <= e.capacity }

// full reports whether an entry of that size needs room to be made.
func (e *entries) full(size uint32) bool { return e.used+int64(size) > e.capacity }

func (e *entries) add(key, size uint32) {
	e.size[key] = size
	e.used += int64(size)
	e.count++
}

func (e *entries) remove(key uint32) {
	e.used -= int64(e.size[key])
	e.size[key] = 0
	e.count--
}

// read notes in freq that a key, which is held, was read. It reports true.
func read(freq []uint8, key uint32) bool {
	freq[key] = min(freq[key]+1, MaxFreq)
	return true
}

// queue is a first-in first-out queue of keys.
type queue struct {
	keys       []uint32 // length is a power of two
	tail, head uint64   // next to leave, next to come
}

func (q *queue) len() int { return int(q.head - q.tail) }

func (q *queue) push(key uint32) {
	if q.len() == len(q.keys) {
		q.grow()
	}
	q.keys[q.head&uint64(len(q.keys)-1)] = key
	q.head++
}

func (q *queue) pop() uint32 {
	key := q.keys[q.tail&uint64(len(q.keys)-1)]
	q.tail++
	return key
}

func (q *queue) grow() {
	old := *q
	q.keys = make([]uint32, max(16, 2*len(old.keys)))
	for i := old.tail; i < old.head; i++ {
		q.keys[i&uint64(len(q.keys)-1)] = old.keys[i&uint64(len(old.keys)-1)]
	}
}

// Result is what a replay counts.
type Result struct {
	Requests, Hits   int64
	Bytes, HitsBytes int64 // weights of the requests
}

// Ratio returns the share of requests that were hits, in percent.
func (r Result) Ratio() float64 { return percent(r.Hits, r.Requests) }

// ByteRatio returns the same of the requests' weights.
func (r Result) ByteRatio() float64 { return percent(r.HitsBytes, r.Bytes) }

func percent(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// Add counts one request.
func (r *Result) Add(hit bool, size uint32) {
	r.Requests++
	r.Bytes += int64(size)
	if hit {
		r.Hits++
		r.HitsBytes += int64(size)
	}
}

func (r Result) String() string {
	return fmt.Sprintf("%d of %d requests, %.2f %%", r.Hits, r.Requests, r.Ratio())
}
