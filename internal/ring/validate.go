package ring

import (
	"fmt"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/record"
)

// Validate checks the ring's invariants, and calls fn with each record, dead ones
// too. It is for tests.
func (r *Ring) Validate(fn func(pos uint64, h record.Header) error) error {
	if r.Size > r.Mask/4 {
		return fmt.Errorf("I3: %d live bytes in a space of %d", r.Size, r.Mask)
	}
	if r.borrowed && r.Size > uint64(r.Held())<<r.shift {
		return fmt.Errorf("I1: %d bytes in %d chunks", r.Size, r.Held())
	}
	seen := map[chunk.Ref]int{}
	for i := range int(r.mapped) {
		c := *r.entry(r.Tail + uint64(i)<<r.shift)
		first, dup := seen[c]
		if c == (chunk.Ref{}) || dup && (!r.borrowed || first != 0 || i != int(r.mapped)-1) {
			return fmt.Errorf("I2: slots %d and %d hold one chunk, or none", first, i)
		}
		seen[c] = i
	}
	if len(seen) != r.Held() {
		return fmt.Errorf("I2: holds %d chunks, has %d", r.Held(), len(seen))
	}
	var has Counts
	for off := uint64(0); off < r.Size; {
		pos := (r.Tail + off) & r.Mask
		h, ok := r.Header(pos)
		if !ok {
			return fmt.Errorf("I2: no record at position %d", pos)
		}
		if !h.Dead {
			has.Count(1, h.Total(), h.HasExpiry)
		} else if h.HasExpiry {
			has.DeadBytes += h.Total()
		}
		if err := fn(pos, h); err != nil {
			return err
		}
		off += uint64(h.Total())
	}
	if has != r.Counts {
		return fmt.Errorf("I7, I10: counts %+v, has %+v", r.Counts, has)
	}
	return nil
}
