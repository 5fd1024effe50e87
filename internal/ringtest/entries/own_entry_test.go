package entries

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// No write evicts the entry that it is about: an entry that is there when the write begins is not
// passed to OnRemove as evicted by it, and Update sees it.
func TestWrites_DoNotEvictTheirOwnEntry(t *testing.T) {
	ringtest.SkipUnderRace(t) // one goroutine does it
	const maxBytes = 1 << 20  // with more, most of the time goes into copies
	for _, p := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		for _, call := range []string{"Update", "CompareAndSwap", "SetIfChanged", "Set"} {
			t.Run(fmt.Sprint(p, " ", call), func(t *testing.T) {
				var current string
				evicted := false
				c, err := ringcache.NewWithOptions(ringcache.Options{
					MaxBytes: maxBytes, Policy: p,
					OnRemove: func(r ringcache.Removal) {
						evicted = evicted || string(r.Key) == current && r.Reason == ringcache.RemovedEvicted
					},
				})
				require.NoError(t, err)
				defer c.Close()
				rnd, before := ringtest.NewRand(1), 0
				value := func() []byte {
					n := maxBytes/64 + rnd.IntN(maxBytes/32)
					if rnd.IntN(3) == 0 {
						n = rnd.IntN(2000)
					}
					return bytes.Repeat([]byte{byte(rnd.Uint32())}, n)
				}
				for range 4_000 {
					k, v := fmt.Appendf(nil, "key%d", rnd.IntN(150)), value()
					old, ok := c.Peek(nil, k)
					current, evicted = string(k), false
					switch call {
					case "Update":
						err = c.Update(k, func(e *ringcache.Entry[[]byte]) {
							require.Equal(t, ok, e.Present)
							e.Set(append(e.Value[:len(e.Value)/2], v...)[:len(v)])
						})
					case "CompareAndSwap":
						var swapped bool
						swapped, err = c.CompareAndSwap(k, old, v)
						require.Equal(t, ok, swapped)
						if !ok {
							require.NoError(t, c.Set(k, v))
						}
					case "SetIfChanged":
						_, err = c.SetIfChanged(k, v)
					default:
						err = c.Set(k, v)
					}
					require.NoError(t, err)
					if ok {
						before++
						require.False(t, evicted, "%d bytes by %d", len(old), len(v))
					}
				}
				require.Greater(t, before, 500, "entries that were there")
			})
		}
	}
}
