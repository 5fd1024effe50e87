package snapshot

import (
	"encoding/binary"
	"slices"

	"github.com/klauspost/compress/s2"

	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
)

// Block is a block that is being filled: between Begin and End, the caller appends a record to
// Bytes.
type Block struct {
	Bytes   []byte // begins with room for a header
	Records int

	run    int // offset of the run that is being filled; 0: there is none
	ring   policy.Ring
	n      int    // its records
	freqs  []byte // and their frequencies
	packed []byte // a buffer
}

// Reset empties the block.
func (b *Block) Reset() {
	b.Bytes = append(b.Bytes[:0], make([]byte, BlockHeaderSize)...)
	b.Records, b.run = 0, 0
}

// Begin begins a record of a ring.
func (b *Block) Begin(in policy.Ring) {
	if in != policy.Main {
		in = policy.Small
	}
	if b.run == 0 || b.ring != in {
		b.endRun()
		b.run, b.ring, b.n, b.freqs = len(b.Bytes), in, 0, b.freqs[:0]
		b.Bytes = append(b.Bytes, make([]byte, runHeaderSize)...)
	}
}

// End ends a record that Begin has begun.
func (b *Block) End(freq int) {
	if b.n%4 == 0 {
		b.freqs = append(b.freqs, 0)
	}
	b.freqs[b.n/4] |= byte(freq&3) << (b.n % 4 * 2)
	b.n++
	b.Records++
}

// endRun completes the run that is being filled.
func (b *Block) endRun() {
	if b.run == 0 {
		return
	}
	h := b.Bytes[b.run:]
	h[0] = byte(b.ring)
	binary.LittleEndian.PutUint32(h[1:], uint32(b.n))
	binary.LittleEndian.PutUint64(h[5:], uint64(len(h)-runHeaderSize))
	b.Bytes = append(b.Bytes, b.freqs...)
	b.run = 0
}

// Finish completes the block and returns the bytes to write, which are valid until the next call.
// The body is packed if that makes it at least an eighth smaller, unless it has names. h has the
// kind and the numbers of the block.
func (b *Block) Finish(h BlockHeader, salt uint64) []byte {
	b.endRun()
	size := len(b.Bytes) - BlockHeaderSize
	h.Records, h.Size = uint32(b.Records), uint64(size)
	out := b.Bytes
	if h.Kind != kindNames && size >= leastPacked && size <= MaxBlock && b.pack() {
		out = b.packed
	}
	h.put(out, salt)
	return out
}

const leastPacked = 512 // a shorter body is not packed

// pack compresses the body into the buffer, after room for a header, and reports whether that makes
// it at least an eighth smaller.
func (b *Block) pack() bool {
	body := b.Bytes[BlockHeaderSize:]
	most := BlockHeaderSize + s2.MaxEncodedLen(len(body))
	b.packed = slices.Grow(b.packed[:0], most)[:most]
	n := len(s2.Encode(b.packed[BlockHeaderSize:], body))
	b.packed = b.packed[:BlockHeaderSize+n]
	return n < len(body)-len(body)/8
}

// Record is a record of a block.
type Record struct {
	record.Header
	At   int // its offset in the body
	Ring policy.Ring
	Freq int
}

// Each is Batches with batches of one record.
func (b *Ref) Each(body []byte, fn func(r *Record) error) error {
	return b.Batches(body, make([]Record, 1), func(rs []Record) error { return fn(&rs[0]) })
}

// Batches calls fn with the records of a block's body that are not left out, as many at a time as
// batch has room for, until fn returns an error. It returns that, or an error if the body does not
// consist of runs of valid records, as many as the block's header says.
func (b *Ref) Batches(body []byte, batch []Record, fn func(rs []Record) error) error {
	if b.IsSizes() {
		return nil
	}
	seen, have := uint64(0), 0
	for at := 0; at < len(body); {
		n, size, ok := b.parseRun(body[at:])
		if !ok {
			return corrupt(b.At, "block %d has no valid run at byte %d", b.ID, at)
		}
		freqs := body[at+runHeaderSize+size:]
		end := at + runHeaderSize + size
		rest := body[at+runHeaderSize : end]
		for i := range n {
			r := &batch[have]
			r.At, r.Ring = end-len(rest), policy.Ring(body[at])
			r.Freq = int(freqs[i/4]>>(i%4*2)) & policy.MaxFreq
			if ok = len(rest) >= 4; ok {
				r.Header, ok = record.Plain.ParseShort(rest) // nearly always
			}
			if !ok {
				r.Header, ok = record.Plain.Parse(rest)
			}
			if !ok || !b.takes(&r.Header, len(rest)) {
				return corrupt(b.At, "block %d has no valid record at byte %d", b.ID, r.At)
			}
			rest = rest[r.Total():]
			if r.Freq > 0 || !b.Skip {
				have++
			}
			if have == len(batch) {
				if err := fn(batch); err != nil {
					return err
				}
				have = 0
			}
		}
		if len(rest) > 0 {
			return corrupt(b.At, "run of block %d at byte %d has %d bytes too many", b.ID, at, len(rest))
		}
		seen += uint64(n)
		at = end + (n+3)/4
	}
	if seen != uint64(b.Records) {
		return corrupt(b.At, "block %d has %d records, not %d", b.ID, seen, b.Records)
	}
	if have > 0 {
		return fn(batch[:have])
	}
	return nil
}

// IsSizes reports whether the block has the sizes of the parts.
func (b *Ref) IsSizes() bool { return b.Kind == kindSizes }

// IsNames reports whether the records of the block are those of namespaces.
func (b *Ref) IsNames() bool { return b.Kind == kindNames }

// parseRun returns the number of records of the run at the beginning of body, and their bytes.
func (b *Ref) parseRun(body []byte) (n, size int, ok bool) {
	if len(body) < runHeaderSize || body[0] > byte(policy.Main) {
		return 0, 0, false
	}
	records := uint64(binary.LittleEndian.Uint32(body[1:]))
	bytes, rest := binary.LittleEndian.Uint64(body[5:]), uint64(len(body)-runHeaderSize)
	ok = bytes <= rest && records <= uint64(b.Records) && (records+3)/4 <= rest-bytes && records > 0
	return int(records), int(bytes), ok
}

// takes reports whether the block may have a record with header h, of at most n bytes.
func (b *Ref) takes(h *record.Header, n int) bool {
	if h.Kind.Base() == record.Packed ||
		b.IsNames() && (h.Kind != record.Value || h.KeyLen != generationSize) ||
		h.Kind&record.Spaced != 0 && h.KeyLen < generationSize {
		return false
	}
	// The length is compared first: an int of 32 bits may not hold the sum.
	return h.ValueLen <= n && h.Total() <= n && !h.Dead
}
