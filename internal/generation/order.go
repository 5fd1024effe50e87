package generation

import "sync"

// Order holds the hashes of the keys of a generation's entries, oldest first. It is used for
// namespaces with a quota, which evict their oldest entries when they are full. Hashes of entries
// that were removed for other reasons stay in it until they are the oldest. Each hash takes 8
// bytes, without pointers. The zero value is empty. Its lock is the last in the lock order.
type Order struct {
	mu     sync.Mutex
	hashes []uint64 // a ring; its length is zero or a power of two
	first  int      // of the oldest
	n      int
}

const leastOrder = 64 // words

// Push adds the hash of the newest entry.
func (o *Order) Push(h uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n == len(o.hashes) {
		o.resize(max(leastOrder, 2*o.n))
	}
	o.hashes[(o.first+o.n)&(len(o.hashes)-1)] = h
	o.n++
}

// Pop removes and returns the hash of the oldest entry, or reports false if there is none.
func (o *Order) Pop() (h uint64, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n == 0 {
		return 0, false
	}
	h = o.hashes[o.first]
	o.first = (o.first + 1) & (len(o.hashes) - 1)
	o.n--
	if len(o.hashes) > leastOrder && o.n < len(o.hashes)/4 {
		o.resize(len(o.hashes) / 2)
	}
	return h, true
}

// Len returns the number of hashes.
func (o *Order) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n
}

// Reset removes all hashes.
func (o *Order) Reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hashes, o.first, o.n = nil, 0, 0
}

// resize changes the length of the ring to n words.
func (o *Order) resize(n int) {
	hashes := make([]uint64, n)
	for i := range o.n {
		hashes[i] = o.hashes[(o.first+i)&(len(o.hashes)-1)]
	}
	o.hashes, o.first = hashes, 0
}
