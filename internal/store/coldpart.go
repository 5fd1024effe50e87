package store

import (
	"github.com/ringcache/ringcache/internal/cold"
	"github.com/ringcache/ringcache/internal/pack"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ring"
)

// coldPart is a bucket's cold part. Large buckets, and those of a cache without a Compressor,
// have none: they share an empty one that never changes (Shared.noCold).
type coldPart struct {
	rings     [policy.Rings - policy.Queue]ring.Ring
	on        bool
	begun     bool // the policy has dropped something: memory is full
	signalled bool // the goroutine has been told to look at the queue
	role      cold.Role
	number    int32 // of the bucket
	most      int   // chunks that the cold part may hold
	queueMost int   // chunks of these for the queue
	uses      cold.Uses
	from      [RingCount]uint32 // records that came from small and main lately
	inserts   uint64            // records of keys that were not there
}

// queue returns the ring of the records that wait for the compressor.
func (c *coldPart) queue() *ring.Ring { return &c.rings[0] }

// store returns the cold ring: its records were compressed, or left as they are.
func (c *coldPart) store() *ring.Ring { return &c.rings[policy.Cold-policy.Queue] }

func (c *coldPart) entries() int { return c.queue().Entries + c.store().Entries }

// held returns how many chunks the rings have from the pool.
func (c *coldPart) held() int {
	if !c.on {
		return 0
	}
	return c.queue().Held() + c.store().Held()
}

func (c *coldPart) bytes() int { return c.queue().EntryBytes + c.store().EntryBytes }

//go:norace
func (c *coldPart) size() int { return int(c.queue().Size + c.store().Size) }

// oldest returns the ring with the oldest records of the cold part.
func (c *coldPart) oldest() policy.Ring {
	if c.store().Held() > 0 {
		return policy.Cold
	}
	return policy.Queue
}

// count adds sign, 1 or -1, to the uses of the dictionary of the record at pos of ring r, if that
// is packed.
func (c *coldPart) count(r *ring.Ring, pos uint64, hd record.Header, sign int32) {
	if hd.Kind.Base() != record.Packed || r != c.store() {
		return // a header outside the cold ring that says it is packed is damaged
	}
	if dict := c.dictNumber(pos, hd); dict < pack.Dicts {
		c.uses[dict] += sign
	}
}

// dictNumber returns the number of the dictionary that the packed record at pos of the cold
// ring needs.
func (c *coldPart) dictNumber(pos uint64, hd record.Header) uint8 {
	if hd.ValueLen == 0 {
		return pack.Dicts // none: it is damaged
	}
	return c.store().Run(pos + uint64(hd.Size+hd.KeyLen))[0]
}

// addGhosts adds the slots of the cold part, live or not, to the ghosts of the rings that
// its records came from: the policy has dropped them.
func (c *coldPart) addGhosts(n *[RingCount]int, slots int) {
	if sum := int(c.from[policy.Small]) + int(c.from[policy.Main]); sum > 0 {
		main := int(int64(slots) * int64(c.from[policy.Main]) / int64(sum))
		n[policy.Small] += slots - main
		n[policy.Main] += main
	}
}

// forget resets what the cold part knows, after its rings were emptied.
func (c *coldPart) forget() {
	if c.on {
		c.begun, c.signalled, c.uses = false, false, cold.Uses{}
	}
}

// ColdCounts are added up over buckets, to learn whether the cold part pays and which dictionaries
// are needed.
type ColdCounts struct {
	Role    cold.Role // of the bucket
	Inserts uint64    // records of keys that were not there
	Uses    cold.Uses // live packed records of each dictionary
}

// Counts returns the counts of the bucket.
func (c Cold) Counts() ColdCounts {
	part := c.of.cold
	return ColdCounts{Role: part.role, Inserts: part.inserts, Uses: part.uses}
}

// newColdPart returns the cold part of a bucket.
func newColdPart(s *Shared, number int) *coldPart {
	c := &coldPart{on: true, number: int32(number), role: roleOf(number)}
	c.init(s)
	return c
}

// init makes the rings of a cold part ready for use.
func (c *coldPart) init(s *Shared) {
	for i := range c.rings {
		c.rings[i].Init(s.Pool, s.Shift, s.PosBits)
	}
}
