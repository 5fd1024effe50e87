// Package snapshot defines the format of a snapshot, the content of a cache in a file or a stream.
// It deals with bytes and readers, not with caches and files.
//
// A snapshot is a header, blocks, and an end mark, which is a block too. All numbers are little
// endian, on every platform.
//
//	header 136  "ringsnap" | mark 4 | version 4 | policy 1, flags 1, us 2, 0 4 | salt 8 |
//	            bound 8 | entries 8 | age 8 | ttl 8 | ahead 8 | saved 8 | since boot 8 | boot 8 |
//	            program 8 | hash secret 16 | idle 8 | checksum 8
//	block   56  "rblk" | kind 1, quarter 1, lane 2 | id 4 | records 4 | length 8 | unpacked 8 |
//	            0 8 | checksum of the body 8 | checksum of these 48 bytes 8 | body
//	end    160  blocks 8 | records 8 | 0 8 | a copy of the header (the body of an end mark)
//	run     13  ring 1 | records 4 | bytes 8 | records | frequencies, 2 bits each
//
// A body consists of runs, of ring policy.Small or policy.Main; the records of a cold part count as
// the oldest of the small ring. Records are plain ones as they lie in a ring (package record), with
// deadlines in ticks of a clock whose age is in the header. The wall clock then showed saved,
// in milliseconds, and us microseconds more. A body whose length differs from its unpacked length
// is packed: it is an S2 block, which begins with the length again.
//
// Blocks come in the order in which they were written. A key may have several records, because an
// entry that moves or is set again is saved again. Of two in the same lane, the later one is newer.
// A key has records in two lanes only if its entry became large, or small, during the save; which
// one is newer is then unknown. Several goroutines may load different lanes.
//
// A snapshot begins with a block of kind 4. It has two words for each part of the cache, in the
// order of the parts: its records and their bytes. Blocks of kind 3 follow. They hold a record for
// each namespace: its key is the generation with which the keys of the namespace begin, its value
// the name. They are written twice, because without them nobody finds those keys. They are not
// packed: names take memory outside the bound, which is to be in proportion to their bytes.
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

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/record"
)

const (
	// Version is the version that is written, and the only one that is read. No release wrote
	// another one.
	Version = 5

	// MaxBlock is the maximum length of a block, unless it holds a single record that is longer.
	MaxBlock = 1 << 20

	HeaderSize      = 136
	BlockHeaderSize = 56
	endSize         = 24 + HeaderSize
	runHeaderSize   = 13

	generationSize = 8 // of a namespace, at the beginning of its keys

	headerMagic = "ringsnap"
	blockMagic  = "rblk"
	orderMark   = 0x01020304
)

// Quarters is the number of parts of a ring that are saved one after another, from the tail on. A
// block has records of one quarter, or of no particular one, if its quarter is 0.
const Quarters = 4

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
	TTL          time.Duration
	RefreshAhead time.Duration
	Idle         time.Duration // after which unused entries expire
	Mark         clock.Mark    // when saving began
	Program      uint64        // the program's version of its entries
	Secret       [2]uint64     // of the hash
	Policy       uint8
	HugePages    uint8
}

// Append appends the header.
func (h *Header) Append(b []byte) []byte {
	from, at := len(b), &h.Mark.At
	b = append(b, headerMagic...)
	b = binary.LittleEndian.AppendUint32(b, orderMark)
	b = binary.LittleEndian.AppendUint32(b, Version)
	b = append(b, h.Policy, h.HugePages)
	b = binary.LittleEndian.AppendUint16(b, uint16(at.Wall.UnixMicro()%1000))
	b = append(b, 0, 0, 0, 0)
	for _, x := range []uint64{h.Salt, h.MaxBytes, h.Entries, uint64(h.Mark.Age), uint64(h.TTL),
		uint64(h.RefreshAhead), uint64(at.Wall.UnixMilli()), uint64(at.Boot), at.ID,
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
	micros := int64(binary.LittleEndian.Uint16(b[18:]))
	wall := time.UnixMicro(int64(word(6))*1000 + micros)
	saved := clock.Moment{Wall: wall, Boot: time.Duration(word(7)), ID: word(8)}
	return Header{
		Policy: b[16], HugePages: b[17],
		Salt: word(0), MaxBytes: word(1), Entries: word(2),
		Mark: clock.Mark{Age: time.Duration(word(3)), At: saved},
		TTL:  time.Duration(word(4)), RefreshAhead: time.Duration(word(5)),
		Program: word(9), Secret: [2]uint64{word(10), word(11)}, Idle: time.Duration(word(12)),
	}, nil
}

// Kinds of blocks.
const (
	kindRecords = 1
	kindEnd     = 2
	kindNames   = 3 // names of namespaces, which are loaded before all other records
	kindSizes   = 4 // the sizes of the parts, which are loaded first
)

// BlockHeader is the header of a block, which precedes its body.
type BlockHeader struct {
	Kind    uint8
	Quarter uint8 // from 1 on; 0: none
	Lane    uint16
	ID      uint32
	Records uint32
	Length  uint64 // of the body
	Size    uint64 // of the unpacked body; equal to Length if it is not packed
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
	b[4], b[5] = h.Kind, h.Quarter
	binary.LittleEndian.PutUint16(b[6:], h.Lane)
	binary.LittleEndian.PutUint32(b[8:], h.ID)
	binary.LittleEndian.PutUint32(b[12:], h.Records)
	binary.LittleEndian.PutUint64(b[16:], uint64(len(body)))
	binary.LittleEndian.PutUint64(b[24:], h.Size)
	binary.LittleEndian.PutUint64(b[32:], 0)
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
		Kind: b[4], Quarter: b[5],
		Lane:    binary.LittleEndian.Uint16(b[6:]),
		ID:      binary.LittleEndian.Uint32(b[8:]),
		Records: binary.LittleEndian.Uint32(b[12:]),
		Length:  binary.LittleEndian.Uint64(b[16:]),
		Size:    binary.LittleEndian.Uint64(b[24:]),
		sum:     binary.LittleEndian.Uint64(b[40:]),
	}
	isEnd := h.Kind == kindEnd && h.Length == endSize && h.Size == endSize
	known := isEnd || h.Kind != kindEnd && kindRecords <= h.Kind && h.Kind <= kindSizes &&
		h.Quarter <= Quarters
	isPacked := h.Size != h.Length
	isTooFull := uint64(h.Records)*record.ShortHeader > h.Size
	if !known || h.Length > math.MaxInt64/2 || !isEnd && isTooFull ||
		isPacked && (h.Kind == kindNames || h.Size > MaxBlock || h.Length > MaxBlock) {
		return h, corrupt(at, "block of kind %d, quarter %d, %d records, %d bytes, %d unpacked",
			h.Kind, h.Quarter, h.Records, h.Length, h.Size)
	}
	return h, nil
}

// End is the content of the end mark.
type End struct {
	Blocks  uint64 // without the end mark
	Records uint64 // in them
}

// Append appends the end mark. It contains a copy of the header, in case the first one is damaged.
func (e *End) Append(b []byte, h *Header) []byte {
	from := len(b)
	b = append(b, make([]byte, BlockHeaderSize)...)
	for _, x := range []uint64{e.Blocks, e.Records, 0} {
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
		Records: binary.LittleEndian.Uint64(body[8:]),
	}
}
