package refcache

import (
	"fmt"
	"sort"
	"sync/atomic"
)

// Clock orders the begin and end of operations of all goroutines.
type Clock struct{ now atomic.Uint64 }

// Tick returns the next instant; no two calls return the same.
func (c *Clock) Tick() uint64 { return c.now.Add(1) }

// Kind tells what an operation did to its key.
type Kind uint8

const (
	Write  Kind = iota // wrote Version
	Remove             // deleted the key
	Read               // found Version; a read that missed proves nothing and is not recorded
)

// Op is one finished operation on a key.
type Op struct {
	Kind       Kind
	Version    uint64 // unique among the writes of one key
	Begin, End uint64 // instants of one Clock, taken just outside the call
}

func (o Op) String() string {
	name := [...]string{Write: "write", Remove: "remove", Read: "read"}[o.Kind]
	if o.Kind == Remove {
		return fmt.Sprintf("%s [%d,%d]", name, o.Begin, o.End)
	}
	return fmt.Sprintf("%s version %d [%d,%d]", name, o.Version, o.Begin, o.End)
}

// CheckHistory returns an error for the first read in ops, the operations of
// one key in any order, that cannot be explained. A read of version v is
// explained if the write of v began before the read ended and no other write
// or removal lies wholly between the end of that write and the begin of the
// read.
func CheckHistory(ops []Op) error {
	var changes []Op // writes and removals
	writes := make(map[uint64]Op)
	for _, o := range ops {
		if o.Kind == Read {
			continue
		}
		changes = append(changes, o)
		if o.Kind == Write {
			writes[o.Version] = o
		}
	}
	sort.Slice(changes, func(i, j int) bool { return changes[i].Begin < changes[j].Begin })
	first := firstEnds(changes)
	for _, r := range ops {
		if r.Kind != Read {
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
func firstEnds(changes []Op) []int {
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
