// Package ring implements a byte stream over a circular table of chunks.
//
// Records are appended at the head and released at the tail; a record may cross
// the end of a chunk.
//
//	slot    0      1      2      3      4 ...
//	     [     ][ tail][     ][ head][     ]        chunks in slots 1, 2, 3
//	     [     ][ tail][     ][     ][ head]        slot 4 borrows the chunk of slot 1
//
// A ring of n chunks can use all of its bytes: when it is full, the head and the tail are in the
// same chunk. The head's slot borrows the chunk from the tail's slot, n slots before it, and the
// head writes to the part that the tail has left. The number of chunks that a ring may hold can
// change at any time, so that rings and index share a bucket's memory.
//
// A ring is guarded by its bucket's lock. An optimistic reader, which validates the bucket's
// sequence afterwards, may call the methods marked norace: their results may be torn, but they stay
// within mapped memory and return.
//
// Invariants (numbers as in docs/design.md):
//
//	I1  size <= held*chunkSize while a chunk is borrowed, so that the head
//	    never overtakes the tail inside it
//	I2  the slots of all live bytes hold a chunk; no two slots hold the same
//	    one but the tail's and a borrowing head's
//	I3  size is less than a quarter of the position space
package ring

import (
	"sync/atomic"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringfile"
	"github.com/ringcache/ringcache/internal/torn"
)

// Ring is a ring. It must be initialized with Init.
type Ring struct {
	index.Window
	table    chunk.Table   // a circle of slots
	circle   atomic.Uint32 // its length, a power of two, less one
	shift    uint8         // log2 of the chunk size
	lines    uint8         // cache lines of a typical record that are worth a prefetch
	form     record.Form
	borrowed bool   // the last slot that holds a chunk holds that of the first
	mapped   int32  // slots from the tail's on that hold a chunk
	turns    uint32 // times that the tail has passed the end of the position space

	pool   *chunk.Pool
	ledger *ringfile.Ledger // nil: the ring is in memory only
	seed   uint64           // of checksums
	Counts
}

// Counts describe the records of a ring.
type Counts struct {
	Entries    int // records that are not dead
	EntryBytes int
	Expiring   int // of those, the ones with room for an expiry
	DeadBytes  int // of the records that are dead
}

// Init sets the pool of an empty ring, the logarithm of its chunk size, and the number of bits of a
// position.
func (r *Ring) Init(p *chunk.Pool, shift uint8, posBits uint) {
	r.pool = p
	r.table.Init(&chunk.NoChunk)
	r.lines = 1
	r.shift = shift
	r.Mask = 1<<posBits - 1
}

// InFile makes an empty ring keep its records in a file, each with a checksum, so that they survive
// the death of the process.
func (r *Ring) InFile(l *ringfile.Ledger, seed uint64) {
	r.form, r.ledger, r.seed = record.Checked, l, seed
}

// Form returns the form of the ring's records.
func (r *Ring) Form() record.Form { return r.form }

// Held returns the number of chunks that the ring has from the pool.
func (r *Ring) Held() int {
	if r.borrowed {
		return int(r.mapped) - 1
	}
	return int(r.mapped)
}

// Chunks returns the chunks in the slots from the tail's on, the borrowed one twice.
func (r *Ring) Chunks() (all []chunk.Ref) {
	for i := range uint64(r.mapped) {
		all = append(all, *r.entry(r.Tail + i<<r.shift))
	}
	return all
}

// Fits reports whether the ring has room for n more bytes, if it may hold limit chunks.
func (r *Ring) Fits(n, limit int) bool {
	return r.Size+uint64(n) <= uint64(max(limit, r.Held()))<<(r.shift&63)
}

// Borrows reports whether the head's chunk is the tail's: Extend may take a chunk in its place, in
// addition to those that the record needs.
func (r *Ring) Borrows() bool { return r.borrowed }

// Left returns the number of writable bytes after the head. It is 0 while the head's chunk is
// borrowed.
func (r *Ring) Left() int {
	if r.borrowed {
		return 0
	}
	return int(r.mapped)<<(r.shift&31) - int(r.Tail&(1<<(r.shift&31)-1)) - int(r.Size)
}

// entry returns the slot of pos. The circle is shorter than the position space (I3), so bits above
// those of a position do not matter.
//
//go:norace
func (r *Ring) entry(pos uint64) *chunk.Ref {
	return r.table.At(uint32(pos>>(r.shift&63)) & r.circle.Load())
}

// Run returns the bytes from pos to the end of its chunk. It returns nil to a late reader if the
// chunk is gone.
//
//go:norace
func (r *Ring) Run(pos uint64) []byte {
	c := r.entry(pos).Pointer()
	if c == nil {
		return nil
	}
	size := uint32(1) << (r.shift & 31) // the mask tells the compiler that shift is below 32
	at := uint32(pos) & (size - 1)
	// Sound: a chunk has so many bytes, and stays mapped as long as the ring can be reached.
	return unsafe.Slice((*byte)(unsafe.Add(c, at)), size-at)
}

// Unwrapped returns the position of a live record as a number that goes on growing where positions
// start again at 0, so that no other record of the ring ever has the same number.
//
//go:norace
func (r *Ring) Unwrapped(pos uint64) uint64 {
	return uint64(r.turns)*(r.Mask+1) + r.Tail + (pos-r.Tail)&r.Mask
}

// Extend makes the n bytes after the head writable, where Fits(n, limit). On an error nothing is
// lost, and the chunks that were taken go back, but for one in place of a borrowed one: the next
// record may be a shorter one.
func (r *Ring) Extend(n uint64, limit int) error {
	if r.borrowed && !r.Fits(int(n), 0) {
		if err := r.separate(); err != nil {
			return err
		}
	}
	shift := r.shift & 63 // the mask tells the compiler that it is below 64
	had, need := r.mapped, int32(((r.Tail&(1<<shift-1))+r.Size+n-1)>>shift)+1
	for r.mapped < need {
		if int(r.mapped) == r.table.Len() {
			r.growTable()
		}
		at := r.entry(r.Tail + uint64(r.mapped)<<r.shift)
		if r.Held() >= limit && r.mapped > 0 {
			*at = *r.entry(r.Tail)
			r.borrowed = true
		} else {
			c, err := r.pool.Chunk()
			if err != nil {
				for r.mapped > had {
					r.mapped--
					r.put(r.Tail + uint64(r.mapped)<<r.shift)
				}
				return err
			}
			*at = c
			r.ledger.Hold(c, r.slotOf(r.Tail+uint64(r.mapped)<<r.shift))
		}
		r.mapped++
	}
	return nil
}

// separate replaces the chunk that the head borrows by one that it owns. Otherwise a ring
// that may now hold more chunks than when it borrowed would still count as full (I1).
func (r *Ring) separate() error {
	c, err := r.pool.Chunk()
	if err != nil {
		return err
	}
	last := r.Tail&^(1<<r.shift-1) + uint64(r.mapped-1)<<r.shift
	at := r.entry(last)
	if head := r.Tail + r.Size; head > last { // else nothing is in the slot yet
		n := uint32(head - last)
		copy(c.Bytes(0, n), at.Bytes(0, n))
	}
	*at = c
	r.borrowed = false
	r.ledger.Hold(c, r.slotOf(last)) // after the copy: until then the slot is the tail's (I15)
	return nil
}

// slotOf returns the number of a position's slot, which identifies it in a file.
func (r *Ring) slotOf(pos uint64) uint64 { return pos & r.Mask >> r.shift }

// growTable doubles the circle. Positions keep their bits.
func (r *Ring) growTable() {
	n := max(4, 2*r.table.Len())
	refs := make([]chunk.Ref, n)
	for i := range r.mapped {
		pos := r.Tail + uint64(i)<<r.shift
		refs[pos>>r.shift&uint64(n-1)] = *r.entry(pos)
	}
	r.table.Replace(refs) // before its length: see chunk.Table
	r.circle.Store(uint32(n - 1))
}

// Append writes a record at the head, where Extend has made room, and returns its position. A
// memory fault while key or value is read leaves the ring as it was. A record that is whole may be
// passed as the header.
func (r *Ring) Append(header, key, value []byte) uint64 {
	pos := r.Head()
	n := len(header) + len(key) + len(value)
	if b := r.Run(pos); len(b) >= n {
		if len(header) == record.ShortHeader { // nearly always: avoids the call
			b[0], b[1], b[2] = header[0], header[1], header[2]
		} else {
			copy(b, header)
		}
		b = b[len(header):]
		copy(b[copy(b, key):], value)
	} else {
		at := r.Write(pos, header)
		at = r.Write(at, key)
		r.Write(at, value)
	}
	r.Size += uint64(n)
	if r.ledger != nil {
		r.WriteSum(pos)
		r.ledger.SetHead(r.Head())
	}
	return pos
}

// AppendPlain is Append for a plain record that is complete.
func (r *Ring) AppendPlain(rec []byte) {
	if b := r.Run(r.Head()); len(b) >= len(rec) {
		copy(b, rec)
	} else {
		r.Write(r.Head(), rec)
	}
	r.Size += uint64(len(rec))
}

// Write copies p to the bytes from pos on, over as many chunks as it takes,
// and returns the position after them.
func (r *Ring) Write(pos uint64, p []byte) uint64 {
	for len(p) > 0 {
		n := copy(r.Run(pos), p)
		p = p[n:]
		pos += uint64(n)
	}
	return pos
}

// CopyFrom appends the n bytes at pos of another ring, and returns their position.
func (r *Ring) CopyFrom(src *Ring, pos uint64, n int) uint64 {
	head := r.Head()
	r.Size += uint64(n)
	for at := head; n > 0; {
		b := src.Run(pos)
		b = b[:min(n, len(b))]
		at = r.Write(at, b)
		pos += uint64(len(b))
		n -= len(b)
	}
	r.ledger.SetHead(r.Head())
	return head
}

// Count adds a record of n bytes to the counts of records that are not dead, or subtracts it if
// sign is -1.
func (c *Counts) Count(sign, n int, expires bool) {
	c.Entries += sign
	c.EntryBytes += sign * n
	if expires {
		c.Expiring += sign
	}
}

// Read appends the n bytes from pos on to dst. It reports false to a late reader if the bytes are
// gone.
//
//go:norace
func (r *Ring) Read(dst []byte, pos uint64, n int) ([]byte, bool) {
	for n > 0 {
		b := r.Run(pos)
		if len(b) == 0 {
			return dst, false
		}
		b = b[:min(n, len(b))]
		dst = torn.Append(dst, b)
		n -= len(b)
		pos += uint64(len(b))
	}
	return dst, true
}

// Equal reports whether the bytes from pos on begin with p.
//
//go:norace
func (r *Ring) Equal(pos uint64, p []byte) bool {
	for len(p) > 0 {
		b := r.Run(pos)
		n := min(len(p), len(b))
		if n == 0 || !torn.Equal(b[:n], p[:n]) {
			return false
		}
		p = p[n:]
		pos += uint64(n)
	}
	return true
}

// Hash returns the xxhash of the n bytes from pos on.
func (r *Ring) Hash(pos uint64, n int) uint64 {
	if b := r.Run(pos); len(b) >= n {
		return xxhash.Sum64(b[:n])
	}
	var d xxhash.Digest
	d.Reset()
	for n > 0 {
		b := r.Run(pos)
		b = b[:min(n, len(b))]
		d.Write(b) // never fails
		n -= len(b)
		pos += uint64(len(b))
	}
	return d.Sum64()
}

// Header decodes the header of the record at pos. It reports false if no record within the ring can
// begin there.
func (r *Ring) Header(pos uint64) (record.Header, bool) {
	if b := r.Run(pos); len(b) >= 4 {
		if h, ok := r.form.ParseShort(b); ok { // nearly all are short
			return h, uint64(h.Total()) <= r.Age(pos)
		}
	}
	return r.AnyHeader(pos)
}

// AnyHeader is Header without its fast path, for headers of every form that may span chunks. It
// copies the header before it decodes it, as an optimistic reader must.
//
//go:norace
func (r *Ring) AnyHeader(pos uint64) (record.Header, bool) {
	var buf [record.MaxHeader]byte
	age := r.Age(pos)
	b, ok := r.Read(buf[:0], pos, int(min(uint64(len(buf)), age)))
	if !ok {
		return record.Header{}, false
	}
	h, ok := r.form.Parse(b)
	return h, ok && uint64(h.Total()) <= age
}

// Kill marks the record at pos dead.
func (r *Ring) Kill(pos uint64) {
	record.Kill(r.Run(pos))
	if r.ledger != nil {
		r.clearSum(pos)
	}
}

// Prefetch prefetches the lines of a typical record at pos.
func (r *Ring) Prefetch(pos uint64) { r.PrefetchRecord(r.Run(pos)) }

// PrefetchRecord prefetches the lines of a typical record. rec is the rest of the chunk, from the
// record on.
//
//go:norace
func (r *Ring) PrefetchRecord(rec []byte) {
	// Sound: nothing is read, and a prefetch cannot fault.
	chunk.Prefetch(unsafe.Pointer(unsafe.SliceData(rec)), int(r.lines))
}

// PrefetchHead prefetches the lines of the head's chunk that the next record will be written to. In
// a full ring, they also contain the oldest records.
func (r *Ring) PrefetchHead() {
	// The head's own line was written just now, so the next one is prefetched.
	if b := r.Run(r.Head()); len(b) > chunk.LineSize {
		// Sound: as in PrefetchRecord.
		chunk.PrefetchWrite(unsafe.Pointer(&b[chunk.LineSize]), int(r.lines))
	}
}

// Expect sets the length of a typical record. At most maxLines of a record are prefetched: the
// processor's own prefetchers take over from there.
func (r *Ring) Expect(size int) {
	const maxLines = 4
	r.lines = uint8(min((size+chunk.LineSize/2-1)/chunk.LineSize+1, maxLines))
}
