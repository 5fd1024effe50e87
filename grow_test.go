package ringcache

import (
	"encoding/binary"
	"testing"
)

// An index that waits for pages in a full cache gets them, though new keys alone never need what main holds: else each
// Set would ask again.
func TestGrow_InAFullCache(t *testing.T) {
	for _, p := range []Policy{PolicyS3FIFO, PolicyFIFO} {
		for chunks := 40; chunks <= 60; chunks += 4 {
			g := tiny(16, 4096, chunks)
			g.policy = p
			c := mustCache(t, g)
			value := make([]byte, 100)
			for id := range uint64(8 * g.maxBytes / len(value)) {
				if err := c.Set(binary.LittleEndian.AppendUint64(nil, id), value); err != nil {
					t.Fatal(err)
				}
			}
			for i := range c.shared.buckets {
				b := &c.buckets[i]
				if b.crowdedAt != crowdedFull {
					t.Errorf("%s: bucket %d is full, and its index grows at %d sixteenths", describe(g), i, b.crowdedAt)
				}
				if b.pending > 0 || b.crowded() {
					t.Errorf("%s: bucket %d waits for %d pages, and has %d entries in %d slots", describe(g), i, b.pending, b.liveLocked(), b.index.slots())
				}
			}
		}
	}
}

// What the slots of an index may cost follows what they are for, and a cache that is not full pays for entries alone.
func TestGrow_WhenCrowded(t *testing.T) {
	for _, c := range []struct {
		mean          int
		filling, full uint8
	}{
		{0, crowdedFilling, crowdedFilling},
		{fullRecord - 1, crowdedFilling, crowdedFilling},
		{fullRecord, crowdedFilling, crowdedFull},
		{roomyRecord - 1, crowdedFilling, crowdedFull},
		{roomyRecord, crowdedRoomy, crowdedRoomy},
	} {
		if filling, full := whenCrowded(c.mean, false), whenCrowded(c.mean, true); filling != c.filling || full != c.full {
			t.Errorf("records of %d bytes: crowded at %d, full at %d", c.mean, filling, full)
		}
	}
}
