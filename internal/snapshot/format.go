// Package snapshot defines the format of a snapshot, the content of a cache in a file or a stream.
// It deals with bytes and readers, not with caches and files.
//
// A snapshot is a header, blocks in any order, those of names first, and an end mark, which is a
// block too. All numbers are little endian, on every platform.
//
//	header 136  "ringsnap" | mark 4 | version 4 | policy 1, flags 1, 0 6 | salt 8 |
//	            bound 8 | entries 8 | bytes 8 | ttl 8 | ahead 8 | saved 8 | since boot 8 | boot 8 |
//	            program 8 | hash secret 16 | idle 8 | checksum 8
//	block   56  "rblk" | kind 1, rank 1, 0 2 | id 4 | entries 4 | length 8 | unpacked 8 |
//	            unread 8 | checksum of the body 8 | checksum of these 48 bytes 8 | body
//	end    160  blocks 8 | entries 8 | flags 8 | a copy of the header (the body of an end mark)
//	names       the names of namespaces: entries whose values are generations of 8 bytes
//	entry       meta 1 | length of key, of value (uvarints) | expiry 8, end of the idle time 8,
//	            where meta says so | key | value
//
// A body whose length differs from its unpacked length is packed: it is an S2 block, which begins
// with a length of its own.
//
// The checksums of blocks are XXH64 with the salt as seed. The salt is random, so that those who
// choose the content of a cache cannot make a value that looks like a block. The blocks of a
// snapshot are numbered from 0, so that missing and repeated blocks are detected; the end mark has
// the next number.
//
// In every version, the header's length, mark, version and checksum are in the same places.
package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/s2"
)

const (
	// Version is the version that is written, and the only one that is read. No release wrote
	// versions 1 and 2.
	Version = 3

	// MaxBlock is the maximum length of a block, unless it holds a single entry that is longer.
	MaxBlock = 1 << 20

	HeaderSize      = 136
	BlockHeaderSize = 56
	endSize         = 24 + HeaderSize

	// MinEntry is the minimum size of an entry.
	MinEntry = 3

	maxKey = 1<<16 - 1

	headerMagic = "ringsnap"
	blockMagic  = "rblk"
	orderMark   = 0x01020304
)

// A rank tells how old an entry is in its ring. The ranks of the small ring come first, and within
// a ring those near the tail, so loading blocks in order of rank fills both rings in the order that
// they had.
const (
	Ranks      = 16
	SmallRanks = 4
)

// ErrCorrupt is wrapped by all errors about the content of a snapshot. ErrVersion is wrapped by the
// error for an unknown version of the format, or a version other than the program's.
var (
	ErrCorrupt = errors.New("data is corrupt")
	ErrVersion = errors.New("data is of another version")
)

// corrupt returns the error for a defect at an offset.
func corrupt(at int64, format string, args ...any) error {
	return fmt.Errorf("offset %d: %s: %w", at, fmt.Sprintf(format, args...), ErrCorrupt)
}

// Header describes the cache as a whole.
type Header struct {
	Salt         uint64
	MaxBytes     uint64
	Entries      uint64 // when saving began; a hint
	Bytes        uint64 // of their records; a hint
	TTL          time.Duration
	RefreshAhead time.Duration
	Idle         time.Duration // after which unused entries expire
	Saved        time.Time     // time of saving, by the wall clock
	SinceBoot    time.Duration // at the time of saving
	Boot         uint64        // boot of the machine that saved it
	Program      uint64        // the program's version of its entries
	Secret       [2]uint64     // of the hash, in whose order the entries of a block are
	Policy       uint8
	HugePages    uint8
}

// Append appends the header.
func (h *Header) Append(b []byte) []byte {
	from := len(b)
	b = append(b, headerMagic...)
	b = binary.LittleEndian.AppendUint32(b, orderMark)
	b = binary.LittleEndian.AppendUint32(b, Version)
	b = append(b, h.Policy, h.HugePages, 0, 0, 0, 0, 0, 0)
	for _, x := range []uint64{h.Salt, h.MaxBytes, h.Entries, h.Bytes, uint64(h.TTL),
		uint64(h.RefreshAhead), uint64(h.Saved.UnixMilli()), uint64(h.SinceBoot), h.Boot,
		h.Program, h.Secret[0], h.Secret[1], uint64(h.Idle)} {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b[from:]))
}

// ParseHeader decodes the header in b, which is at offset at of the snapshot.
func ParseHeader(b []byte, at int64) (h Header, err error) {
	if len(b) < HeaderSize {
		return h, corrupt(at, "%d bytes are too few for a header, of %d", len(b), HeaderSize)
	}
	if string(b[:8]) != headerMagic {
		return h, corrupt(at, "no snapshot begins with %q", b[:8])
	}
	const sumAt = HeaderSize - 8
	if sum := xxhash.Sum64(b[:sumAt]); sum != binary.LittleEndian.Uint64(b[sumAt:]) {
		return h, corrupt(at, "checksum of the header is %x, not %x", sum, b[sumAt:HeaderSize])
	}
	if mark := binary.LittleEndian.Uint32(b[8:]); mark != orderMark {
		return h, corrupt(at, "byte order mark is %x, not %x", mark, orderMark)
	}
	version := binary.LittleEndian.Uint32(b[12:])
	if version != Version {
		return h, fmt.Errorf("version %d of the format, only %d is known: %w",
			version, Version, ErrVersion)
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[24+8*i:]) }
	return Header{
		Policy: b[16], HugePages: b[17],
		Salt: word(0), MaxBytes: word(1), Entries: word(2), Bytes: word(3),
		TTL: time.Duration(word(4)), RefreshAhead: time.Duration(word(5)),
		Saved: time.UnixMilli(int64(word(6))), SinceBoot: time.Duration(word(7)),
		Boot: word(8), Program: word(9), Secret: [2]uint64{word(10), word(11)},
		Idle: time.Duration(word(12)),
	}, nil
}

const (
	kindEntries = 1
	kindEnd     = 2
	kindNames   = 3
)

// BlockHeader is the header of a block, which precedes its body.
type BlockHeader struct {
	Kind    uint8
	Rank    uint8
	ID      uint32
	Entries uint32
	Length  uint64 // of the body
	Size    uint64 // of the unpacked body; equal to Length if it is not packed
	Unread  uint64 // part of Size: entries with a frequency of 0
	sum     uint64 // of the body
}

// sumOf returns the checksum of b in a snapshot with the given salt.
func sumOf(salt uint64, b []byte) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(salt)
	d.Write(b) // never fails
	return d.Sum64()
}

// put writes the header at the beginning of b, before the body.
func (h *BlockHeader) put(b []byte, salt uint64) {
	body := b[BlockHeaderSize:]
	copy(b, blockMagic)
	b[4], b[5], b[6], b[7] = h.Kind, h.Rank, 0, 0
	binary.LittleEndian.PutUint32(b[8:], h.ID)
	binary.LittleEndian.PutUint32(b[12:], h.Entries)
	binary.LittleEndian.PutUint64(b[16:], uint64(len(body)))
	binary.LittleEndian.PutUint64(b[24:], h.Size)
	binary.LittleEndian.PutUint64(b[32:], h.Unread)
	binary.LittleEndian.PutUint64(b[40:], sumOf(salt, body))
	binary.LittleEndian.PutUint64(b[48:], sumOf(salt, b[:48]))
}

// parseBlock decodes the header of a block in b, which is at offset at of the snapshot.
func parseBlock(b []byte, salt uint64, at int64) (h BlockHeader, err error) {
	if len(b) < BlockHeaderSize {
		return h, corrupt(at, "%d bytes are too few for the header of a block, of %d",
			len(b), BlockHeaderSize)
	}
	if string(b[:4]) != blockMagic {
		return h, corrupt(at, "no block begins with %q", b[:4])
	}
	if sum := sumOf(salt, b[:48]); sum != binary.LittleEndian.Uint64(b[48:]) {
		return h, corrupt(at, "checksum of the block's header is %x, not %x", sum, b[48:56])
	}
	h = BlockHeader{
		Kind: b[4], Rank: b[5],
		ID:      binary.LittleEndian.Uint32(b[8:]),
		Entries: binary.LittleEndian.Uint32(b[12:]),
		Length:  binary.LittleEndian.Uint64(b[16:]),
		Size:    binary.LittleEndian.Uint64(b[24:]),
		Unread:  binary.LittleEndian.Uint64(b[32:]),
		sum:     binary.LittleEndian.Uint64(b[40:]),
	}
	isEnd := h.Kind == kindEnd && h.Length == endSize && h.Size == endSize
	known := isEnd || (h.Kind == kindEntries || h.Kind == kindNames) && h.Rank < Ranks
	isPacked := h.Size != h.Length
	isTooFull := uint64(h.Entries)*MinEntry > h.Size || h.Unread > h.Size
	if !known || h.Length > math.MaxInt64/2 || !isEnd && isTooFull ||
		isPacked && (h.Size > MaxBlock || h.Length > MaxBlock) {
		return h, corrupt(at, "block of kind %d, rank %d, %d entries, %d bytes, %d unpacked",
			h.Kind, h.Rank, h.Entries, h.Length, h.Size)
	}
	return h, nil
}

// Check returns an error if body does not match the block's checksum. The block is at offset at of
// the snapshot.
func (h *BlockHeader) Check(body []byte, salt uint64, at int64) error {
	if sum := sumOf(salt, body); sum != h.sum {
		return corrupt(at, "checksum of block %d is %x, not %x", h.ID, sum, h.sum)
	}
	return nil
}

// Block is a block that is being filled, by AppendEntry followed by key and value.
type Block struct {
	Bytes   []byte // begins with room for a header
	Entries int
	Unread  int // bytes of entries that were not read
}

// Reset empties the block.
func (b *Block) Reset() {
	b.Bytes = append(b.Bytes[:0], make([]byte, BlockHeaderSize)...)
	b.Entries, b.Unread = 0, 0
}

// Add records that the bytes from offset from on are an entry.
func (b *Block) Add(from, freq int) {
	b.Entries++
	if freq == 0 {
		b.Unread += len(b.Bytes) - from
	}
}

// Finish completes the block and returns the bytes to write, which are valid until the next
// call with the same p. The body is packed if that makes it at least an eighth smaller.
func (b *Block) Finish(rank int, id uint32, salt uint64, p *Packer) []byte {
	return b.finish(kindEntries, rank, id, salt, p)
}

// finish is Finish for a block of a kind.
func (b *Block) finish(kind uint8, rank int, id uint32, salt uint64, p *Packer) []byte {
	size := len(b.Bytes) - BlockHeaderSize
	h := BlockHeader{Kind: kind, Rank: uint8(rank), ID: id, Entries: uint32(b.Entries),
		Size: uint64(size), Unread: uint64(b.Unread)}
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
	p.buf = resize(p.buf, uint64(BlockHeaderSize+s2.MaxEncodedLen(len(body))))
	n := len(s2.Encode(p.buf[BlockHeaderSize:], body))
	p.buf = p.buf[:BlockHeaderSize+n]
	return n < len(body)-len(body)/8
}

// End is the content of the end mark.
type End struct {
	Blocks  uint64 // without the end mark
	Entries uint64 // in them
	Partial bool   // saving ended before everything was saved
}

// Append appends the end mark. It contains a copy of the header, in case the first one is damaged.
func (e *End) Append(b []byte, h *Header) []byte {
	from := len(b)
	b = append(b, make([]byte, BlockHeaderSize)...)
	flags := uint64(0)
	if e.Partial {
		flags = 1
	}
	for _, x := range []uint64{e.Blocks, e.Entries, flags} {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	b = h.Append(b)
	bh := BlockHeader{Kind: kindEnd, ID: uint32(e.Blocks), Size: endSize}
	bh.put(b[from:], h.Salt)
	return b
}

// parseEnd decodes the body of an end mark.
func parseEnd(body []byte) End {
	return End{
		Blocks:  binary.LittleEndian.Uint64(body),
		Entries: binary.LittleEndian.Uint64(body[8:]),
		Partial: body[16] != 0,
	}
}
