package snapshot

import "math/bits"

// Cells record what the passes over a bucket have saved. A cell is a range of hashes, and is saved
// as a whole, by one pass. The hash of an entry never changes, so no pass misses it or saves it
// again, wherever it moves between two passes. There are at least four cells for each entry, so a
// cell rarely has two.
//
// The zero value is for a single pass. It has a cell for each hash, and remembers
// nothing.
type Cells struct {
	shift uint8 // from a hash to the number of its cell
	saved []uint64
}

const (
	// HashBits is the number of bits of a hash that a slot holds: index.HashBits.
	HashBits = 23
	leastLog = 6 // log2 of the cells in a word
)

// Init makes cells for about this many entries, unless it was called before.
func (c *Cells) Init(entries int) {
	if c.saved == nil {
		log := min(max(bits.Len(uint(entries))+2, leastLog), HashBits)
		c.shift = uint8(HashBits - log)
		c.saved = make([]uint64, 1<<(log-leastLog))
	}
}

// Of returns the cell of a hash, and Start the first hash of a cell.
func (c *Cells) Of(hash uint64) uint64    { return hash >> c.shift }
func (c *Cells) Start(cell uint64) uint64 { return cell << c.shift }

// Has reports whether a cell was saved, and Add notes that it was.
func (c *Cells) Has(cell uint64) bool {
	return c.saved != nil && c.saved[cell/64]>>(cell%64)&1 != 0
}

func (c *Cells) Add(cell uint64) {
	if c.saved != nil {
		c.saved[cell/64] |= 1 << (cell % 64)
	}
}
