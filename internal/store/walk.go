package store

import (
	"slices"

	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/record"
)

// How a bucket is walked: by the hash of its entries.
//
// The hash of an entry never changes, and the homes of an index are in hash order. So a
// bucket is walked by a cursor, the hash bits that slots remember: a step takes the entries
// of the next few homes, and the lock is free until the next step. Moves of records between rings,
// or of the index to another geometry, do not move an entry to the other side of the cursor.

// stepHomes is how many homes a step takes. It ends earlier, with a home or where it must with a
// hash, once it has StepRecords keys or StepBytes of them.
const stepHomes = 256

// HashesEnd is the cursor behind all hashes.
const HashesEnd = 1 << index.HashBits

// NextSlots appends the live slots of the next homes, from cursor at on, to slots, which is empty:
// each once, in the order of their hashes. It returns the cursor behind them. whole, if it is not
// nil, lowers that cursor to where a step may end.
func (b *Store) NextSlots(
	slots []uint64, at uint64, whole func(cursor uint64) uint64,
) (_ []uint64, end uint64) {
	if b.Index.Pages() == 0 {
		return slots, HashesEnd
	}
	end = at
	for n, cursor := 0, at; cursor < HashesEnd &&
		(end == at || n < stepHomes && len(slots) < StepRecords); n++ {
		from := len(slots)
		slots, cursor = b.Index.TakeHome(slots, cursor, b.windows())
		slices.Sort(slots[from:]) // by hash, with which a slot begins; homes are in that order
		if end = cursor; whole != nil {
			end = whole(cursor)
		}
	}
	for n := len(slots); n > 0 && index.HashOf(slots[n-1]) >= end; n-- {
		slots = slots[:n-1]
	}
	sameEntry := func(a, b uint64) bool { return index.Location(a) == index.Location(b) }
	return slices.CompactFunc(slots, sameEntry), end // a path may visit a group twice
}

// Keys are the keys that a step of a walk takes from a bucket: those of generation Of, or, if that
// is 0, those of no namespace.
type Keys struct {
	Of    uint64
	Bytes []byte // one behind the other
	Ends  []int  // where each ends
	slots []uint64
}

// Next copies the next keys of a bucket, from cursor at on, and returns the cursor behind them.
func (k *Keys) Next(b *Store, at uint64) (end uint64) {
	k.Bytes, k.Ends = k.Bytes[:0], k.Ends[:0]
	k.slots, end = b.NextSlots(k.slots[:0], at, nil)
	for _, slot := range k.slots {
		b.Ring(index.Ring(slot)).Prefetch(index.Pos(slot))
	}
	for i, slot := range k.slots {
		hash := index.HashOf(slot)
		if len(k.Bytes) >= StepBytes && hash != index.HashOf(k.slots[i-1]) {
			return hash
		}
		r, pos := b.Ring(index.Ring(slot)), index.Pos(slot)
		hd, ok := r.Header(pos)
		g, spaced := b.generationAt(r, pos, hd)
		if ok && hd.Kind.Base() != record.Internal && !b.Shared.Expired(hd.Expiry) &&
			(!spaced && k.Of == 0 || spaced && g == k.Of) {
			k.Bytes, _ = r.Read(k.Bytes, pos+uint64(hd.Size), hd.KeyLen)
			k.Ends = append(k.Ends, len(k.Bytes))
		}
	}
	return end
}
