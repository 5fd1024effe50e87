package ring

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringfile"
)

// What only a ring in a file needs: checksums, and recovery after the death of its process.

// WriteSum writes the checksum of the record at pos, in a ring whose records have one. It must be
// written again after each change of the record; if the process dies in between, the record fails
// its checksum (I14).
func (r *Ring) WriteSum(pos uint64) {
	if r.ledger == nil {
		return
	}
	h, _ := r.Header(pos)
	r.putSum(pos+uint64(h.SumAt()), r.sum(pos, h))
}

// clearSum zeroes the checksum of the record at pos: a dead record must not come back, even if
// its dead bit is lost.
func (r *Ring) clearSum(pos uint64) {
	if h, ok := r.AnyHeader(pos); ok {
		r.putSum(pos+uint64(h.SumAt()), 0)
	}
}

func (r *Ring) putSum(at uint64, sum uint32) {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], sum)
	r.Write(at, b[:])
}

// Plain appends the record at pos, with header h, to dst as it would be in a ring in memory:
// without a checksum.
func (r *Ring) Plain(dst []byte, pos uint64, h record.Header) []byte {
	n := h.Total()
	if r.form == record.Checked {
		at := h.SumAt()
		dst, _ = r.Read(dst, pos, at)
		pos, n = pos+uint64(at+record.SumSize), n-at-record.SumSize
	}
	dst, _ = r.Read(dst, pos, n)
	return dst
}

// IsWhole reports whether the checksum of the record at pos, with header h, is correct. In memory
// none is needed.
func (r *Ring) IsWhole(pos uint64, h record.Header) bool {
	if r.ledger == nil {
		return true
	}
	var buf [record.SumSize]byte
	b, _ := r.Read(buf[:0], pos+uint64(h.SumAt()), len(buf))
	return binary.LittleEndian.Uint32(b) == r.sum(pos, h)
}

// sum returns the checksum of the record at pos, with header h.
func (r *Ring) sum(pos uint64, h record.Header) uint32 {
	at := h.SummedAt()
	return h.Sum(r.Hash(pos+uint64(at), h.Total()-at), r.seed)
}

// Restore gives an empty ring the state that it had when its process died; chunks are those that it
// held. It returns the chunks that it does not use, which are all of them if something is missing.
func (r *Ring) Restore(chunks []ringfile.Chunk) (unused []chunk.Ref, ok bool) {
	tail, head, ok := r.ledger.Span()
	if ok = ok && tail|head <= r.Mask; ok {
		ok = r.place(tail, (head-tail)&r.Mask, chunks)
	}
	if ok {
		r.ledger.SetSpan(tail, head) // the process may have died before it wrote one
	} else {
		r.Tail = 0
		r.ledger.Empty()
	}
	held := make(map[chunk.Ref]bool, len(chunks))
	for _, ref := range r.Chunks() {
		held[ref] = true
	}
	for _, c := range chunks {
		if !held[c.Ref] {
			c.Drop()
			unused = append(unused, c.Ref)
		}
	}
	return unused, ok
}

// place puts the chunks that contain the size bytes from tail on into their slots. If there is none
// for the first slot or the last one, that shares the chunk of the other (I15).
func (r *Ring) place(tail, size uint64, chunks []ringfile.Chunk) bool {
	r.Tail = tail
	if size == 0 {
		return true
	}
	bySlot := make(map[uint64]chunk.Ref, len(chunks))
	for _, c := range chunks {
		bySlot[c.Slot] = c.Ref
	}
	last := (tail&(1<<r.shift-1) + size - 1) >> r.shift
	if last > uint64(len(chunks)) {
		return false
	}
	refs := make([]chunk.Ref, max(4, 1<<bits.Len64(last)))
	shared := false
	for i := range last + 1 {
		pos := tail + i<<r.shift
		ref, there := bySlot[r.slotOf(pos)]
		if !there && (i == 0 || i == last) && size <= last<<r.shift { // I1
			ref, there = bySlot[r.slotOf(tail+(last-i)<<r.shift)]
			shared = there
			if there && i == 0 { // the process died before the tail had left it to the head
				r.ledger.Hold(ref, r.slotOf(pos))
			}
		}
		if !there {
			return false
		}
		refs[pos>>r.shift&uint64(len(refs)-1)] = ref
	}
	r.table.Replace(refs)
	r.circle.Store(uint32(len(refs) - 1))
	r.mapped, r.Size, r.borrowed = int32(last+1), size, shared
	return true
}

// CutOff makes pos the head, and gives up the bytes after it: no record begins there.
func (r *Ring) CutOff(pos uint64) {
	r.Size = (pos - r.Tail) & r.Mask
	r.ledger.SetHead(pos)
}

// ValidateFile returns an error if the file does not describe the ring as it is. It is for tests.
func (r *Ring) ValidateFile() error {
	if r.ledger == nil {
		return nil
	}
	tail, head, ok := r.ledger.Span()
	if !ok || tail != r.Tail || head != r.Head() {
		return fmt.Errorf("I14: from %d to %d in the file (valid: %v), from %d to %d in memory",
			tail, head, ok, r.Tail, r.Head())
	}
	for i, c := range r.Chunks() {
		slot := r.slotOf(r.Tail + uint64(i)<<r.shift)
		if borrowed := r.borrowed && i == int(r.mapped)-1; !borrowed && !r.ledger.Holds(c, slot) {
			return fmt.Errorf("I15: the file does not know the chunk of slot %d", slot)
		}
	}
	return nil
}
