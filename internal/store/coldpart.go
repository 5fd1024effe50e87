package store

import (
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/ring"
)

// coldPart is a bucket's cold part. Large buckets, and those of a cache without a Compressor,
// have none: they share an empty one that never changes (Shared.noCold).
type coldPart struct {
	queue     ring.Ring // records that wait for the compressor
	store     ring.Ring // the cold ring: its records were compressed, or left as they are
	on        bool
	begun     bool              // the policy has dropped something: memory is full
	signalled bool              // the goroutine has been told to look at the queue
	scout     bool              // it always has the full share
	most      int               // chunks that the cold part may hold
	queueMost int               // chunks of these for the queue
	from      [RingCount]uint32 // records that came from small and main lately
}

// held returns how many chunks the rings have from the pool.
func (c *coldPart) held() int { return c.queue.Held() + c.store.Held() }

//go:norace
func (c *coldPart) size() int { return int(c.queue.Size + c.store.Size) }

// oldest returns the ring with the oldest records of the cold part.
func (c *coldPart) oldest() policy.Ring {
	if c.store.Held() > 0 {
		return policy.Cold
	}
	return policy.Queue
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
		c.begun, c.signalled = false, false
	}
}

// newColdPart returns the cold part of a bucket.
func newColdPart(s *Shared, number int) *coldPart {
	c := &coldPart{on: true, scout: number%scoutEach == 0}
	c.init(s)
	return c
}

// init makes the rings of a cold part ready for use.
func (c *coldPart) init(s *Shared) {
	c.queue.Init(s.Pool, s.Shift, s.PosBits)
	c.store.Init(s.Pool, s.Shift, s.PosBits)
}
