package ringcache

import "fmt"

// batchSize is how many keys of a batch are under way at once: enough for
// their cache misses to overlap, few enough for the lines to stay in L1.
const batchSize = 32

// batchBytes is how many bytes of values getKeys copies before it leaves the lanes that it
// has taken: writers wait for them.
const batchBytes = 64 << 10

// GetBatch looks up keys and appends the values found to dst, in the order of
// the keys. It sets vals[i] to the value of keys[i], a part of the returned
// slice that is limited to its own capacity, or to nil on a miss; an empty
// value is not nil. It returns the extended slice and the number of hits. Keys
// may repeat. The bytes belong to the caller.
//
// Looking up many keys at once lets the processor fetch them side by side,
// which makes each several times faster than a Get of its own in a cache that
// is larger than the processor's. GetBatch does not allocate if dst has room
// for all values. It takes the locks of up to 32 buckets, which readers have
// together: a Set in one of them may wait until the keys are looked up, or 64 KB
// copied. The result is not a snapshot of the whole cache.
//
// GetBatch panics if vals is shorter than keys.
func (c *Cache) GetBatch(dst []byte, keys, vals [][]byte) (out []byte, hits int) {
	if len(vals) < len(keys) {
		panic(fmt.Sprintf("ringcache: get batch: %d vals for %d keys", len(vals), len(keys)))
	}
	from, room := len(dst), cap(dst)
	for i := 0; i < len(keys); i += batchSize {
		end := min(i+batchSize, len(keys))
		var n int
		dst, n = c.getBlock(dst, keys[i:end], vals[i:end])
		hits += n
	}
	if cap(dst) == room {
		return dst, hits
	}
	// Values that were found before dst moved to a larger array are there too.
	for i := range keys {
		if n := len(vals[i]); n > 0 {
			vals[i] = dst[from : from+n : from+n]
			from += n
		}
	}
	return dst, hits
}

// worthRun is how many keys getKeys has to have looked up to be called again.
const worthRun = 8

// getBlock looks up to batchSize keys up: first it asks for all their index
// lines, then for all their records, and then it copies. In the common case all
// of that but the first is getKeys.
func (c *Cache) getBlock(dst []byte, keys, vals [][]byte) (out []byte, hits int) {
	var hashes [batchSize]uint64
	var lens [batchSize]int // of the values; glanceMiss if there is none
	var quests [batchSize]quest
	lane, from := laneHere(), len(dst)
	c.askBlock(&hashes, keys)
	for i := 0; i < len(keys); {
		n, asked, end := getKeys(c, dst, keys[i:], &hashes[i], &lens[i], lane, &quests[0])
		dst = dst[:end]
		if n == len(keys)-i {
			break
		}
		if i == 0 {
			c.askRecords(hashes[asked:len(keys)], lane)
		}
		end = i + n + 1
		if n < worthRun { // it would stop as soon again
			end = len(keys)
		}
		dst = c.getEach(dst, keys[i+n:end], hashes[i+n:], lens[i+n:], lane)
		i = end
	}
	return dst, divide(dst[from:], vals, lens[:len(keys)])
}

// getEach is HasGet of each key. It notes the lengths of the values.
func (c *Cache) getEach(dst []byte, keys [][]byte, hashes []uint64, lens []int, lane uint) []byte {
	for i, k := range keys {
		found, ok := c.getLocked(dst, k, hashes[i], lane, false) // and no glance: this may open the lane
		if lens[i] = glanceMiss; ok {
			lens[i] = len(found) - len(dst)
		}
		dst = found
	}
	return dst
}

// divide sets vals to the parts of b that have these lengths, one after the other, or to
// nil for glanceMiss, and returns how many there are.
func divide(b []byte, vals [][]byte, lens []int) (hits int) {
	if b == nil {
		b = []byte{} // an empty value is not nil
	}
	from := 0
	for i, n := range lens {
		if n == glanceMiss {
			vals[i] = nil
			continue
		}
		vals[i] = b[from : from+n : from+n]
		from += n
		hits++
	}
	return hits
}

// SetBatch stores vals[i] under keys[i] for each i, as so many calls of
// [Cache.Set] in that order would: where keys repeat the last wins, and all that
// is said of keys, values and errors there holds here. All are tried whatever
// becomes of the others; the first error is returned, with its index.
//
// Storing many entries at once lets the processor fetch their parts of the
// index, and the records that they replace, side by side. SetBatch does not
// allocate, but as Set does, and for an error. It locks one bucket at a time,
// for each key by itself: others may see a part of the batch. Vals beyond the
// keys are not looked at.
//
// SetBatch panics if vals is shorter than keys.
func (c *Cache) SetBatch(keys, vals [][]byte) error {
	if len(vals) < len(keys) {
		panic(fmt.Sprintf("ringcache: set batch: %d vals for %d keys", len(vals), len(keys)))
	}
	var first error
	for i := 0; i < len(keys); i += batchSize {
		end := min(i+batchSize, len(keys))
		if n, err := c.setBlock(keys[i:end], vals[i:end]); err != nil && first == nil {
			first = fmt.Errorf("ringcache: set batch: index %d: %w", i+n, err)
		}
	}
	return first
}

// setBlock stores up to batchSize entries: first it asks for all their index
// lines, then for the records of those that are there, and then it sets. It
// returns the first error and whose it was. Two keys in a row are hardly ever
// of one of 512 buckets, so each takes the lock anew.
func (c *Cache) setBlock(keys, vals [][]byte) (at int, first error) {
	var hashes [batchSize]uint64
	c.askBlock(&hashes, keys)
	c.askRecords(hashes[:len(keys)], laneHere())
	for i, k := range keys {
		if err := c.set(k, vals[i], hashes[i], true); err != nil && first == nil {
			at, first = i, err
		}
	}
	return at, first
}

// askBlock hashes up to batchSize keys, and asks for their index lines.
func (c *Cache) askBlock(hashes *[batchSize]uint64, keys [][]byte) {
	for i := 0; i < len(keys); i++ {
		if i += askKeys(c, keys[i:], &hashes[i]); i < len(keys) {
			hashes[i] = c.ask(keys[i])
		}
	}
}

// askRecords asks for all the records that up to batchSize hashes lead to, whose index
// lines have been asked for. They are noted before the first is asked for: an atomic
// operation, such as a lock takes, waits until the addresses of all that was asked for
// have been translated. (Only what noteRecords could not find out is noted after that.)
func (c *Cache) askRecords(hashes []uint64, lane uint) {
	var records [batchSize]lines
	if len(hashes) == 0 || noteRecords(c, &hashes[0], &records, len(hashes), lane) == 0 {
		return
	}
	for i, h := range hashes {
		if records[i].n != linesUnknown || !c.recordLines(&records[i], h, lane) {
			records[i].n = 0
		}
	}
	for i := range hashes {
		if records[i].n > 0 {
			records[i].prefetch()
		}
	}
}

// recordLines notes where the record lies that hash h leads to, and reports
// whether there is one. It goes by lane n, if it can, and is not counted.
func (c *Cache) recordLines(at *lines, h uint64, n uint) bool {
	b := c.bucket(h)
	a := c.lanes.at(n, h&c.mask)
	in := a.enter(&b.mu, 1<<n)
	if !in {
		b.mu.hold()
	}
	slot, ok := b.likely(h)
	if ok {
		b.rings[slotRing(slot)].note(at, slot)
	}
	if in {
		a.forget()
	} else {
		b.mu.release()
	}
	return ok
}
