package ringcache

import (
	"encoding/binary"
	"testing"

	"github.com/ringcache/ringcache/internal/policy"
)

// An index that waits for pages in a full cache gets them, though new keys alone never need what main holds: else each
// Set would ask again.
func TestGrow_InAFullCache(t *testing.T) {
	for p, full := range map[Policy]uint8{PolicyS3FIFO: crowdedFull, PolicyFIFO: crowdedFIFO} {
		for chunks := 40; chunks <= 60; chunks += 4 {
			g := tiny(16, 4096, chunks)
			g.policy = p
			c := mustCache(t, g)
			value := make([]byte, 100)
			waits := 0
			sets := uint64(8 * g.maxBytes / len(value))
			for id := range sets {
				k := binary.LittleEndian.AppendUint64(nil, id)
				if err := c.Set(k, value); err != nil {
					t.Fatal(err)
				}
				if id > sets/2 && c.bucket(c.shared.hash(k)).pending > 0 {
					waits++
				}
			}
			if waits > 0 {
				t.Errorf("%s: %d of the last %d Sets found an index that waited for pages", describe(g), waits, sets/2)
			}
			for i := range c.shared.buckets {
				b := &c.buckets[i]
				if b.crowdedAt != full {
					t.Errorf("%s: bucket %d is full, and its index grows at %d sixteenths", describe(g), i, b.crowdedAt)
				}
				if b.crowded() {
					t.Errorf("%s: bucket %d has %d entries in %d slots", describe(g), i, b.liveLocked(), b.index.slots())
				}
			}
		}
	}
}

// What the slots of an index may cost follows what they are for, and a cache that is not full pays for entries alone.
func TestGrow_WhenCrowded(t *testing.T) {
	for _, c := range []struct {
		mean                int
		filling, full, fifo uint8
	}{
		{0, crowdedFilling, crowdedFilling, crowdedFilling},
		{fullRecord - 1, crowdedFilling, crowdedFilling, crowdedFilling},
		{fullRecord, crowdedFilling, crowdedFull, crowdedFIFO},
		{roomyRecord - 1, crowdedFilling, crowdedFull, crowdedFIFO},
		{roomyRecord, crowdedRoomy, crowdedRoomy, crowdedRoomy},
	} {
		for kind, full := range map[policy.Kind]uint8{policy.S3FIFO: c.full, policy.FIFO: c.fifo} {
			if got := whenCrowded(kind, c.mean, false); got != c.filling {
				t.Errorf("policy %d, records of %d bytes: crowded at %d while it fills, want %d", kind, c.mean, got, c.filling)
			}
			if got := whenCrowded(kind, c.mean, true); got != full {
				t.Errorf("policy %d, records of %d bytes: crowded at %d when full, want %d", kind, c.mean, got, full)
			}
		}
	}
}
