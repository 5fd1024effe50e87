// Package generation determines which namespace a key belongs to, and whether its generation is
// still valid.
//
// Every key of a namespace begins with the namespace's generation, a random word of 8 bytes, and
// its record says that it does. Resetting a namespace gives it a new generation, and the entries of
// the old one are then forgotten: so is every generation that is not in the table.
package generation

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"sync/atomic"
)

// Size is the length of a generation in a key.
const Size = 8

// Of returns the generation with which a key begins.
func Of(k []byte) uint64 { return binary.LittleEndian.Uint64(k) }

// Usage is what a generation is used for. It counts the entries that have it, and their bytes.
type Usage struct {
	Name           string // of its namespace; set before the table is shared
	Entries, Bytes atomic.Int64
	forgotten      atomic.Bool
}

// Table holds the generations that are in use, and those of forgotten ones that have entries left.
// It is made by New. Lookups take no lock.
type Table struct {
	InUse     atomic.Bool   // the table has or had a generation
	Forgotten atomic.Uint64 // generations that have been forgotten
	live      atomic.Pointer[circle]

	mu   sync.Mutex
	used int // number of places that are not empty
}

// circle is an open-addressed table. Its length is a power of two, and at least half of it is
// empty.
type circle []place

type place struct {
	generation atomic.Uint64 // 0: empty
	usage      *Usage        // set before the generation
}

// New returns an empty table.
func New() *Table {
	t := new(Table)
	empty := make(circle, 16)
	t.live.Store(&empty)
	return t
}

// Make returns a new generation of the namespace with a name, which no entry has, and its usage.
func (t *Table) Make(name string) (uint64, *Usage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		var b [Size]byte
		_, _ = rand.Read(b[:]) // never fails
		if g := Of(b[:]); g != 0 && t.Of(g) == nil {
			return g, t.add(g, name)
		}
	}
}

// Enter returns the usage of a generation that was found in a file, under no name if it is new.
func (t *Table) Enter(g uint64) *Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u := t.Of(g); u != nil {
		return u
	}
	return t.add(g, "")
}

// Forget marks a generation; its entries are then forgotten.
func (t *Table) Forget(g uint64) {
	if u := t.Of(g); u != nil && !u.forgotten.Swap(true) {
		t.Forgotten.Add(1)
	}
}

// Keep forgets all generations but those that keep reports true for.
func (t *Table) Keep(keep func(g uint64) bool) {
	t.mu.Lock()
	all := *t.live.Load()
	t.mu.Unlock()
	for i := range all {
		if g := all[i].generation.Load(); g != 0 && !keep(g) {
			t.Forget(g)
		}
	}
}

// Of returns the usage of a generation, or nil if the table does not have it.
func (t *Table) Of(g uint64) *Usage {
	all := *t.live.Load()
	if g == 0 {
		return nil
	}
	for i := g & uint64(len(all)-1); ; i = (i + 1) & uint64(len(all)-1) {
		switch all[i].generation.Load() {
		case g:
			return all[i].usage
		case 0:
			return nil
		}
	}
}

// IsForgotten reports whether entries of a generation are forgotten.
func (t *Table) IsForgotten(g uint64) bool {
	u := t.Of(g)
	return u == nil || u.forgotten.Load()
}

// Count adds entries and bytes to the counts of a generation.
func (t *Table) Count(g uint64, entries, bytes int) {
	if u := t.Of(g); u != nil {
		u.Entries.Add(int64(entries))
		u.Bytes.Add(int64(bytes))
	}
}

// add enters a generation, under the lock.
func (t *Table) add(g uint64, name string) *Usage {
	t.InUse.Store(true)
	if all := *t.live.Load(); 2*(t.used+1) > len(all) {
		t.rebuild()
	}
	t.used++
	u := &Usage{Name: name}
	(*t.live.Load()).put(g, u)
	return u
}

// put enters a generation that is not in the table.
func (c circle) put(g uint64, u *Usage) {
	i := g & uint64(len(c)-1)
	for c[i].generation.Load() != 0 {
		i = (i + 1) & uint64(len(c)-1)
	}
	c[i].usage = u // before lookups can find it
	c[i].generation.Store(g)
}

// rebuild makes room for twice the generations that it keeps: those in use, and forgotten ones that
// have entries, whose namespace is still to be named to OnRemove.
func (t *Table) rebuild() {
	old := *t.live.Load()
	keep := func(p *place) bool {
		return p.generation.Load() != 0 &&
			!(p.usage.forgotten.Load() && p.usage.Entries.Load() == 0)
	}
	t.used = 0
	for i := range old {
		if keep(&old[i]) {
			t.used++
		}
	}
	size := 16
	for size < 4*(t.used+1) {
		size *= 2
	}
	all := make(circle, size)
	for i := range old {
		if p := &old[i]; keep(p) {
			all.put(p.generation.Load(), p.usage)
		}
	}
	t.live.Store(&all)
}
