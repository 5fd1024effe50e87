package snapshot

import (
	"encoding/binary"

	"github.com/klauspost/compress/s2"

	"github.com/ringcache/ringcache/internal/record"
)

// Block is a block that is being filled: between Begin and End, the caller appends a record to
// Bytes.
type Block struct {
	Bytes   []byte // begins with room for a header
	Records int

	run   int // offset of the run that is being filled; 0: there is none
	ring  uint8
	n     int    // its records
	freqs []byte // and their frequencies
}

// Reset empties the block.
func (b *Block) Reset() {
	b.Bytes = append(b.Bytes[:0], make([]byte, BlockHeaderSize)...)
	b.Records, b.run = 0, 0
}

// Begin begins a record of a ring, and returns its offset. A record that is not followed by End
// must be cut off again.
func (b *Block) Begin(ring uint8) (from int) {
	if b.run == 0 || b.ring != ring {
		b.endRun()
		b.run, b.ring, b.n, b.freqs = len(b.Bytes), ring, 0, b.freqs[:0]
		b.Bytes = append(b.Bytes, make([]byte, runHeaderSize)...)
	}
	return len(b.Bytes)
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
	switch {
	case b.run == 0:
		return
	case b.n == 0:
		b.Bytes = b.Bytes[:b.run]
	default:
		h := b.Bytes[b.run:]
		h[0] = b.ring
		binary.LittleEndian.PutUint32(h[1:], uint32(b.n))
		binary.LittleEndian.PutUint64(h[5:], uint64(len(h)-runHeaderSize))
		b.Bytes = append(b.Bytes, b.freqs...)
	}
	b.run = 0
}

// Finish completes the block and returns the bytes to write, which are valid until the next
// call with the same p. The body is packed if that makes it at least an eighth smaller. h has the
// kind and the numbers of the block.
func (b *Block) Finish(h BlockHeader, salt uint64, p *Packer) []byte {
	b.endRun()
	size := len(b.Bytes) - BlockHeaderSize
	h.Records, h.Size = uint32(b.Records), uint64(size)
	out := b.Bytes
	if size >= leastPacked && size <= MaxBlock && p.pack(out) {
		out = p.buf
	}
	h.put(out, salt)
	return out
}

// Packer compresses blocks with S2, one after another, into a shared buffer.
type Packer struct{ buf []byte }

const leastPacked = 512 // a shorter body is not packed

// pack compresses the body of block b into the buffer, after room for a header, and reports whether
// that makes it at least an eighth smaller.
func (p *Packer) pack(b []byte) bool {
	body := b[BlockHeaderSize:]
	if most := BlockHeaderSize + s2.MaxEncodedLen(len(body)); cap(p.buf) < most {
		p.buf = make([]byte, most)
	}
	p.buf = p.buf[:cap(p.buf)]
	n := len(s2.Encode(p.buf[BlockHeaderSize:], body))
	p.buf = p.buf[:BlockHeaderSize+n]
	return n < len(body)-len(body)/8
}

// Record is a record of a block.
type Record struct {
	record.Header
	At   int // its offset in the body
	Ring uint8
	Freq int
}

// Each calls fn with each record of a block's body that is not left out. It returns an error if the
// body does not consist of runs of valid records, as many as the block's header says.
func (b *Ref) Each(body []byte, fn func(r *Record)) error {
	if b.IsSizes() {
		return nil
	}
	seen := uint64(0)
	for at := 0; at < len(body); {
		n, size, ok := b.parseRun(body[at:])
		if !ok {
			return corrupt(b.At, "block %d has no valid run at byte %d", b.ID, at)
		}
		freqs := body[at+runHeaderSize+size:]
		r := Record{At: at + runHeaderSize, Ring: body[at]}
		end := r.At + size
		for i := range n {
			r.Freq = int(freqs[i/4] >> (i % 4 * 2) & 3)
			if r.Header, ok = b.parseRecord(body[r.At:end]); !ok {
				return corrupt(b.At, "block %d has no valid record at byte %d", b.ID, r.At)
			}
			total := r.Total() // fn may change the record
			if r.Freq > 0 || !b.Skip {
				fn(&r)
			}
			r.At += total
		}
		if r.At != end {
			return corrupt(b.At, "run of block %d at byte %d has %d bytes too many", b.ID, at, end-r.At)
		}
		seen += uint64(n)
		at = end + (n+3)/4
	}
	if seen != uint64(b.Records) {
		return corrupt(b.At, "block %d has %d records, not %d", b.ID, seen, b.Records)
	}
	return nil
}

// IsSizes reports whether the block has the sizes of the parts.
func (b *Ref) IsSizes() bool { return b.Kind == kindSizes }

// IsNames reports whether the records of the block are those of namespaces.
func (b *Ref) IsNames() bool { return b.Kind == kindNames }

// parseRun returns the number of records of the run at the beginning of body, and their bytes.
func (b *Ref) parseRun(body []byte) (n, size int, ok bool) {
	if len(body) < runHeaderSize || body[0] > Main {
		return 0, 0, false
	}
	records := uint64(binary.LittleEndian.Uint32(body[1:]))
	bytes, rest := binary.LittleEndian.Uint64(body[5:]), uint64(len(body)-runHeaderSize)
	ok = bytes <= rest && records <= uint64(b.Records) && (records+3)/4 <= rest-bytes && records > 0
	return int(records), int(bytes), ok
}

// parseRecord decodes the header of the record at the beginning of rec. It reports false if rec
// does not begin with a complete record of a kind that snapshots have.
func (b *Ref) parseRecord(rec []byte) (h record.Header, ok bool) {
	if len(rec) >= 4 {
		h, ok = record.Plain.ParseShort(rec)
	}
	if !ok {
		h, ok = record.Plain.Parse(rec)
	}
	isSpaced := h.Kind&record.Spaced != 0
	if h.Kind.Base() == record.Packed ||
		b.IsNames() && (h.Kind != record.Value || h.KeyLen != generationSize) ||
		isSpaced && h.KeyLen < generationSize {
		return h, false
	}
	// The length is compared first: an int of 32 bits may not hold the sum.
	return h, ok && h.ValueLen <= len(rec) && h.Total() <= len(rec) && !h.Dead
}
