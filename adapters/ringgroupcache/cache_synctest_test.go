//go:build go1.25

package ringgroupcache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/groupcache/groupcache-go/v3/transport"
)

func TestCache_ValueEndsAtItsExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t)
		c.Add("key", transport.ByteViewWithExpire([]byte("value"), time.Now().Add(time.Second)))
		time.Sleep(900 * time.Millisecond)
		requireValue(t, c, "key", "value")
		time.Sleep(100 * time.Millisecond)
		requireNone(t, c, "key")
	})
}

// To the cache, a time to live of 0 is for ever.
func TestCache_ValueThatEndsNowIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t)
		for _, left := range []time.Duration{0, -1, 1, 99 * time.Millisecond} {
			c.Add("key", transport.ByteViewFrom("old"))
			c.Add("key", transport.ByteViewWithExpire([]byte("new"), time.Now().Add(left)))
			requireNone(t, c, "key")
		}
	})
}
