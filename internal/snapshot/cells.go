package snapshot

import "math/bits"

// Cells are what the passes over a bucket have saved. A cell is a range of hashes, and
// is saved as a whole, by one pass. The hash of an entry never changes: wherever it
// moves between two passes, none of them misses it and none saves it twice. There are
// four cells or more for an entry, so hardly any has two.
//
// The zero value is for a single pass. It has a cell for each hash, and remembers
// nothing.
type Cells struct {
	shift uint8 // of a hash, to the number of its cell
	saved []uint64
}

const (
	// HashBits is how many bits of a hash slots remember: index.HashBits.
	HashBits = 23
	leastLog = 6 // a word of cells
)

// Init makes cells for so many entries, unless there are some.
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

// Has reports whether a cell was saved, Add notes that it is.
func (c *Cells) Has(cell uint64) bool {
	return c.saved != nil && c.saved[cell/64]>>(cell%64)&1 != 0
}

func (c *Cells) Add(cell uint64) {
	if c.saved != nil {
		c.saved[cell/64] |= 1 << (cell % 64)
	}
}
