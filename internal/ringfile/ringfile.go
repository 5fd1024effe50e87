// Package ringfile defines the format of a file that holds the rings of a cache, so that they
// outlive the process, and manages that file. Only rings are in it: the index is made anew from
// them.
//
//	head      64 KB: header, state, mark; at 4 KB the span of each ring, its tail and its head
//	extent    a directory, a word for each chunk, and the chunks; as many as needed
//	...
//
// The file is a shared mapping. Everything that a process stored before it died is in the file, so
// the order of its stores is enough to keep the file consistent; no system call is needed. Every
// word that a ring depends on contains a check of its value, and a word whose check fails is
// treated as absent.
//
// Invariants (numbers as in docs/design.md):
//
//	I14  a ring's span covers only records that are whole, or fail their checksum
//	I15  a chunk of which a span covers a byte is in the directory, under that
//	     ring and slot; one that a slot borrows, under the slot that owns it
package ringfile

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/clock"
)

const (
	// HeadSize is where the first extent begins. It and the size of an extent's
	// directory are multiples of the largest page that systems have.
	HeadSize = 64 << 10

	// Offsets in the head. Header, state and mark are in its first 512 bytes, which a disk writes as
	// a whole.
	stateAt = 256
	markAt  = 320
	spansAt = 4 << 10

	spanSize = 16 // bytes of the two words of a ring
	wordSize = 8
)

// Rings are the spans and chunks of the rings of a cache, in its mapped file. Their lock is below
// that of the pool.
type Rings struct {
	head      []byte
	chunkSize int
	grow      func(n int64) ([]byte, error)

	mu      sync.Mutex
	extents []extent
}

// extent has the chunks of one mapping, and their directory.
type extent struct {
	directory []atomic.Uint64 // a word for each chunk; 0: no ring holds it
	chunks    []byte
}

// New returns Rings with the head of a mapped file. grow makes the file n bytes longer, and
// returns these bytes, mapped and zero.
func New(head []byte, chunkSize int, grow func(n int64) ([]byte, error)) *Rings {
	return &Rings{head: head, chunkSize: chunkSize, grow: grow}
}

// SetState notes during which boot of the machine the file is in use, and whether it was closed
// cleanly: no write is under way, and everything is on the disk.
func (f *Rings) SetState(boot uint64, clean bool) {
	f.stateWord().Store(stateOf(boot, clean))
}

// IsSound reports whether the contents of the file are consistent: it was closed cleanly, or the
// machine has not been restarted since, and so has the newest bytes in its memory.
func (f *Rings) IsSound(boot uint64) bool {
	state := f.stateWord().Load()
	value, ok := checked(state, stateAt)
	return ok && (value&1 == 1 || state == stateOf(boot, false))
}

func stateOf(boot uint64, clean bool) uint64 {
	value := boot << (valueBits - clock.IDBits)
	if clean {
		value |= 1
	}
	return withCheck(value, stateAt)
}

func (f *Rings) stateWord() *atomic.Uint64 { return &words(f.head[stateAt:], 1)[0] }

// extentSizes returns the bytes of an extent of n chunks, and of its directory.
func (f *Rings) extentSizes(n uint64) (directory, all int64) {
	directory = wholePages(wordSize * (int64(n) + 1))
	return directory, directory + wholePages(int64(n)*int64(f.chunkSize))
}

// wholePages returns n rounded up to the largest page that systems have, since mappings begin at a
// page.
func wholePages(n int64) int64 { return (n + HeadSize - 1) / HeadSize * HeadSize }

// Map adds an extent of n bytes of chunks to the file, and returns these bytes.
func (f *Rings) Map(n int) ([]byte, error) {
	count := uint64(n / f.chunkSize)
	_, all := f.extentSizes(count)
	b, err := f.grow(all)
	if err != nil {
		return nil, err
	}
	// The count is stored last: only with it, the bytes are an extent.
	words(b, 1)[0].Store(withCheck(count, 0))
	return f.add(b), nil
}

// chunksOf returns the number of chunks of the extent that begins with b, or 0 if b is not the
// beginning of one.
func chunksOf(b []byte) uint64 {
	count, ok := checked(words(b, 1)[0].Load(), 0)
	if !ok {
		return 0
	}
	return count
}

// inUse reports whether the word of chunk i in a directory says that a ring holds it.
func inUse(word *atomic.Uint64, i int) (entry uint64, ok bool) {
	entry, ok = checked(word.Load(), uint64(i))
	return entry, ok && entry>>slotBits != 0
}

// add adds an extent, of which b are all bytes, and returns those of its chunks.
func (f *Rings) add(b []byte) []byte {
	count := chunksOf(b)
	directory, _ := f.extentSizes(count)
	added := extent{directory: words(b, int(count)+1)[1:],
		chunks: b[directory:][:int(count)*f.chunkSize]}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.extents = append(f.extents, added)
	return added.chunks
}

// Chunk is a chunk that a ring held when the process ended.
type Chunk struct {
	Slot uint64 // position in chunks
	chunk.Ref
	word *atomic.Uint64 // of the directory
}

// Drop notes that no ring has the chunk.
func (c Chunk) Drop() { c.word.Store(0) }

// Chunks returns the chunks of all extents: those that rings hold, by the number of the ring, and
// those that no ring holds.
func (f *Rings) Chunks() (held map[uint64][]Chunk, free []chunk.Ref) {
	held = map[uint64][]Chunk{}
	for _, r := range f.extents {
		for i := range r.directory {
			ref := chunk.RefOf(r.chunks[i*f.chunkSize:][:f.chunkSize])
			entry, ok := inUse(&r.directory[i], i)
			owner := entry >> slotBits
			if !ok {
				r.directory[i].Store(0)
				free = append(free, ref)
				continue
			}
			held[owner] = append(held[owner], Chunk{entry & (1<<slotBits - 1), ref, &r.directory[i]})
		}
	}
	return held, free
}

// slotBits is the number of bits of a slot in a directory's word; above them is the ring's number,
// from 1 on: 12 bits for the rings of 516 buckets. With 36 bits of a position, chunks of 2 KB have
// slots of 25 bits, and of the smallest that tests use of 30.
const slotBits = 30

// noRing stands in the directory as the ring of a chunk that cannot be read.
const noRing = 1<<(valueBits-slotBits) - 1

// entry returns the directory's word of a chunk, and its salt.
func (f *Rings) entry(c chunk.Ref) (word *atomic.Uint64, salt uint64) {
	at := uintptr(c.Pointer())
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.extents {
		first := chunk.RefOf(r.chunks)
		if d := at - uintptr(first.Pointer()); d < uintptr(len(r.chunks)) {
			i := d / uintptr(f.chunkSize)
			return &r.directory[i], uint64(i)
		}
	}
	panic("ringfile: chunk of no extent")
}

// Ledger notes the span and the chunks of one ring in the file. A ring in memory has a nil Ledger,
// which notes nothing. The lock of the ring's bucket guards it.
type Ledger struct {
	rings *Rings
	id    uint64 // the ring's number, from 1 on
	span  []atomic.Uint64
}

// Ledger returns the Ledger of a ring, one of the four of its bucket.
func (f *Rings) Ledger(bucket, ring int) *Ledger {
	i := 4*bucket + ring
	return &Ledger{rings: f, id: uint64(i) + 1, span: words(f.head[spansAt+i*spanSize:], 2)}
}

// ID returns the number of the ring.
func (l *Ledger) ID() uint64 { return l.id }

// SetSpan notes where the ring begins and ends. All records in between must be whole (I14).
func (l *Ledger) SetSpan(tail, head uint64) {
	if l != nil {
		l.set(0, tail)
		l.set(1, head)
	}
}

// Empty is SetSpan for an empty ring that had any other span: at no moment, a mixture of the two is
// valid.
func (l *Ledger) Empty() {
	l.span[1].Store(0)
	l.SetSpan(0, 0)
}

// SetHead is SetSpan for a ring whose tail stays.
func (l *Ledger) SetHead(head uint64) {
	if l != nil {
		l.set(1, head)
	}
}

// set writes one word of the span.
func (l *Ledger) set(i int, pos uint64) { l.span[i].Store(withCheck(pos, 2*l.id+uint64(i))) }

// Span returns where the ring begins and ends, as it was noted last.
func (l *Ledger) Span() (tail, head uint64, ok bool) {
	if l.span[0].Load()|l.span[1].Load() == 0 {
		return 0, 0, true // the span was never written: the process died before
	}
	tail, ok = checked(l.span[0].Load(), 2*l.id)
	if !ok {
		return 0, 0, false
	}
	head, ok = checked(l.span[1].Load(), 2*l.id+1)
	return tail, head, ok
}

// Hold notes that the ring has chunk c in a slot.
func (l *Ledger) Hold(c chunk.Ref, slot uint64) {
	if l != nil {
		word, salt := l.rings.entry(c)
		word.Store(withCheck(l.id<<slotBits|slot, salt))
	}
}

// Drop notes that the ring no longer has chunk c.
func (l *Ledger) Drop(c chunk.Ref) {
	if l != nil {
		word, _ := l.rings.entry(c)
		word.Store(0)
	}
}

// Holds reports whether the ring has chunk c in a slot.
func (l *Ledger) Holds(c chunk.Ref, slot uint64) bool {
	word, salt := l.rings.entry(c)
	return word.Load() == withCheck(l.id<<slotBits|slot, salt)
}

// A word of a ring file consists of a value of valueBits bits and a check in the other bits.
const valueBits = 42

// withCheck returns the word of a value. Each place has its own salt, so that a word that was
// copied to another place fails its check.
func withCheck(value, salt uint64) uint64 {
	value &= 1<<valueBits - 1
	return value | checkOf(value, salt)<<valueBits
}

// checked returns the value of a word, and whether its check is right.
func checked(word, salt uint64) (value uint64, ok bool) {
	value = word & (1<<valueBits - 1)
	return value, word == withCheck(value, salt)
}

// checkOf returns a check of 64-valueBits bits. It is never 0, so that a word that was never
// written fails.
func checkOf(value, salt uint64) uint64 {
	hi, lo := bits.Mul64(value^0x9e3779b97f4a7c15, salt*0xff51afd7ed558ccd^0xc4ceb9fe1a85ec53)
	return max((hi^lo)>>valueBits, 1)
}

// words returns the first n words of b.
func words(b []byte, n int) []atomic.Uint64 {
	_ = b[:n*wordSize]
	// Sound: b begins at a multiple of 8 bytes and has at least n words.
	return unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(b))), n)
}
