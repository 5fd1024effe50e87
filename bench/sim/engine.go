package sim

import "github.com/ringcache/ringcache/internal/policy"

// EngineOptions are the settings of the engine.
type EngineOptions struct {
	Buckets int     // buckets of a cache that is not sparse
	Ghosts  float64 // ghosts for each entry that is held
}

// Engine is what the library does. Its index has room for a third to three
// quarters as many ghosts as entries, a little more where entries are large.
var Engine = EngineOptions{Buckets: 512, Ghosts: 0.6}

// What bucket.go, chunk.go and large.go of the library have under these names.
const (
	chunksPerBucket = 32
	largeBuckets    = 4
	sparseEntries   = 32
	denseEntries    = 48
	leastRecords    = 16
)

// engine runs the library's own policy, package internal/policy, in buckets that
// only share what they learn. It does what bucket.go, evict.go and learn.go do,
// in units of the same chunks, but knows no bytes, no index and no pool:
//
//   - Ghosts are forgotten by chance, as stale slots of an index are, once there
//     are so many of them for each entry of the bucket.
//   - A bucket never has more than its own share, where the library's borrow a
//     chunk from each other for a moment.
//   - The library keeps entries above an eighth of a bucket in four large
//     buckets, and so it does with nearly all when the cache is sparse, which is
//     when a bucket would hold fewer than 32 entries of the mean size. Here all
//     entries are in the many buckets or, as long as the cache is sparse, in
//     four. One that is larger than a bucket is not kept.
type engine struct {
	entries
	o         EngineOptions
	chunk     int // weight of a chunk
	standings []standing
	buckets   []engineBucket
	learners  [2]policy.Learner // of the many buckets, and of the four
	sparse    bool
	draws     uint64 // random numbers that were drawn

	// What was set lately.
	records int
	weight  int
}

// standing is what the index of a cache knows of a key.
type standing struct {
	ghost uint32      // place among the bucket's ghosts, counted from 1; 0 if it is none
	ring  policy.Ring // where it is; if it is a ghost, where it was
	freq  uint8
	trial bool // came to main as a ghost, and is not yet judged
}

// NewEngine returns the library's policy with the settings o.
func NewEngine(o EngineOptions) Make {
	return func(capacity int64, keys int) Policy {
		e := &engine{
			entries:   newEntries(capacity, keys),
			o:         o,
			chunk:     max(1, int(capacity)/(o.Buckets*chunksPerBucket)),
			standings: make([]standing, keys),
		}
		e.deal(o.Buckets)
		return e
	}
}

func (e *engine) Access(key, size uint32) bool {
	if e.holds(key) {
		s := &e.standings[key]
		s.freq = min(s.freq+1, policy.MaxFreq)
		return true
	}
	e.weigh(int(size))
	if b := e.bucket(key); int(size) <= b.room() {
		b.set(key, int(size))
	}
	return false
}

func (e *engine) bucket(key uint32) *engineBucket {
	return &e.buckets[mix(uint64(key))%uint64(len(e.buckets))]
}

// learner returns the one that the buckets share.
func (e *engine) learner() *policy.Learner {
	if e.sparse {
		return &e.learners[1]
	}
	return &e.learners[0]
}

// weigh counts what is set, and decides whether the cache is sparse.
func (e *engine) weigh(size int) {
	e.records++
	e.weight += size
	if e.records < leastRecords || e.o.Buckets <= largeBuckets {
		return
	}
	perBucket := float64(e.capacity) / float64(e.o.Buckets) * float64(e.records) / float64(e.weight)
	switch {
	case e.sparse && perBucket >= denseEntries:
		e.sparse = false
		e.deal(e.o.Buckets)
	case !e.sparse && perBucket < sparseEntries:
		e.sparse = true
		e.deal(largeBuckets)
	}
	if int64(e.weight) > e.capacity {
		e.records, e.weight = e.records/2, e.weight/2
	}
}

// deal divides the capacity among n buckets, and all entries by their hashes.
// Those that find no room are dropped, and ghosts are forgotten.
func (e *engine) deal(n int) {
	old := e.buckets
	e.buckets = make([]engineBucket, n)
	chunks := int(e.capacity) / e.chunk
	for i := range e.buckets {
		// What does not divide goes to the first ones.
		b := engineBucket{engine: e, policy: policy.New(policy.S3FIFO), chunks: (chunks + n - 1 - i) / n}
		for ring := range b.rings {
			b.rings[ring].chunk = e.chunk
		}
		e.buckets[i] = b
	}
	for i := range old {
		for _, key := range old[i].ghosts {
			e.standings[key].ghost = 0
		}
		for ring := range old[i].rings {
			for q := &old[i].rings[ring].queue; q.len() > 0; {
				e.enter(q.pop(), policy.Ring(ring))
			}
		}
	}
}

// enter takes over an entry from another bucket.
func (e *engine) enter(key uint32, ring policy.Ring) {
	b, size := e.bucket(key), int(e.size[key])
	if b.used()+size > b.room() {
		e.remove(key)
		return
	}
	b.rings[ring].push(key, size, b.chunks)
}

// below returns a random number below n.
func (e *engine) below(n int) int {
	e.draws++
	return int(mix(e.draws) % uint64(n))
}
