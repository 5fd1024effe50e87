package ringcache

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// keyIn returns the first key with that prefix that belongs into bucket b.
func keyIn(c *Cache, b *bucket, prefix string) []byte {
	for i := 0; ; i++ {
		if k := fmt.Append(nil, prefix, i); c.bucket(c.shared.hash(k)) == b {
			return k
		}
	}
}

// waitingCache returns a cache of 32 buckets with a key and an older value in each.
func waitingCache(t *testing.T, laterFrom int) (c *Cache, keys [][]byte) {
	t.Helper()
	g := tiny(32, 1024, 16)
	g.laterFrom = laterFrom
	c = mustCache(t, g)
	for i := range 32 {
		k := keyIn(c, &c.buckets[i], "key")
		setPlain(t, c, string(k), "older")
		keys = append(keys, k)
	}
	c.Len() // which makes what waits
	return c, keys
}

// waiting returns in how many buckets a Set waits.
func waiting(c *Cache) (n int) {
	for i := range c.shared.buckets {
		if c.buckets[i].asideTag != 0 {
			n++
		}
	}
	return n
}

// A lane's Sets come back to what waits, though nobody else locks its bucket.
func TestAgenda_ComesBack(t *testing.T) {
	for laterFrom := range 2 {
		c, keys := waitingCache(t, laterFrom*laterNever)
		for i, k := range keys {
			setPlain(t, c, string(k), "newer")
			require.Equal(t, min(i+1, agendaPlaces), waiting(c))
		}
		require.Zero(t, c.buckets[0].asideTag, "the first has been made")
		v, _, _ := c.buckets[0].direct(keys[0], c.shared.hash(keys[0]), false)
		require.Equal(t, "newer", string(v), "in its record")
		for _, k := range keys {
			require.Equal(t, "newer", string(c.Get(nil, k)))
		}
	}
}

// Who finds a bucket busy goes on: the Set whose place is needed waits, and the next one is made at once.
func TestAgenda_SkipsTheBusy(t *testing.T) {
	for name, hold := range map[string]func(b *bucket) (release func()){
		"locked": func(b *bucket) func() { b.mu.mu.Lock(); return b.mu.mu.Unlock },
		"viewed": func(b *bucket) func() { b.mu.share(); return func() { b.mu.unshare(false) } },
	} {
		t.Run(name, func(t *testing.T) {
			c, keys := waitingCache(t, 0)
			for _, k := range keys[:agendaPlaces] {
				setPlain(t, c, string(k), "newer")
			}
			release := hold(&c.buckets[0])
			setPlain(t, c, string(keys[agendaPlaces]), "newer")
			require.NotZero(t, c.buckets[0].asideTag)
			require.Zero(t, c.buckets[agendaPlaces].asideTag, "there was no place to wait")
			require.Equal(t, agendaPlaces, waiting(c))
			release()
			setPlain(t, c, string(keys[agendaPlaces+1]), "newer")
			require.Zero(t, c.buckets[0].asideTag)
			require.NotZero(t, c.buckets[agendaPlaces+1].asideTag)
			for _, k := range keys[:agendaPlaces+2] {
				require.Equal(t, "newer", string(c.Get(nil, k)))
			}
		})
	}
}

// A Set does not take a place that another goroutine of its lane has claimed.
func TestAgenda_Claimed(t *testing.T) {
	c, keys := waitingCache(t, laterNever)
	for lane := range c.shared.agendas {
		require.True(t, c.shared.agendas.of(uint(lane)).here().claim(c.shared.hash(keys[9])))
	}
	setPlain(t, c, string(keys[0]), "newer")
	require.Zero(t, waiting(c))
	v, _, _ := c.buckets[0].direct(keys[0], c.shared.hash(keys[0]), false)
	require.Equal(t, "newer", string(v))
	for lane := range c.shared.agendas {
		c.shared.agendas.of(uint(lane)).here().free()
	}
}

// A cache in which no bucket puts Sets aside has no agendas, and a lane that sets nothing has none either.
func TestAgenda_WhereNeeded(t *testing.T) {
	agendas := func(c *Cache) (n int) {
		for lane := range c.shared.agendas {
			if c.shared.agendas[lane].Load() != nil {
				n++
			}
		}
		return n
	}
	g := tiny(1, 1024, 64)
	g.asideFrom = 1 << 20
	c := mustCache(t, g)
	for range 3 {
		setPlain(t, c, "key", "value")
	}
	require.Zero(t, agendas(c))
	c = mustCache(t, tiny(1, 1024, 64))
	for range 3 {
		setPlain(t, c, "key", "value")
	}
	require.NotZero(t, agendas(c))
	require.Less(t, agendas(c), 4)
}
