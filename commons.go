package ringcache

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/ringcache/ringcache/internal/policy"
)

// commons is what the buckets of one cache share. It does not lead back to the
// Cache: a Cache that referred to itself could not have a finalizer.
type commons struct {
	seed       [2]uint64
	known      atomic.Uint64 // lanes that glances may count lookups in
	policy     policy.Kind
	pool       *chunkPool
	maxBytes   atomic.Int64 // the bound; Resize changes it
	expected   expectation
	buckets    int
	posBits    uint
	shift      uint8       // log2 of the chunk size
	mostChunks int         // chunks that the rings of a bucket may hold together at the most (I3)
	asideFrom  int         // groups of an index from which a bucket puts Sets aside; 0: none does
	asideMost  int         // longest key and value together that are put aside
	laterFrom  int         // Sets over older values, one after the other, from which the next is put off
	patient    atomic.Bool // there is a bucket that puts Sets aside, or was
	clock
	onEvict func(k, v []byte, reason Reason) // may be nil

	total atomic.Int64 // bytes that divide divides: maxBytes, but while a cache shrinks
	quota atomic.Int64 // bytes that each small bucket may hold, rings and index
	flow  flow

	agendas agendas

	learners [2]learner // of the small buckets, and of the large ones

	// stray counts, for each small bucket, the keys of its hashes that live in
	// a large bucket. Changed under the large bucket's lock.
	stray [bucketCount]atomic.Int32
}

// bound returns the bytes that the cache may hold.
func (s *commons) bound() int { return int(s.maxBytes.Load()) }

// maxValue returns the length of the longest value.
func (s *commons) maxValue() int { return s.bound() / maxValueShare }

// secret is mixed into every hash, so that nobody outside the process can
// choose keys that meet in one bucket. Its second word is odd.
var secret = func() (s [2]uint64) {
	var b [16]byte
	rand.Read(b[:]) // never fails
	s[0] = binary.LittleEndian.Uint64(b[:])
	s[1] = binary.LittleEndian.Uint64(b[8:]) | 1
	return s
}()

// hash returns the hash of a key. Its bits serve, from the lowest: 9 for the
// bucket, 2 for the large bucket, 7 (from bit 33) for the tag, 24 (from bit
// 40) for home and slot.
func (s *commons) hash(k []byte) uint64 { return s.mix(xxhash.Sum64(k)) }

// mix folds the secret into a hash of xxhash.
func (s *commons) mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x^s.seed[0], s.seed[1])
	return hi ^ lo
}

// strays returns the count of large entries whose hashes share h's bucket.
func (s *commons) strays(h uint64) *atomic.Int32 { return &s.stray[h&(bucketCount-1)] }

// log2 returns the logarithm of a power of two.
func log2(n int) uint8 { return uint8(bits.TrailingZeros(uint(n))) }
