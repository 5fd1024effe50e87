package ring

import (
	"encoding/binary"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/record"
)

// How a ring gives up bytes at its tail, and chunks.

// Release gives up the n oldest bytes, and the chunks that the tail leaves.
func (r *Ring) Release(n uint64) {
	shift := r.shift & 63 // the mask tells the compiler that it is below 64
	leave := (r.Tail&(1<<shift-1) + n) >> shift
	if r.ledger != nil {
		if leave > 0 && r.borrowed { // the tail leaves the chunk to the head
			r.ledger.Hold(*r.entry(r.Tail), r.slotOf(r.Tail+uint64(r.mapped-1)<<shift))
		}
		r.ledger.SetSpan((r.Tail+n)&r.Mask, r.Head()) // before another ring has the chunks
	}
	for i := range leave {
		r.drop(r.Tail + i<<shift)
	}
	if r.Tail += n; r.Tail > r.Mask {
		r.Tail &= r.Mask
		r.turns++
	}
	r.Size -= n
}

// ReleaseDead releases the dead record at the tail.
func (r *Ring) ReleaseDead(h record.Header) {
	r.DeadBytes -= h.Total()
	r.Release(uint64(h.Total()))
}

// drop empties the first slot that holds a chunk, which is that of pos. A head that has borrowed
// the chunk, as in a full ring, keeps it; else it goes back to the pool.
func (r *Ring) drop(pos uint64) {
	if r.borrowed {
		r.borrowed = false // the chunk is now the head's own
		*r.entry(pos) = chunk.Ref{}
	} else {
		r.put(pos)
	}
	r.mapped--
}

// put returns the chunk in the slot of pos to the pool.
func (r *Ring) put(pos uint64) {
	at := r.entry(pos)
	r.ledger.Drop(*at)
	r.pool.Put(*at)
	*at = chunk.Ref{}
}

// Trim returns the chunk of an empty ring to the pool.
func (r *Ring) Trim() {
	for pos := r.Tail; r.mapped > 0; pos += 1 << r.shift {
		r.drop(pos)
	}
}

// Reset returns all chunks to the pool. Positions continue from the head, so that all slots of the
// index become stale.
func (r *Ring) Reset() {
	r.Release(r.Size)
	r.Trim()
	r.Counts = Counts{}
}

// Close drops all chunks, which are released with the pool.
func (r *Ring) Close() {
	r.mapped, r.borrowed, r.Size = 0, false, 0
	r.table.Fill(chunk.NoChunk)
	r.Counts = Counts{}
}

// SetTimes changes the deadlines of the record at pos, which has room for them. The caller must
// call WriteSum once the record is complete.
func (r *Ring) SetTimes(pos uint64, h record.Header, t record.Times) {
	var buf [2 * record.DeadlineSize]byte
	t.Deadlines = h.Deadlines
	r.Write(pos+uint64(h.TimesAt()), t.Put(&buf))
}

// Times returns the deadlines of the record at pos. For a reader without the lock, the last
// deadline may be torn.
//
//go:norace
func (r *Ring) Times(pos uint64, h record.Header) record.Times {
	t := record.Times{Deadlines: h.Deadlines, Expiry: h.Expiry}
	if h.Deadlines == record.Idle {
		var buf [record.DeadlineSize]byte
		if b, ok := r.Read(buf[:0], pos+uint64(h.LastAt()), len(buf)); ok {
			t.Last = binary.LittleEndian.Uint32(b)
		}
	}
	return t
}

// A ring is worth compacting if 1/compactShare of its bytes are dead: at most compactShare-1 bytes
// are then moved, on average, to reclaim one.
const compactShare = 16

// WorthCompacting reports whether so many bytes of the ring are dead that it is worth moving
// the live records.
func (r *Ring) WorthCompacting() bool {
	return r.DeadBytes > 0 && uint64(r.DeadBytes)*compactShare >= r.Size
}
