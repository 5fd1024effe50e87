package chunk

import (
	"sync/atomic"
	"unsafe"
)

// Table is an array of references that readers look into without a lock. It only
// ever becomes longer: a reader that has seen a length finds at least so many
// entries, whatever was done since, if the owner stores a longer array before the
// greater length. An entry changes as one word. Init makes it ready for use.
type Table struct {
	first atomic.Pointer[Ref]
	len   int32
}

// none is where a reader looks who came before there was an entry.
var none Ref

// Init makes the table empty. Its entry 0 may be read, and is zero.
func (t *Table) Init() { t.first.Store(&none) }

// Len returns how many entries there are.
func (t *Table) Len() int { return int(t.len) }

// At returns entry i, which is below a length that the table has had.
//
//go:norace
func (t *Table) At(i uint32) *Ref {
	// Sound: the array has been at least so long ever since.
	return (*Ref)(unsafe.Add(unsafe.Pointer(t.first.Load()), uintptr(i)*unsafe.Sizeof(Ref{})))
}

// Replace makes refs the entries. There are at least as many as before.
func (t *Table) Replace(refs []Ref) {
	t.first.Store(unsafe.SliceData(refs))
	t.len = int32(len(refs))
}

// closed is where readers look who come after Close: nothing ever is there. It is as
// large as the largest page, a chunk where the system's pages have 64 KB.
var closed [MaxSize / 8]uint64

// Close has all entries lead to empty memory, so that none keeps its own alive.
func (t *Table) Close() {
	// Sound: it is a variable of the package, which never moves.
	nothing := RefOf(unsafe.Slice((*byte)(unsafe.Pointer(&closed)), 8*len(closed)))
	for i := range uint32(t.len) {
		*t.At(i) = nothing
	}
}

// Clear empties all entries. The table keeps its length.
func (t *Table) Clear() {
	for i := range uint32(t.len) {
		*t.At(i) = Ref{}
	}
}
