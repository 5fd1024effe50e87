package ringgocache

import (
	"encoding/binary"
	"hash/maphash"
	"math/rand/v2"
	"sync/atomic"
)

// tags are the versions of all tags. A value is stored with the versions of its tags at that time,
// and is valid only until one of them changes:
//
//	record: number of tags, and whether the value is a string | slot, version of each tag | value
//
// An eviction therefore cannot make a value outlive its tags. The number of versions is fixed, and
// tags with the same hash share one, so the memory is bounded, and invalidating a tag may also
// remove values with other tags.
//
// The first version is random, so that values of an earlier process, in a cache that was opened
// from a file, are not found: the versions of different processes are unrelated.
type tags struct {
	seed     maphash.Seed
	first    uint64                // added to each counter
	counters *[slots]atomic.Uint64 // how often the tags of a slot have been invalidated
}

const (
	slots   = 1 << 16
	tagSize = 2 + 8 // of a slot and its version
)

func newTags() tags {
	return tags{maphash.MakeSeed(), rand.Uint64(), new([slots]atomic.Uint64)}
}

func (t *tags) slot(tag string) uint16 { return uint16(maphash.String(t.seed, tag)) }

func (t *tags) version(slot uint16) uint64 { return t.first + t.counters[slot].Load() }

func (t *tags) invalidate(tag string) { t.counters[t.slot(tag)].Add(1) }

// appendRecord appends the record of a value with these tags. It returns false if the value
// has neither of the types.
func (t *tags) appendRecord(dst []byte, names []string, value any) (rec []byte, ok bool) {
	head := uint64(len(names)) << 1
	data, ok := value.([]byte)
	text, isString := value.(string)
	if isString {
		head++
	}
	dst = binary.AppendUvarint(dst, head)
	for _, name := range names {
		slot := t.slot(name)
		dst = binary.BigEndian.AppendUint16(dst, slot)
		dst = binary.BigEndian.AppendUint64(dst, t.version(slot))
	}
	return append(append(dst, data...), text...), ok || isString
}

// open returns the value in a record, whose memory it shares. It returns false if one of the tags
// has been invalidated.
func (t *tags) open(rec []byte) (value []byte, isString, ok bool) {
	head, n := binary.Uvarint(rec)
	rec = rec[max(n, 0):]
	count := head >> 1
	if n <= 0 || count > uint64(len(rec)/tagSize) {
		return nil, false, false
	}
	for range count {
		slot, version := binary.BigEndian.Uint16(rec), binary.BigEndian.Uint64(rec[2:])
		if t.version(slot) != version {
			return nil, false, false
		}
		rec = rec[tagSize:]
	}
	return rec, head&1 == 1, true
}
