package ringtest

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"sync/atomic"
)

// HistoryClock orders the begin and end of operations of all goroutines.
type HistoryClock struct{ now atomic.Uint64 }

// Tick returns the next instant; no two calls return the same.
func (c *HistoryClock) Tick() uint64 { return c.now.Add(1) }

// historyKind tells what an operation did to its key.
type historyKind uint8

const (
	opWrote   historyKind = iota // wrote Version
	opRemoved                    // deleted the key
	opRead                       // found Version
	opMissed                     // found nothing: a fault only where nothing is dropped
)

// historyOp is one finished operation on a key.
type historyOp struct {
	Kind       historyKind
	Version    uint64 // unique among the writes of one key
	Begin, End uint64 // instants of one HistoryClock, taken just outside the call
}

func (o historyOp) String() string {
	names := [...]string{opWrote: "write", opRemoved: "remove", opRead: "read", opMissed: "miss"}
	name := names[o.Kind]
	if o.Kind == opRemoved || o.Kind == opMissed {
		return fmt.Sprintf("%s [%d,%d]", name, o.Begin, o.End)
	}
	return fmt.Sprintf("%s version %d [%d,%d]", name, o.Version, o.Begin, o.End)
}

// checkHistory returns an error for the first read in ops, the operations of
// one key in any order, that cannot be explained. A read of version v is
// explained if the write of v began before the read ended and no other write
// or removal lies wholly between the end of that write and the begin of the
// read.
func checkHistory(ops []historyOp) error {
	var changes []historyOp // writes and removals
	writes := make(map[uint64]historyOp)
	for _, o := range ops {
		if o.Kind == opRead || o.Kind == opMissed {
			continue
		}
		changes = append(changes, o)
		if o.Kind == opWrote {
			writes[o.Version] = o
		}
	}
	sort.Slice(changes, func(i, j int) bool { return changes[i].Begin < changes[j].Begin })
	first := firstEnds(changes)
	for _, r := range ops {
		if r.Kind != opRead {
			continue
		}
		w, ok := writes[r.Version]
		if !ok {
			return fmt.Errorf("%v: nobody wrote that version", r)
		}
		if w.Begin > r.End {
			return fmt.Errorf("%v: it was written only later, %v", r, w)
		}
		after := sort.Search(len(changes), func(i int) bool { return changes[i].Begin > w.End })
		if c := first[after]; c >= 0 && changes[c].End < r.Begin {
			return fmt.Errorf("%v: stale, %v had been followed by %v", r, w, changes[c])
		}
	}
	return nil
}

// firstEnds returns, for each i in [0, len(changes)], the index of the change
// that ends first among changes[i:], or -1 if there is none.
func firstEnds(changes []historyOp) []int {
	first := make([]int, len(changes)+1)
	first[len(changes)] = -1
	for i := len(changes) - 1; i >= 0; i-- {
		first[i] = i
		if next := first[i+1]; next >= 0 && changes[next].End < changes[i].End {
			first[i] = next
		}
	}
	return first
}

// checkMisses returns an error for the first miss in ops that only a dropped entry
// explains: a write lies wholly before it, and no removal may have come between the
// two.
func checkMisses(ops []historyOp) error {
	var writes, removals []historyOp // by their end
	for _, o := range ops {
		switch o.Kind {
		case opWrote:
			writes = append(writes, o)
		case opRemoved:
			removals = append(removals, o)
		}
	}
	byEnd := func(a, b historyOp) int { return cmp.Compare(a.End, b.End) }
	slices.SortFunc(writes, byEnd)
	slices.SortFunc(removals, byEnd)
	last := slices.Clone(writes) // for each, the one up to there that began last
	for i := range last[min(1, len(last)):] {
		if last[i].Begin > last[i+1].Begin {
			last[i+1] = last[i]
		}
	}
	first := slices.Clone(removals) // for each, the one from there on that began first
	for i := len(first) - 2; i >= 0; i-- {
		if first[i+1].Begin < first[i].Begin {
			first[i] = first[i+1]
		}
	}
	for _, r := range ops {
		if r.Kind != opMissed {
			continue
		}
		n := sort.Search(len(writes), func(i int) bool { return writes[i].End >= r.Begin })
		if n == 0 {
			continue // no write lies before it
		}
		w := last[n-1]
		n = sort.Search(len(removals), func(i int) bool { return removals[i].End > w.Begin })
		if n == len(removals) || first[n].Begin > r.End {
			return fmt.Errorf("%v: %v had been before, and nothing removed it", r, w)
		}
	}
	return nil
}
