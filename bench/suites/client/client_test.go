package client

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCachesReturnWhatWasSet(t *testing.T) {
	o := Options{Capacity: 1000, KeySize: 5, ValueSize: 10, Ample: true, TTL: time.Hour}
	for _, name := range Names {
		t.Run(name, func(t *testing.T) {
			c, err := Open(name, o)
			require.NoError(t, err)
			defer c.Close()
			var buf []byte
			_, ok := c.Get(&buf, "absent")
			assert.False(t, ok)
			for i := range 100 {
				c.Set(strconv.Itoa(i), strings.Repeat("v", i))
			}
			assert.Equal(t, 100, c.Len()) // which waits for ristretto and theine
			for i := range 100 {
				v, ok := c.Get(&buf, strconv.Itoa(i))
				assert.True(t, ok)
				assert.Equal(t, strings.Repeat("v", i), v)
			}
		})
	}
}

func TestOpenRefusesAnUnknownName(t *testing.T) {
	_, err := Open("memcached", Options{Capacity: 1})
	require.ErrorContains(t, err, "memcached")
}

func TestRingcacheDoesNotAllocate(t *testing.T) {
	c, err := Open(Ringcache, Options{Capacity: 1000, KeySize: 5, ValueSize: 100, Ample: true})
	require.NoError(t, err)
	defer c.Close()
	value := strings.Repeat("v", 100)
	c.Set("key", value)
	buf := make([]byte, 0, len(value))
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		c.Set("key", value)
		c.Get(&buf, "key")
	}))
}

func TestRingcacheHoldsAsManyEntriesAsItsCapacity(t *testing.T) {
	for _, size := range []int{10, 1000} {
		o := Options{Capacity: 20_000, KeySize: 10, ValueSize: size}
		maxBytes, err := bound(o)
		require.NoError(t, err)
		n, err := holds(o, maxBytes)
		require.NoError(t, err)
		assert.InEpsilon(t, o.Capacity, n, 0.02, "values of %d bytes", size)
	}
}

func TestBoundIsAtLeastTheMinimum(t *testing.T) {
	for _, ample := range []bool{false, true} {
		maxBytes, err := bound(Options{Capacity: 10, KeySize: 5, ValueSize: 5, Ample: ample})
		require.NoError(t, err)
		assert.Equal(t, leastBytes, maxBytes)
	}
}
