package load

import "math/bits"

// Rand is a xorshift64* generator: fast, and the same sequence everywhere. It is
// for one goroutine.
type Rand struct{ state uint64 }

// NewRand returns a generator; every seed starts another sequence.
func NewRand(seed uint64) Rand {
	return Rand{Mix(seed) | 1} // the state must not be 0
}

// Uint64 returns 64 random bits.
func (r *Rand) Uint64() uint64 {
	r.state ^= r.state >> 12
	r.state ^= r.state << 25
	r.state ^= r.state >> 27
	return r.state * 0x2545f4914f6cdd1d
}

// Below returns a number in [0, n).
func (r *Rand) Below(n uint64) uint64 {
	hi, _ := bits.Mul64(r.Uint64(), n)
	return hi
}

// ZipfIDs draws count ids below n, Zipf-distributed with exponent s.
func ZipfIDs(rnd *Rand, n uint64, s float64, count int) []uint32 {
	z := NewZipf(rnd.Uint64(), n, s)
	ids := make([]uint32, count)
	for i := range ids {
		ids[i] = uint32(scatteredID(z.Next(), n))
	}
	return ids
}

// scatter is a prime above any number of entries, so that multiplying by it
// permutes the ids.
const scatter = 11400714819323198393

// scatteredID says which id has a rank. Hot entries stored one after the other
// would share cache lines and pages; spread, they do not.
func scatteredID(rank, n uint64) uint64 {
	hi, lo := bits.Mul64(rank, scatter)
	return bits.Rem64(hi, lo, n)
}
