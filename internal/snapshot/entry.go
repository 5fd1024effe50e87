package snapshot

import "encoding/binary"

// The first byte of an entry.
const (
	metaFreq     = 3 // its frequency
	metaExpiry   = 4 // an expiry follows the lengths
	metaNegative = 8
	metaInternal = 16 // it has no expiry
	metaUntil    = 32 // the end of the idle time follows the expiry
	metaUnknown  = 0xc0
)

// maxPrefix is the most bytes before the key of an entry.
const maxPrefix = 1 + 3 + binary.MaxVarintLen64 + 2*8

// Entry is what an entry says of itself beside key and value.
type Entry struct {
	KeyLen   int
	ValueLen int
	Expiry   int64 // Unix time in milliseconds; 0: never
	Until    int64 // the same of the end of its idle time; 0: it has none
	Freq     int
	Negative bool
	Internal bool // of the cache's own
}

// EntrySize returns the most that an entry of such a record takes, which may have
// deadlines.
func EntrySize(record int) int { return maxPrefix + record }

// AppendEntry appends what stands before the key and the value of an entry.
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
	if e.Internal {
		meta |= metaInternal
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

// ParseEntry decodes the entry that begins b. It reports false if b does not begin
// with one that ends in b. Key and value follow behind the first at bytes.
func ParseEntry(b []byte) (e Entry, at int, ok bool) {
	if len(b) < MinEntry {
		return e, 0, false
	}
	meta := b[0]
	klen, kn := uvarint(b[1:])
	isOdd := meta&metaInternal != 0 && meta&(metaExpiry|metaUntil|metaNegative) != 0
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
		Negative: meta&metaNegative != 0, Internal: meta&metaInternal != 0}
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

// uvarint is binary.Uvarint, which is not inlined, for what has one byte as nearly
// always.
func uvarint(b []byte) (uint64, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return binary.Uvarint(b)
}
