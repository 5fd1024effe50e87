package ringcache

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// eachApart calls fn with a cache in which all hashes are equal, with and without Sets
// that are put aside.
func eachApart(t *testing.T, fn func(t *testing.T, c *Cache)) {
	g := tiny(1, 4096, 16)
	g.seed = [2]uint64{}
	for g.asideFrom = range 2 {
		t.Run(fmt.Sprintf("aside=%d", g.asideFrom), func(t *testing.T) {
			c := mustCache(t, g)
			fillCache(t, c, 0, 20, 0)
			require.Equal(t, g.asideFrom > 0, c.buckets[0].index.patient)
			fn(t, c)
		})
	}
}

// Keys of equal length and hash are told apart wherever they differ, and whichever
// of their bits is set: in lookups, alone and in a batch, and in Sets.
func TestDirect_KeysThatDifferInOneByte(t *testing.T) {
	eachApart(t, func(t *testing.T, c *Cache) {
		for n := range 40 {
			for at := range n {
				for _, bytes := range [][2]byte{{'a', 'c'}, {'c', 'a'}, {0, 0xff}, {0xff, 0}, {1, 2}} {
					a, b := make([]byte, n), make([]byte, n)
					a[at], b[at] = bytes[0], bytes[1]
					checkApart(t, c, a, b)
				}
			}
		}
	})
}

// The same for keys that differ in two words, in bits that another kind of
// combination would make vanish.
func TestDirect_KeysThatDifferInTwoWords(t *testing.T) {
	eachApart(t, func(t *testing.T, c *Cache) {
		for _, pair := range [][2]string{
			{"aaaaaaaa" + "aaaaaaaa", "bbbbbbbb" + "bbbbbbbb"},
			{"aaaaaaaa" + "aaaaaaaa", "bbbbbbbb" + "cccccccc"},
			{"aaaaaaaa" + "bbbbbbbb", "bbbbbbbb" + "aaaaaaaa"},
			{"key-00000000", "key-00010001"},
		} {
			checkApart(t, c, []byte(pair[0]), []byte(pair[1]))
			checkApart(t, c, []byte(pair[1]), []byte(pair[0]))
		}
	})
}

// checkApart checks that what is done to key b does not change key a.
func checkApart(t *testing.T, c *Cache, a, b []byte) {
	t.Helper()
	c.Del(a)
	c.Del(b)
	what := fmt.Sprintf("%x and %x", a, b)
	require.NoError(t, c.Set(a, []byte("A")))
	require.False(t, c.Has(b), what)
	openLanes(c)
	require.Nil(t, c.Get(nil, b), what)
	vals := make([][]byte, 2)
	_, hits := c.GetBatch(nil, [][]byte{a, b}, vals)
	require.Equal(t, 1, hits, what)
	require.NoError(t, c.Set(b, []byte("B")))
	require.NoError(t, c.Set(b, []byte("C")))
	openLanes(c)
	require.Equal(t, "A", string(c.Get(nil, a)), what)
	require.Equal(t, "C", string(c.Get(nil, b)), what)
}
