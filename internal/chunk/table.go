package chunk

import (
	"sync/atomic"
	"unsafe"
)

// Sizes.
const (
	MaxSize  = 64 << 10 // of a chunk
	LineSize = 64       // of a cache line, on the processors that matter most
)

// Table is an array of references that readers look into without a lock. It never becomes shorter:
// a reader that has loaded a length finds at least so many entries, whatever has happened since,
// because the owner stores the longer array before the greater length. An entry is a single word.
// The table must be initialized with Init.
type Table struct {
	first atomic.Pointer[Ref]
	len   int32
}

// NoChunk and ZeroPage are what readers find in a table of chunks, or of pages, that is empty. The
// page stays zero. It is as large as the largest one, which is a whole chunk on systems with pages
// of 64 KB.
var (
	NoChunk Ref
	// Sound: it is a variable of the package, which never moves.
	ZeroPage = RefOf(unsafe.Slice((*byte)(unsafe.Pointer(&zeros)), 8*len(zeros)))

	zeros [MaxSize / 8]uint64
)

// Init makes the table empty. Its entry 0 may be read, and is *none.
func (t *Table) Init(none *Ref) { t.first.Store(none) }

// Len returns the number of entries.
func (t *Table) Len() int { return int(t.len) }

// At returns entry i; i must be less than a length that the table has had.
//
//go:norace
func (t *Table) At(i uint32) *Ref {
	// Sound: the array has been at least so long ever since.
	return (*Ref)(unsafe.Add(unsafe.Pointer(t.first.Load()), uintptr(i)*unsafe.Sizeof(Ref{})))
}

// Replace makes refs the entries. They must not be fewer than before.
func (t *Table) Replace(refs []Ref) {
	t.first.Store(unsafe.SliceData(refs))
	t.len = int32(len(refs))
}

// Bytes returns the bytes of the chunk or page at r between two offsets. The offsets are in order,
// and at most its size.
func (r *Ref) Bytes(from, to uint32) []byte {
	// Sound: r was made from a slice of at least so many bytes (RefOf), and its memory stays mapped
	// as long as r can be reached.
	return unsafe.Slice((*byte)(unsafe.Add(r.Pointer(), from)), to-from)
}

// Fill makes all entries the same. The table keeps its length.
func (t *Table) Fill(r Ref) {
	for i := range uint32(t.len) {
		*t.At(i) = r
	}
}
