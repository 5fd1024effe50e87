package entries

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// Writes that read before they write: what becomes of an entry's expiry, and of its standing
// with the policy.

// readModifyWrites are the calls that change the value of a key, or find that it need not be
// changed; each is given the value that is there.
var readModifyWrites = map[string]func(c *ringcache.Cache, k, old []byte) error{
	"Update": func(c *ringcache.Cache, k, old []byte) error {
		return c.Update(k, ringtest.Replace(func(old []byte, ok bool) ([]byte, bool) {
			return other(old), true
		}))
	},
	"Update, TTL of a new entry": func(c *ringcache.Cache, k, old []byte) error {
		return c.Update(k, ringtest.Replace(func(old []byte, ok bool) ([]byte, bool) {
			return append(old, '.'), true
		}, time.Second))
	},
	"Update, brief TTL of a new entry": func(c *ringcache.Cache, k, old []byte) error {
		return c.Update(k, ringtest.Replace(func(old []byte, ok bool) ([]byte, bool) {
			return old, true
		}, 1))
	},
	"Append": func(c *ringcache.Cache, k, old []byte) error {
		return c.Update(k, ringtest.Append([]byte("suffix")))
	},
	"Append of nothing": func(c *ringcache.Cache, k, old []byte) error {
		return c.Update(k, ringtest.Append(nil))
	},
	"CompareAndSwap": func(c *ringcache.Cache, k, old []byte) error {
		return stores(c.CompareAndSwap(k, old, append(old, "longer"...)))
	},
	"CompareAndSwap, shorter": func(c *ringcache.Cache, k, old []byte) error {
		return stores(c.CompareAndSwap(k, old, old[:len(old)/2]))
	},
	"CompareAndSwap, not equal": func(c *ringcache.Cache, k, old []byte) error {
		_, err := c.CompareAndSwap(k, other(old), old)
		return err
	},
	"SetIfChanged": func(c *ringcache.Cache, k, old []byte) error {
		return stores(c.SetIfChanged(k, other(old)))
	},
	"SetIfChanged, equal": func(c *ringcache.Cache, k, old []byte) error {
		_, err := c.SetIfChanged(k, old)
		return err
	},
}

// other returns a value of the same length, if that is not 0, with other bytes.
func other(v []byte) []byte { return []byte(strings.Repeat("o", max(1, len(v)))) }

func stores(stored bool, err error) error {
	if !stored && err == nil {
		return errors.New("it stores nothing")
	}
	return err
}

func TestReadModifyWrite_KeepsTheExpiry(t *testing.T) {
	t.Parallel()
	for name, call := range readModifyWrites {
		for _, size := range []int{1, 100, 33_000, 70_000, floorValue - 10} {
			for _, byDefault := range []time.Duration{0, time.Hour} {
				for _, ttl := range []time.Duration{0, time.Minute} {
					what := fmt.Sprintf("%s of %d bytes set for %v, Options.TTL %v", name, size, ttl, byDefault)
					t.Run(what, func(t *testing.T) { keepsTheExpiry(t, call, size, byDefault, ttl) })
				}
			}
		}
	}
}

// keepsTheExpiry calls a method for an entry of size bytes that was set for ttl, and for one that
// does not expire but has room for an expiry.
func keepsTheExpiry(
	t *testing.T, call func(c *ringcache.Cache, k, old []byte) error, size int, byDefault,
	ttl time.Duration,
) {
	k, old := []byte("key"), []byte(strings.Repeat("v", size))
	g := ringtest.Default(ringtest.MinBytes)
	g.TTL = byDefault
	c, age := ringtest.TimedCache(t, g)
	require.NoError(t, c.SetWithTTL(k, old, ttl))
	*age += time.Second
	require.NoError(t, call(c, k, old))
	left, ok := c.TTL(k)
	require.True(t, ok)
	require.Equal(t, max(0, ttl-time.Second), left)
	require.True(t, c.Touch(k, 0))
	require.NoError(t, c.Set(k, old))
	require.True(t, c.Touch(k, 0), "it has room for an expiry, and has none")
	require.NoError(t, call(c, k, old))
	left, ok = c.TTL(k)
	require.True(t, ok)
	require.Zero(t, left)
}

// Where there is no entry, that of a call gets Options.TTL; an expired or a negative one is none.
func TestReadModifyWrite_NewEntryGetsTheDefault(t *testing.T) {
	keep := func([]byte, bool) ([]byte, bool) { return []byte("new"), true }
	creates := map[string]func(c *ringcache.Cache, k []byte) error{
		"Update": func(c *ringcache.Cache, k []byte) error {
			return c.Update(k, ringtest.Replace(keep))
		},
		"Append": func(c *ringcache.Cache, k []byte) error {
			return c.Update(k, ringtest.Append([]byte("new")))
		},
		"SetIfChanged": func(c *ringcache.Cache, k []byte) error {
			return stores(c.SetIfChanged(k, []byte("new")))
		},
		"Update with a TTL": func(c *ringcache.Cache, k []byte) error {
			return c.Update(k, ringtest.Replace(keep, time.Hour))
		},
		"SetIfAbsent": func(c *ringcache.Cache, k []byte) error {
			out, stored, err := c.SetIfAbsent(nil, k, []byte("new"), time.Hour)
			if out != nil {
				return errors.New("it returns a value")
			}
			return stores(stored, err)
		},
	}
	for name, call := range creates {
		for _, before := range []string{"absent", "expired", "stale", "negative"} {
			g := ringtest.Tiny(2, 1024, 64)
			g.TTL = time.Hour
			if before == "stale" {
				g.StaleIfError = time.Hour
			}
			c, age := ringtest.TimedCache(t, g)
			k := []byte("key")
			switch before {
			case "expired", "stale":
				require.NoError(t, c.SetWithTTL(k, []byte("old"), time.Second))
			case "negative":
				_, err := c.GetOrLoad(t.Context(), nil, k, ringtest.FindsNothing)
				require.ErrorIs(t, err, ringcache.ErrAbsent)
			}
			*age += 2 * time.Second
			require.NoError(t, call(c, k), "%s, %s", name, before)
			v, left, ok := c.GetWithTTL(nil, k)
			require.True(t, ok, "%s, %s", name, before)
			require.Equal(t, "new", string(v), "%s, %s", name, before)
			require.Equal(t, time.Hour, left, "%s, %s", name, before)
		}
	}
}

// A value in the cold part, packed or on its way there, has its expiry too.
func TestReadModifyWrite_InTheColdPart(t *testing.T) {
	k, old := []byte("key"), []byte(strings.Repeat("a value that can be compressed ", 8))
	for name, call := range readModifyWrites {
		for _, packed := range []bool{false, true} {
			g := ringtest.WithCold(ringtest.Tiny(2, 1024, 64), ringtest.FlateCompressor{})
			g.ByHand = true
			c, _ := ringtest.TimedCache(t, g)
			require.NoError(t, c.SetWithTTL(k, old, time.Minute))
			b := int(ringtest.BucketOf(c, ringtest.HashOf(c, k)).Number)
			for ringtest.SinkNext(c, b) > 0 {
			}
			if packed {
				ringtest.CompressAll(c)
			}
			require.NoError(t, call(c, k, old))
			left, ok := c.TTL(k)
			require.True(t, ok, "%s, packed %v", name, packed)
			require.Equal(t, time.Minute, left, "%s, packed %v", name, packed)
			require.NoError(t, ringtest.Validate(c))
		}
	}
}

// Each is one read, whether it stores or not, of small entries and large ones.
func TestReadModifyWrite_CountsAsOneRead(t *testing.T) {
	calls := map[string]func(c *ringcache.Cache, k, old []byte) error{
		"SetIfAbsent": func(c *ringcache.Cache, k, _ []byte) error {
			_, err := ringtest.SetIfAbsent(c, k, nil)
			return err
		},
	}
	for name, call := range readModifyWrites {
		calls[name] = call
	}
	k := []byte("key")
	for name, call := range calls {
		for _, size := range []int{1, 300, floorValue - 10} {
			c, _ := ringtest.TimedCache(t, ringtest.Default(ringtest.MinBytes))
			old := []byte(strings.Repeat("v", size))
			for want := range 2 {
				require.NoError(t, c.Set(k, old))
				require.Equal(t, want, freqOf(t, c, k))
				require.NoError(t, call(c, k, old))
				require.Equal(t, want+1, freqOf(t, c, k), "%s of %d bytes", name, size)
			}
		}
	}
}

// An entry that another writer set after Update had found none is read by Update's next try.
func TestUpdate_ReadsWhatItFindsLater(t *testing.T) {
	c, k, calls := ringtest.MustCache(t, ringtest.Tiny(1, 1024, 64)), []byte("k"), 0
	require.NoError(t, c.Update(k, func(e *ringcache.Entry[[]byte]) {
		if calls++; !e.Present {
			require.NoError(t, c.Set(k, []byte("other")))
		}
		e.Set([]byte("value"))
	}))
	require.Equal(t, 2, calls)
	require.Equal(t, 1, freqOf(t, c, k))
}

// What is kept by Update alone outlives a flood as well as what is kept by Get.
func TestUpdate_CountersOutliveAFlood(t *testing.T) {
	t.Parallel()
	const counters, rounds = 100, 2000
	count := func(old []byte, ok bool) ([]byte, bool) {
		if !ok {
			old = make([]byte, 8)
		}
		binary.LittleEndian.PutUint64(old, binary.LittleEndian.Uint64(old)+1)
		return old, true
	}
	key := func(i int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(i)) }
	ttl := map[string]func(c *ringcache.Cache, k []byte) error{
		"Update": func(c *ringcache.Cache, k []byte) error {
			return c.Update(k, ringtest.Replace(count))
		},
		"CompareAndSwap": func(c *ringcache.Cache, k []byte) error {
			old := make([]byte, 8)
			binary.LittleEndian.PutUint64(old, 1)
			_, err := c.CompareAndSwap(k, old, old)
			return err
		},
		"SetIfAbsent": func(c *ringcache.Cache, k []byte) error {
			_, err := ringtest.SetIfAbsent(c, k, k)
			return err
		},
	}
	for name, call := range ttl {
		c := ringtest.MustCache(t, ringtest.Tiny(16, 1024, 32))
		for i := range counters {
			require.NoError(t, c.Update(key(i), ringtest.Replace(count)))
		}
		lost := 0
		for round := range rounds {
			for i := range counters {
				if _, ok := c.Peek(nil, key(i)); !ok {
					lost++
				}
				require.NoError(t, call(c, key(i)))
			}
			for i := range 200 {
				require.NoError(t, c.Set(key(1<<30+200*round+i), make([]byte, 100)))
			}
		}
		require.Positive(t, ringtest.StatsOf(c).EvictedEntries)
		assert.Zero(t, lost, "counters that %s alone had kept were evicted", name)
	}
}

// A counter with a fixed window is made with a TTL, and begins anew when that is over, however
// often it was updated.
func TestUpdate_FixedWindow(t *testing.T) {
	c, age := ringtest.TimedCache(t, ringtest.Tiny(2, 1024, 64))
	k := []byte("client")
	add := func(ttl time.Duration) (n int) {
		require.NoError(t, c.Update(k, ringtest.Replace(func(old []byte, ok bool) ([]byte, bool) {
			n = len(old) + 1
			return append(old, 'x'), true
		}, ttl)))
		return n
	}
	for range 3 {
		for i := range 10 {
			require.Equal(t, i+1, add(time.Second))
			*age += clock.Tick
		}
	}
	*age += time.Hour
	require.Equal(t, 1, add(0))
	*age += 1 << 40
	require.Equal(t, 2, add(-1), "it never expires, and is there")
}

// An entry that cannot live is not made, and one that is there does not mind.
func TestReadModifyWrite_TTLThatIsNone(t *testing.T) {
	c, _ := ringtest.TimedCache(t, ringtest.Tiny(2, 1024, 64))
	k, v := []byte("k"), []byte("v")
	keep := func([]byte, bool) ([]byte, bool) { return v, true }
	for _, ttl := range []time.Duration{-1, -time.Hour, 1, clock.Tick - 1} {
		out, stored, err := c.SetIfAbsent([]byte("dst"), k, v, ttl)
		require.Equal(t, ringtest.IsBrief(ttl), errors.Is(err, ringcache.ErrTTLTooShort), "%v: %v", ttl,
			err)
		require.True(t, ringtest.IsBrief(ttl) || err == nil)
		require.False(t, stored)
		require.Equal(t, "dst", string(out))
		require.Zero(t, c.Len())

		err = c.Update(k, ringtest.Replace(keep, ttl))
		require.Equal(t, ringtest.IsBrief(ttl), errors.Is(err, ringcache.ErrTTLTooShort), "%v: %v", ttl,
			err)
		require.True(t, ringtest.IsBrief(ttl) || err == nil)
		require.Zero(t, c.Len())

		require.NoError(t, c.Set(k, []byte("old")))
		out, stored, err = c.SetIfAbsent([]byte("dst "), k, v, ttl)
		require.NoError(t, err)
		require.False(t, stored)
		require.Equal(t, "dst old", string(out))
		require.NoError(t, c.Update(k, ringtest.Replace(keep, ttl)))
		require.Equal(t, "v", string(c.Get(nil, k)))
		require.True(t, c.Del(k))
	}
}

// The value that is there comes with the answer, whatever its form, and counts as a Set.
func TestSetIfAbsent_ReturnsWhatIsThere(t *testing.T) {
	for _, size := range []int{0, 1, 70_000, floorValue} {
		c, age := ringtest.TimedCache(t, ringtest.Default(ringtest.MinBytes))
		k, v := []byte("key"), []byte(strings.Repeat("v", size))
		out, stored, err := c.SetIfAbsent([]byte("dst"), k, v, time.Second)
		require.NoError(t, err)
		require.True(t, stored)
		require.Equal(t, "dst", string(out))
		dst := append(make([]byte, 0, size+8), "dst "...)
		out, stored, err = c.SetIfAbsent(dst, k, []byte("w"), time.Hour)
		require.NoError(t, err)
		require.False(t, stored)
		require.Equal(t, "dst "+string(v), string(out))
		require.Same(t, &dst[0], &out[0])
		*age += time.Second
		_, stored, err = c.SetIfAbsent(nil, k, []byte("w"), time.Hour)
		require.NoError(t, err)
		require.True(t, stored, "it has expired: the second call has not renewed it")
		s := ringtest.StatsOf(c)
		require.EqualValues(t, 3, s.SetCalls)
		require.Zero(t, s.GetCalls)
	}
}

// The key may lie in the spare capacity of dst.
func TestSetIfAbsent_KeyInDst(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(2, 1024, 64))
	require.NoError(t, c.Set([]byte("key"), []byte("value")))
	room := append(make([]byte, 0, 64), "key"...)
	out, stored, err := c.SetIfAbsent(room[:0], room, []byte("w"), time.Hour)
	require.NoError(t, err)
	require.False(t, stored)
	require.Equal(t, "value", string(out))
}

// Where a namespace stores nothing, no call says that it has.
func TestNamespace_ConditionalWritesTellTheTruth(t *testing.T) {
	k, v, long := []byte("k"), []byte("v"), make([]byte, 500)
	calls := map[string]func(n *ringcache.Cache) (bool, error){
		"SetIfAbsent": func(n *ringcache.Cache) (bool, error) {
			return ringtest.SetIfAbsent(n, []byte("new"), long)
		},
		"SetIfChanged": func(n *ringcache.Cache) (bool, error) { return n.SetIfChanged(k, long) },
		"CompareAndSwap": func(n *ringcache.Cache) (bool, error) {
			return n.CompareAndSwap(k, v, long)
		},
	}
	for name, call := range calls {
		c := ringtest.MustCache(t, ringtest.Tiny(2, 1024, 64))
		n := c.Namespace("n")
		require.NoError(t, n.Set(k, v))
		did, err := call(n)
		require.NoError(t, err, name)
		require.True(t, did, name)
		require.NoError(t, c.DropNamespace("n"))
		did, err = call(n)
		require.ErrorIs(t, err, ringcache.ErrDropped, name)
		require.False(t, did, "%s of a dropped namespace", name)
	}
}
