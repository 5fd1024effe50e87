package ringcache

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A length is usual if nearly all values have it, and no longer than that.
func TestLengths_Usual(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var l lengths
	last := func(n int, of func() int) (usual map[uint16]int) {
		usual = map[uint16]int{}
		for range n {
			usual[l.note(of())]++
		}
		return usual
	}
	always := func(n int) func() int { return func() int { return n } }
	oneIn := func(n, often, seldom int) func() int {
		return func() int {
			if rnd.IntN(n) == 0 {
				return seldom
			}
			return often
		}
	}
	require.Equal(t, map[uint16]int{0: lengthTrusted - 1, 100: 1}, last(lengthTrusted, always(100)))
	require.Equal(t, map[uint16]int{100: 1000}, last(1000, always(100)))

	// Another one now and then changes nothing; twenty of them do, and soon it is they.
	require.Equal(t, map[uint16]int{100: 1}, last(1, always(90)))
	require.Greater(t, last(10_000, oneIn(32, 100, 7))[100], 9_900)
	last(lengthMost, always(100))
	require.Equal(t, map[uint16]int{100: 8, 0: 6 + lengthTrusted, 7: 1}, last(lengthMost/lengthPerOther+lengthTrusted-1, always(7)))

	// Four in five, or two that are as frequent, are not nearly all.
	last(2*lengthMost, always(3))
	last(10_000, oneIn(5, 100, 90))
	require.Less(t, last(100_000, oneIn(5, 100, 90))[100], 1_000)
	require.Equal(t, map[uint16]int{0: 10_000}, last(10_000, oneIn(2, 100, 90)))
	require.Equal(t, map[uint16]int{0: 10_000}, last(10_000, func() int { return 50 + rnd.IntN(100) }))

	// A length that needs more bits is taken for another one: it is a guess.
	require.Equal(t, uint16(1), func() uint16 { last(1000, always(1<<16+1)); return l.note(1) }())
}

// What length a glance takes for granted changes nothing that it finds: the value is read
// and written to its last byte, and not beyond.
func TestGlance_Guess(t *testing.T) {
	has := glances(t)
	lengths := []int{0, 1, 4, 7, 8, 15, 16, 31, 32, 63, 64, 65, 100, 128, 129, 200, 1000}
	c := glanced{Cache: mustCache(t, tiny(1, 4096, 64)), t: t}
	b := &c.buckets[0]
	for _, vlen := range lengths {
		k := []byte{byte(vlen), byte(vlen >> 8), 'k'}
		v := stamp{id: 1, version: uint64(vlen), size: vlen}.value([]byte{})
		require.NoError(t, c.Set(k, v))
		for _, guess := range append(lengths, vlen-1, vlen+1, 1<<16-1) {
			b.lock()
			b.rings[0].guess, b.rings[1].guess = uint16(guess), uint16(guess)
			b.mu.Unlock()
			c.get(k, v)
		}
	}
	require.Equal(t, has, c.answered > 0)
	if has {
		require.Equal(t, c.asked, c.answered)
	}
}

// A bucket guesses what it has been given.
func TestGlance_GuessLearned(t *testing.T) {
	c := mustCache(t, tiny(1, 4096, 64))
	guess := func() uint16 {
		b := &c.buckets[0]
		b.mu.hold()
		defer b.mu.release()
		return b.rings[0].guess
	}
	set := func(from, n, size int) {
		for i := range n {
			k := []byte{byte(from + i), byte((from + i) >> 8)}
			require.NoError(t, c.Set(k, make([]byte, size)))
		}
	}
	set(0, lengthTrusted-1, 40)
	require.Equal(t, uint16(0), guess())
	set(1000, 1, 40)
	require.Equal(t, uint16(40), guess())
	set(2000, 2*lengthMost, 50)
	require.Equal(t, uint16(50), guess())
}
