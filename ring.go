package ringcache

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// A ring is a byte stream over a circle of chunk slots. Records are appended
// at the head and released at the tail; a record may cross the end of a chunk.
//
// A position is the number of bytes appended before it, cut to posBits bits.
// Its low part is the offset in the circle of slots; the high part counts the
// times that writing has started over at the circle's beginning, and is the
// generation. A position is alive if it lies between tail and head.
//
//	 slot    0      1      2      3      4 ...
//	      [     ][ tail][     ][ head][     ]        chunks in slots 1, 2, 3
//	      [     ][ tail][     ][     ][ head]        slot 4 borrows the chunk of slot 1
//
// A ring that may hold n chunks is full to the last byte when n*chunkSize bytes
// are alive. The head then follows the tail within one chunk: the slot of the
// head borrows the chunk of the slot of the tail, n slots behind, and writes
// the part of it that the tail has left. How many chunks a ring may hold can
// change at any time, so rings and index share a bucket's memory.
//
// Invariants (numbers as in docs/design.md):
//
//	I1  size <= held*chunkSize while a chunk is borrowed, so that the head
//	    never overtakes the tail inside it
//	I2  the slots of all alive bytes hold a chunk; no two slots hold the same
//	    one but the tail's and a borrowing head's
//	I3  size is less than a quarter of the position space

// window is the alive part of a ring's position space.
type window struct {
	tail uint64 // position of the oldest alive byte
	size uint64 // alive bytes
	mask uint64 // 1<<posBits - 1
}

// head returns the position after the newest alive byte.
func (w *window) head() uint64 { return (w.tail + w.size) & w.mask }

// alive reports whether the byte at pos has been neither released nor is yet
// to be written. A stale position says so as long as fewer than 1<<posBits
// bytes have been appended since (I5).
func (w *window) alive(pos uint64) bool { return (pos-w.tail)&w.mask < w.size }

// gone returns the bytes released since the stale record at pos was.
func (w *window) gone(pos uint64) uint64 { return (w.tail - pos) & w.mask }

// age returns the bytes appended since the record at pos was.
func (w *window) age(pos uint64) uint64 { return (w.head() - pos) & w.mask }

// ring is a byte ring over chunks of a pool. It is guarded by its bucket's lock.
type ring struct {
	window
	slots    []chunkRef // circle of slots; its length is a power of two
	mapped   int32      // slots from the tail's on that hold a chunk
	borrowed bool       // the last of them holds the chunk of the first
	shift    uint8      // log2 of the chunk size
	lines    uint8      // cache lines that a typical record may touch
	last     uint8      // where the last byte of it is that is asked for, from its first
	guess    uint16     // length that nearly all values have (lengths); 0 if there is none

	pool      *chunkPool
	live      int // records that are not dead
	liveBytes int
	timed     int      // of them, those with room for an expiry
	spent     int      // bytes of records with room for an expiry that are dead
	_         [24]byte // what lookups read is in the first of two cache lines
}

func (r *ring) init(p *chunkPool, shift uint8, posBits uint) {
	r.pool = p
	r.shift = shift
	r.mask = 1<<posBits - 1
}

// held returns how many chunks the ring has from the pool.
func (r *ring) held() int {
	if r.borrowed {
		return int(r.mapped) - 1
	}
	return int(r.mapped)
}

// room returns how many bytes may be alive at once when the ring may hold
// limit chunks.
func (r *ring) room(limit int) uint64 {
	if r.borrowed || limit < r.held() {
		limit = r.held()
	}
	return uint64(limit) << r.shift
}

// slot returns where the chunk of pos is found in the circle, which is shorter than
// the position space (I3): what is above a position does not matter.
func (r *ring) slot(pos uint64) int {
	return int(pos>>(r.shift&63)) & (len(r.slots) - 1)
}

// run returns the bytes from pos to the end of its chunk.
func (r *ring) run(pos uint64) []byte {
	size := uint32(1) << (r.shift & 31) // as it is: the compiler does not know
	return chunkBytes(&r.slots[r.slot(pos)], uint32(pos)&(size-1), size)
}

// left returns how many bytes behind the head are writable. It is 0 where the tail is in the way.
func (r *ring) left() int {
	if r.borrowed {
		return 0
	}
	return int(r.mapped)<<(r.shift&31) - int(r.tail&(1<<(r.shift&31)-1)) - int(r.size)
}

// extend makes the n bytes after the head writable. The caller has seen to it
// that size+n <= room(limit). On an error nothing is lost, and chunks that were
// taken serve the next record.
func (r *ring) extend(n uint64, limit int) error {
	need := int32(((r.tail&(1<<r.shift-1))+r.size+n-1)>>r.shift) + 1
	for r.mapped < need {
		if int(r.mapped) == len(r.slots) {
			r.growSlots()
		}
		at := r.slot(r.tail + uint64(r.mapped)<<r.shift)
		if r.held() >= limit && r.mapped > 0 {
			r.slots[at] = r.slots[r.slot(r.tail)]
			r.borrowed = true
		} else {
			c, err := r.pool.chunk()
			if err != nil {
				return err
			}
			r.slots[at] = c
		}
		r.mapped++
	}
	return nil
}

// growSlots doubles the circle. Positions keep their bits; only the border
// between offset and generation moves.
func (r *ring) growSlots() {
	old := *r
	r.slots = make([]chunkRef, max(4, 2*len(old.slots)))
	for i := range old.mapped {
		pos := r.tail + uint64(i)<<r.shift
		r.slots[r.slot(pos)] = old.slots[old.slot(pos)]
	}
}

// append writes the parts of a record at the head and returns its position.
// extend has made room for them.
func (r *ring) append(header, key, value []byte) uint64 {
	pos := r.head()
	n := len(header) + len(key) + len(value)
	if b := r.run(pos); len(b) >= n {
		if len(header) == shortHeader { // as nearly always: spare the call
			b[0], b[1], b[2] = header[0], header[1], header[2]
		} else {
			copy(b, header)
		}
		copy(b[len(header):], key)
		copy(b[len(header)+len(key):], value)
	} else {
		at := r.write(pos, header)
		at = r.write(at, key)
		r.write(at, value)
	}
	r.size += uint64(n)
	return pos
}

// write copies p to the bytes from pos on, over as many chunks as it takes,
// and returns the position after them.
func (r *ring) write(pos uint64, p []byte) uint64 {
	for len(p) > 0 {
		n := copy(r.run(pos), p)
		p = p[n:]
		pos += uint64(n)
	}
	return pos
}

// copyFrom appends the n bytes from pos of another ring on.
func (r *ring) copyFrom(src *ring, pos uint64, n int) {
	at := r.head()
	r.size += uint64(n)
	for n > 0 {
		b := src.run(pos)
		b = b[:min(n, len(b))]
		at = r.write(at, b)
		pos += uint64(len(b))
		n -= len(b)
	}
}

// count adds a record of n bytes to those that are not dead, or takes it out if
// sign is -1.
func (r *ring) count(sign, n int, timed bool) {
	r.live += sign
	r.liveBytes += sign * n
	if timed {
		r.timed += sign
	}
}

// read appends the n bytes from pos on to dst.
func (r *ring) read(dst []byte, pos uint64, n int) []byte {
	for n > 0 {
		b := r.run(pos)
		b = b[:min(n, len(b))]
		dst = append(dst, b...)
		n -= len(b)
		pos += uint64(len(b))
	}
	return dst
}

// equal reports whether the bytes from pos on begin with p.
func (r *ring) equal(pos uint64, p []byte) bool {
	for len(p) > 0 {
		b := r.run(pos)
		n := min(len(p), len(b))
		if string(b[:n]) != string(p[:n]) {
			return false
		}
		p = p[n:]
		pos += uint64(n)
	}
	return true
}

// hash returns the xxhash of the n bytes from pos on.
func (r *ring) hash(pos uint64, n int) uint64 {
	if n == 0 {
		return xxhash.Sum64(nil) // there may be no chunk at pos
	}
	if b := r.run(pos); len(b) >= n {
		return xxhash.Sum64(b[:n])
	}
	var d xxhash.Digest
	d.Reset()
	for n > 0 {
		b := r.run(pos)
		b = b[:min(n, len(b))]
		d.Write(b) // never fails
		n -= len(b)
		pos += uint64(len(b))
	}
	return d.Sum64()
}

// header decodes the header of the record at pos. It reports false if no
// record that lies in the ring can begin there.
func (r *ring) header(pos uint64) (header, bool) {
	b := r.run(pos)
	if len(b) >= 4 {
		if h, ok := parseShort(b); ok { // as nearly all are
			return h, uint64(h.total()) <= r.age(pos)
		}
	}
	return r.headerAny(pos, b)
}

// headerAny is header for records of every form. b are the bytes up to the chunk's end.
func (r *ring) headerAny(pos uint64, b []byte) (header, bool) {
	if len(b) < maxHeader {
		// The chunk ends inside the longest header: gather what there is.
		var buf [maxHeader]byte
		left := int(min(maxHeader, r.age(pos)))
		b = r.read(buf[:0], pos, left)
	}
	h, ok := parseHeader(b)
	return h, ok && uint64(h.total()) <= r.age(pos)
}

// kill sets the dead bit of the record at pos.
func (r *ring) kill(pos uint64) { r.run(pos)[0] |= deadBit }

// setExpiry gives the record at pos, whose header has room for it, another
// expiry.
func (r *ring) setExpiry(pos uint64, h header, expiry uint32) {
	var b [expirySize]byte
	binary.LittleEndian.PutUint32(b[:], expiry)
	r.write(pos+uint64(h.expiryAt()), b[:])
}

// releaseDead releases the dead record at the tail.
func (r *ring) releaseDead(h header) {
	if h.timed {
		r.spent -= h.total()
	}
	r.release(uint64(h.total()))
}

// release gives up the n oldest bytes, and the chunks that the tail leaves.
func (r *ring) release(n uint64) {
	leave := ((r.tail & (1<<r.shift - 1)) + n) >> r.shift
	for i := range leave {
		r.drop(r.slot(r.tail + i<<r.shift))
	}
	r.tail = (r.tail + n) & r.mask
	r.size -= n
}

// drop empties the first slot that holds a chunk.
func (r *ring) drop(at int) {
	if r.borrowed {
		r.borrowed = false // the chunk is now the head's own
	} else {
		r.pool.put(r.slots[at])
	}
	r.slots[at] = chunkRef{}
	r.mapped--
}

// trim gives the chunk of an empty ring back.
func (r *ring) trim() {
	for pos := r.tail; r.mapped > 0; pos += 1 << r.shift {
		r.drop(r.slot(pos))
	}
}

// reset gives all chunks back. Positions go on from the head, so that what the
// index still knows is stale.
func (r *ring) reset() {
	r.trim()
	r.tail = r.head()
	r.size = 0
	r.slots = nil
	r.live, r.liveBytes, r.timed, r.spent = 0, 0, 0, 0
}

// prefetch asks for n lines from pos on, as far as its chunk is concerned.
func (r *ring) prefetch(pos uint64, n int) {
	prefetchAt(&r.slots[r.slot(pos)], uintptr(pos&(1<<r.shift-1)), n)
}

// expect says how long a typical record is. The small ones are in one line, and of
// long ones maxLines are asked for: the processor's own prefetchers take over from there.
func (r *ring) expect(size int) {
	const maxLines = 4
	r.lines, r.last = uint8(min(size/cacheLine+2, maxLines)), uint8(min(max(size, 1), maxLines*cacheLine)-1)
	if size <= cacheLine/2 {
		r.lines, r.last = 1, 0
	}
}

// note notes the lines of the record at pos, to be asked for later.
func (r *ring) note(at *lines, pos uint64) {
	at.chunk = r.slots[r.slot(pos)]
	at.off, at.n = uint32(pos&(1<<r.shift-1)), uint32(r.lines)
}

// prefetchNext asks for n lines behind the one at pos, which is to be waited
// for: the others may come meanwhile.
func (r *ring) prefetchNext(pos uint64) {
	if off := pos&(1<<r.shift-1) + cacheLine; off < 1<<r.shift {
		prefetchAt(&r.slots[r.slot(pos)], uintptr(off), int(r.lines)-1)
	}
}

// cacheLine is the size of a cache line on the processors that matter most.
const cacheLine = 64

// prefetchHead asks for the n lines that the next record will be written to,
// as far as the head's chunk is concerned. In a full ring the oldest records
// lie there too.
func (r *ring) prefetchHead() {
	head := r.head()
	// The head's own line has been written just now; the next one is asked for.
	if off := head&(1<<r.shift-1) + cacheLine; off > cacheLine && off < 1<<r.shift {
		prefetchWriteAt(&r.slots[r.slot(head)], uintptr(off), int(r.lines))
	}
}
