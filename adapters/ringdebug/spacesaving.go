package ringdebug

import (
	"cmp"
	"container/heap"
	"slices"
)

// topK finds the keys with the greatest counts in a stream, in bounded memory: Space-Saving
// (Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent and Top-k Elements in Data
// Streams, ICDT 2005). A new key replaces the one with the lowest count, and inherits that count as
// its possible error. A count is therefore never too low, and too high by at most its error. Every
// key whose share of the total is above 1/room has a counter.
type topK struct {
	room  int // the maximum number of counters
	total uint64
	least leastFirst
	byKey map[string]*counter
}

// counter is a key with its count.
type counter struct {
	key   string
	count uint64 // at most this
	error uint64 // and at least this less
	at    int    // in the heap
}

// atLeast is the lower bound of the count.
func (c counter) atLeast() uint64 { return c.count - c.error }

func newTopK(room int) *topK { return &topK{room: room, byKey: make(map[string]*counter, room)} }

// add adds n to the count of the key.
func (t *topK) add(key []byte, n uint64) {
	t.total += n
	c := t.byKey[string(key)]
	switch {
	case c != nil:
	case len(t.least) < t.room:
		c = &counter{key: string(key), at: len(t.least)}
		t.byKey[c.key] = c
		t.least = append(t.least, c)
	default:
		c = t.least[0]
		delete(t.byKey, c.key)
		c.key, c.error = string(key), c.count
		t.byKey[c.key] = c
	}
	c.count += n
	heap.Fix(&t.least, c.at)
}

// top returns up to n counters, those with the highest lower bounds first.
func (t *topK) top(n int) []counter {
	all := make([]counter, 0, len(t.least))
	for _, c := range t.least {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b counter) int {
		return cmp.Or(cmp.Compare(b.atLeast(), a.atLeast()), cmp.Compare(a.key, b.key))
	})
	return all[:min(n, len(all))]
}

// leastFirst is a heap of counters.
type leastFirst []*counter

var _ heap.Interface = (*leastFirst)(nil)

func (h leastFirst) Len() int           { return len(h) }
func (h leastFirst) Less(i, j int) bool { return h[i].count < h[j].count }
func (h leastFirst) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}
func (h *leastFirst) Push(any) { panic("ringdebug: push counter: add appends") }
func (h *leastFirst) Pop() any { panic("ringdebug: pop counter: counters stay") }
