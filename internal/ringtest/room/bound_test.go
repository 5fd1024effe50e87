package room

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// A snapshot that is read into a full cache takes no more than the bound, though rings have
// borrowed the chunks of their heads. Of 900 seeds the first one took more.
func TestBound_HoldsWhileASnapshotIsRead(t *testing.T) {
	for _, seed := range []uint64{346, 347} {
		rnd := ringtest.NewRand(seed)
		g := ringtest.Default(2 << 20)
		g.Seed = [2]uint64{seed, ringtest.TestSeed[1]}
		g.Policy = ringcache.Policy(seed % 2)
		c := ringtest.NewCache(g)
		fill := func(n int) {
			for range n {
				_ = c.Set(ringtest.TrafficKey(nil, rnd.Uint32N(20_000)), make([]byte, rnd.IntN(600)+1))
			}
		}
		fill(2000)
		var saved bytes.Buffer
		_, err := c.WriteSnapshot(&saved)
		require.NoError(t, err)
		for range 4 {
			fill(rnd.IntN(12_000))
			bound := ringtest.LeastMaxBytes + rnd.IntN(4*ringtest.LeastMaxBytes)
			require.NoError(t, c.Resize(bound))
			fill(rnd.IntN(30))
			_, err := c.ReadSnapshot(bytes.NewReader(saved.Bytes()))
			require.NoError(t, err)
			require.LessOrEqual(t, ringtest.Shared(c).Pool.Used(), bound, "seed %d", seed)
			require.NoError(t, c.Resize(2<<20))
		}
		require.NoError(t, c.Close())
	}
}
