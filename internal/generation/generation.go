// Package generation determines which namespace a key belongs to, and whether its generation is
// still valid.
//
// Every key of a namespace begins with the namespace's generation, a random word of 8 bytes, and
// its record says that it does. Resetting a namespace gives it a new generation, and the entries of
// the old one are then forgotten: so is every generation that is not in the table.
package generation

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// Size is the length of a generation in a key.
const Size = 8

// Of returns the generation with which a key begins.
func Of(k []byte) uint64 { return binary.LittleEndian.Uint64(k) }

// Usage is what a generation is used for. It counts the entries that have it, and their bytes.
type Usage struct {
	Name           string // of its namespace; set before any entry has the generation
	Entries, Bytes atomic.Int64
	forgotten      atomic.Bool
}

// Table holds the generations that are in use, and those of forgotten ones that have entries left,
// whose namespace is still to be named to OnRemove. The zero value is ready for use. Lookups take
// no lock.
type Table struct {
	InUse     atomic.Bool   // the table has or had a generation, or the cache has a file of them
	Forgotten atomic.Uint64 // generations that have been forgotten
	mu        sync.Mutex    // held while a forgotten one enters or leaves the table
	usages    sync.Map      // *Usage by generation
}

// Make returns a new generation of the namespace with a name, which no entry has.
func (t *Table) Make(name string) uint64 {
	g := rand.Uint64()
	for t.Of(g) != nil {
		g = rand.Uint64()
	}
	t.Enter(g).Name = name
	return g
}

// Enter returns the usage of a generation, and adds it to the table if it is new.
func (t *Table) Enter(g uint64) *Usage {
	t.InUse.Store(true)
	u, _ := t.usages.LoadOrStore(g, new(Usage))
	return u.(*Usage)
}

// Forget marks a generation; its entries are then forgotten.
func (t *Table) Forget(g uint64) {
	if u := t.Of(g); u != nil && !u.forgotten.Swap(true) {
		t.Forgotten.Add(1)
		t.CountIn(u, g, 0, 0)
	}
}

// Clear removes all generations from the table, whose entries are then forgotten.
func (t *Table) Clear() { t.usages.Clear() }

// Of returns the usage of a generation, or nil if the table does not have it.
func (t *Table) Of(g uint64) *Usage {
	u, _ := t.usages.Load(g)
	of, _ := u.(*Usage)
	return of
}

// Entries returns the number of entries of all generations.
func (t *Table) Entries() (n int) {
	t.usages.Range(func(_, u any) bool {
		n += int(u.(*Usage).Entries.Load())
		return true
	})
	return n
}

// IsForgotten reports whether entries with this usage are forgotten: nil has left the table.
func (u *Usage) IsForgotten() bool { return u == nil || u.forgotten.Load() }

// Count adds entries and bytes to the counts of a generation that is in the table.
func (t *Table) Count(g uint64, entries, bytes int) {
	if u := t.Of(g); u != nil {
		t.CountIn(u, g, entries, bytes)
	}
}

// CountIn adds entries and bytes to the counts of generation g, whose usage is u. A forgotten one
// is in the table only as long as it has entries: a Set that found it in use may add one later.
func (t *Table) CountIn(u *Usage, g uint64, entries, bytes int) {
	u.Bytes.Add(int64(bytes))
	n := u.Entries.Add(int64(entries))
	if !u.forgotten.Load() || entries < 0 && n != 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if u.Entries.Load() == 0 {
		t.usages.Delete(g)
	} else {
		t.usages.Store(g, u)
	}
}
