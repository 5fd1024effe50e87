package sim

import "github.com/ringcache/ringcache/internal/policy"

// EngineOptions are the settings of the engine.
type EngineOptions struct {
	Buckets int     // beside the four large ones
	Ghosts  float64 // ghosts for each entry that is held
}

// Engine is what the library does. Its index has room for a third to a half as many
// ghosts as entries, and for nearly as many where entries are large.
var Engine = EngineOptions{Buckets: 512, Ghosts: 0.6}

// chunksPerBucket is how many chunks a bucket has at the least in the library,
// and so in most caches.
const chunksPerBucket = 32

// engine runs the library's own policy, package internal/policy, in buckets that share what they
// learn. It does what large.go and internal/store (room.go, tail.go, limit.go, learn.go) do, in
// units of the same chunks, but knows no bytes, no index and no pool:
//
//   - Ghosts are forgotten by chance, as stale slots of an index are, once there
//     are so many of them for each entry of the bucket.
//   - Nothing is set aside for headers and index, nor for buckets that need a
//     chunk beyond their quota.
type engine struct {
	entries
	o         EngineOptions
	chunk     int // weight of a chunk
	standings []standing
	buckets   []engineBucket
	learners  [2]policy.Learner // of the buckets, and of the large ones
	arena     engineArena
	draws     uint64 // random numbers that were drawn
}

// standing is what the index of a cache knows of a key.
type standing struct {
	ghost uint32      // place among the bucket's ghosts, counted from 1; 0 if it is none
	ring  policy.Ring // where it is; if it is a ghost, where it was
	freq  uint8
	left  int  // if it is a ghost, what the ring had released before it
	large bool // in a large bucket
	mark  bool // in main: on probation; in small: it had a ghost; if it is a ghost: it was found
}

// NewEngine returns the library's policy with the settings o.
func NewEngine(o EngineOptions) Make {
	return func(capacity int64, keys int) Policy {
		e := &engine{
			entries:   newEntries(capacity, keys),
			o:         o,
			chunk:     max(1, int(capacity)/(o.Buckets*chunksPerBucket)),
			standings: make([]standing, keys),
			buckets:   make([]engineBucket, o.Buckets),
		}
		for i := range e.buckets {
			e.buckets[i].init(e, i, false)
		}
		for i := range e.arena.buckets {
			e.arena.buckets[i].init(e, i, true)
		}
		return e
	}
}

func (e *engine) Get(key uint32) bool {
	s := &e.standings[key]
	if !e.holds(key) {
		if s.ghost > 0 {
			e.bucket(key, s.large).seek(s)
		}
		return false
	}
	s.freq = min(s.freq+1, policy.MaxFreq)
	return true
}

func (e *engine) Access(key, size uint32) bool {
	if e.Get(key) {
		return true
	}
	s := &e.standings[key]
	n := int(size)
	if n > max(1, int(e.capacity)/maxValueShare) {
		return false
	}
	large := e.isLarge(n)
	if s.ghost > 0 && s.large != large {
		e.bucket(key, s.large).forget(s.ghost) // a cache would not find it either
	}
	b := e.bucket(key, large)
	if large {
		e.flowIn(1, n, true)
		e.reclaim(b, n)
	} else {
		e.arena.everSmall += n
		e.lend(b, n)
	}
	b.set(key, n)
	return false
}

// bucket returns the bucket of a key, or its large bucket.
func (e *engine) bucket(key uint32, large bool) *engineBucket {
	h := mix(uint64(key))
	if large {
		return &e.arena.buckets[h>>32%largeBuckets]
	}
	return &e.buckets[h%uint64(len(e.buckets))]
}

// spare returns the weight that is in nobody's hands.
func (e *engine) spare() int { return int(e.capacity - e.used) }

// learner returns the one of the large buckets, or that of the others.
func (e *engine) learner(large bool) *policy.Learner {
	if large {
		return &e.learners[1]
	}
	return &e.learners[0]
}

// below returns a random number below n.
func (e *engine) below(n int) int {
	e.draws++
	return int(mix(e.draws) % uint64(n))
}
