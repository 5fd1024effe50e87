package drive

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/bench/harness"
	"github.com/ringcache/ringcache/bench/suites/client"
)

func open(t *testing.T) client.Cache {
	c, err := client.Open(client.Ringcache, client.Options{
		Capacity: 1000, KeySize: 5, ValueSize: 5, Ample: true,
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestWorkersGoThroughAllKeys(t *testing.T) {
	traffic := Traffic{Cache: open(t), Keys: []string{"a", "b", "c"}, Values: []string{"1", "2", "3"}}
	w := &worker{Traffic: traffic, at: 2, writes: true}
	w.write()
	w.read()
	assert.Equal(t, batch, w.hits)
	assert.Equal(t, (2+2*batch)%3, w.at)
	assert.Equal(t, 3, w.Cache.Len())
}

func TestWorkersDoSomethingHoweverShortTheTime(t *testing.T) {
	keys := []string{"a"}
	r := Traffic{Cache: open(t), Keys: keys, Values: keys, Readers: 1, Writers: 1}.For(0)
	assert.Positive(t, r.Reads)
	assert.Positive(t, r.Writes)
}

func TestRatesAreThoseOfReadersAndWriters(t *testing.T) {
	r := rates([]*worker{
		{n: 1000, hits: 750, took: time.Second},
		{n: 1000, hits: 250, took: 500 * time.Millisecond},
		{n: 300, took: time.Second, writes: true},
	})
	assert.Equal(t, Rates{Reads: 3000, Writes: 300, Hits: 0.5}, r)
}

func TestReplayRefusesAWrongValue(t *testing.T) {
	c := open(t)
	z := zipf{requests: 1000, seed: 1, valueSize: 100}
	share, err := z.replay(c)
	require.NoError(t, err)
	assert.Positive(t, share)
	z.valueSize = 101 // hits have the values of the first replay
	_, err = z.replay(c)
	require.ErrorContains(t, err, "key:")
}

func TestRatioFindsTheSameAgain(t *testing.T) {
	for _, load := range Ratio([]int{1000}, true).Loads {
		spec := harness.Spec{Load: load.Name, Store: client.GolangLRU, Scale: Quick, Round: 1}
		f, err := load.Run(spec)
		require.NoError(t, err)
		assert.InDelta(t, 15.4, f[hitShare], 1, load.Name)
		assert.EqualValues(t, 1000, f[held], load.Name)
		again, err := load.Run(spec)
		require.NoError(t, err)
		assert.Equal(t, f, again)
	}
}
