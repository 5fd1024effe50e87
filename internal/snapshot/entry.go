package snapshot

import "encoding/binary"

// The first byte of an entry.
const (
	metaFreq     = 3 // its frequency
	metaExpiry   = 4 // an expiry follows the lengths
	metaNegative = 8
	metaUntil    = 32 // the end of the idle time follows the expiry
	metaSpaced   = 64
	metaUnknown  = 0x90
)

// maxPrefix is the maximum number of bytes before the key of an entry.
const maxPrefix = 1 + 3 + binary.MaxVarintLen64 + 2*8

// generationSize is the length of a generation.
const generationSize = 8

// Entry describes an entry, except for its key and value.
type Entry struct {
	KeyLen   int
	ValueLen int
	Expiry   int64 // Unix time in milliseconds; 0: never
	Until    int64 // end of its idle time, likewise; 0: it has none
	Freq     int
	Negative bool
	Spaced   bool // the key begins with the generation of a namespace
}

// EntrySize returns the maximum size of the entry for a record of this length.
func EntrySize(record int) int { return maxPrefix + record }

// AppendEntry appends the part of an entry that precedes its key and value.
func AppendEntry(b []byte, e Entry) []byte {
	meta := byte(e.Freq & metaFreq)
	if e.Expiry != 0 {
		meta |= metaExpiry
	}
	if e.Until != 0 {
		meta |= metaUntil
	}
	if e.Negative {
		meta |= metaNegative
	}
	if e.Spaced {
		meta |= metaSpaced
	}
	b = append(b, meta)
	b = binary.AppendUvarint(b, uint64(e.KeyLen))
	b = binary.AppendUvarint(b, uint64(e.ValueLen))
	if e.Expiry != 0 {
		b = binary.LittleEndian.AppendUint64(b, uint64(e.Expiry))
	}
	if e.Until != 0 {
		b = binary.LittleEndian.AppendUint64(b, uint64(e.Until))
	}
	return b
}

// ParseEntry decodes the entry at the beginning of b. It reports false if b does not begin with a
// complete entry. Key and value follow after the first at bytes.
func ParseEntry(b []byte) (e Entry, at int, ok bool) {
	if len(b) < MinEntry {
		return e, 0, false
	}
	meta := b[0]
	klen, kn := uvarint(b[1:])
	isOdd := meta&metaSpaced != 0 && klen < generationSize
	if kn <= 0 || klen > maxKey || meta&metaUnknown != 0 || isOdd {
		return e, 0, false
	}
	at = 1 + kn
	vlen, vn := uvarint(b[at:])
	if vn <= 0 || vlen > uint64(len(b)) || meta&metaNegative != 0 && vlen > 0 {
		return e, 0, false
	}
	at += vn
	e = Entry{KeyLen: int(klen), ValueLen: int(vlen), Freq: int(meta & metaFreq),
		Negative: meta&metaNegative != 0, Spaced: meta&metaSpaced != 0}
	for _, t := range [...]struct {
		meta byte
		time *int64
	}{{metaExpiry, &e.Expiry}, {metaUntil, &e.Until}} {
		if meta&t.meta == 0 {
			continue
		}
		if len(b) < at+8 {
			return e, 0, false
		}
		if *t.time = int64(binary.LittleEndian.Uint64(b[at:])); *t.time <= 0 {
			return e, 0, false
		}
		at += 8
	}
	return e, at, len(b)-at >= e.KeyLen+e.ValueLen
}

// uvarint is binary.Uvarint, which is not inlined, with a fast path for numbers of one byte, as
// nearly all are.
func uvarint(b []byte) (uint64, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return binary.Uvarint(b)
}
