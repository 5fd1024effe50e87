package ringcache

// What glances and those who write do to each other.

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// glanceWays are the ways in which a lookup goes by a lane, without waiting.
var glanceWays = map[string]func(c *Cache, dst, k []byte, lane uint) int{
	"glance": func(c *Cache, dst, k []byte, lane uint) int {
		return glanceHashed(c, dst, k, lane, c.shared.hash(k))
	},
	"batch": func(c *Cache, dst, k []byte, lane uint) int {
		keys, hashes := [][]byte{k}, [1]uint64{c.shared.hash(k)}
		var lens [1]int
		var quests [1]quest
		if n, _, _ := getKeys(c, dst, keys, &hashes[0], &lens[0], lane, &quests[0]); n == 0 {
			return glanceUnsure
		}
		return lens[0]
	},
}

// Who is writing has the bucket alone, however quickly lanes are opened again: no
// glance sees a part of a value. (I13)
func TestGlance_BesideWriter(t *testing.T) {
	if !glances(t) {
		t.Skip("this build has no glances")
	}
	for name, look := range glanceWays {
		t.Run(name, func(t *testing.T) { besideWriter(t, look) })
	}
}

func besideWriter(t *testing.T, look func(c *Cache, dst, k []byte, lane uint) int) {
	g := tiny(1, 4096, 16)
	g.asideFrom = 0
	c := mustCache(t, g)
	k := []byte("the key")
	values := [2][]byte{bytes.Repeat([]byte("a"), 900), bytes.Repeat([]byte("b"), 900)}
	require.NoError(t, c.Set(k, values[0]))
	var over atomic.Bool
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		b := &c.buckets[0]
		for i := 0; !over.Load(); i++ {
			if err := c.Set(k, values[i%2]); err != nil {
				t.Error(err)
			}
			b.hold()
			openLanes(c)
			b.mu.release()
		}
	}()
	dst := make([]byte, 0, 900)
	answered := 0
	for answered < 300_000*rounds() {
		n := look(c, dst, k, laneHere())
		if n == glanceUnsure {
			continue
		}
		answered++
		if got := dst[:n]; !bytes.Equal(got, values[0]) && !bytes.Equal(got, values[1]) {
			t.Errorf("a mixture: %s", got)
			break
		}
	}
	over.Store(true)
	wg.Wait()
}

// A lane is one lookup's at a time, however many goroutines have it: none is counted twice
// or not at all.
func TestGlance_BesideOthers(t *testing.T) {
	for name, look := range glanceWays {
		t.Run(name, func(t *testing.T) { besideOthers(t, look) })
	}
}

func besideOthers(t *testing.T, look func(c *Cache, dst, k []byte, lane uint) int) {
	c := mustCache(t, tiny(1, 4096, 16))
	k := []byte("the key")
	require.NoError(t, c.Set(k, make([]byte, 100)))
	require.Equal(t, 1, c.Len()) // and it is not aside
	openLanes(c)
	var before, after Stats
	c.UpdateStats(&before)
	var answered atomic.Uint64
	var wg sync.WaitGroup
	for g := range 100 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			dst := make([]byte, 0, 100)
			n := uint64(0)
			for i := range 10_000 * rounds() {
				if look(c, dst, k, uint(g%2)) > glanceUnsure {
					n++
				}
				if i%100 == 0 {
					runtime.Gosched()
				}
			}
			answered.Add(n)
		}()
	}
	wg.Wait()
	c.UpdateStats(&after)
	require.Equal(t, answered.Load(), after.GetCalls-before.GetCalls)
}

// A glance goes past a lane that is closed, but not past somebody who writes, and not into a lane that nobody knows of.
func TestGlance_BesideLocks(t *testing.T) {
	if !glances(t) {
		t.Skip("this build has no glances")
	}
	c := mustCache(t, tiny(1, 4096, 16))
	require.NoError(t, c.Set([]byte("key"), []byte("value")))
	require.Equal(t, 1, c.Len()) // and it is not aside
	b, h := &c.buckets[0], c.shared.hash([]byte("key"))
	look := func() int { return glanceHashed(c, make([]byte, 0, 9), []byte("key"), 7, h) }
	require.Equal(t, glanceUnsure, look(), "a lane that is not known")
	c.shared.known.Or(1 << 7)
	require.Equal(t, 5, look(), "closed")
	b.mu.hold()
	require.Equal(t, 5, look(), "somebody reads")
	b.mu.exclude()
	require.Equal(t, glanceUnsure, look(), "somebody writes")
	b.mu.release()
	require.Equal(t, 5, look(), "nobody does any more")
	b.mu.Lock()
	require.Equal(t, glanceUnsure, look(), "somebody writes")
	b.mu.Unlock()
	require.True(t, b.mu.tryLock())
	require.Equal(t, glanceUnsure, look(), "somebody writes")
	b.mu.Unlock()
	b.mu.share()
	require.Equal(t, 5, look(), "somebody views")
	b.mu.unshare(false)
	gets, misses := b.mu.lookups()
	require.EqualValues(t, 4+1, gets, "with the View")
	require.Zero(t, misses)
}

// Who takes memory away waits for glances that may read it.
func TestGlance_MemoryStays(t *testing.T) {
	for name, call := range map[string]func(c *Cache){
		"Reset": func(c *Cache) { c.Reset() },
		"Close": func(c *Cache) { _ = c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			c := mustCache(t, tiny(1, 4096, 16))
			require.NoError(t, c.Set([]byte("key"), []byte("value")))
			c.shared.known.Or(1 << 9)
			a := c.lanes.at(9, 0)
			require.True(t, a.take())
			done := make(chan struct{})
			go func() { call(c); close(done) }()
			for range 10_000 {
				select {
				case <-done:
					t.Fatal("it has not waited")
				default:
					runtime.Gosched()
				}
			}
			a.forget()
			<-done
		})
	}
}

// A key that is set again and again, in another place each time, is never missing, and no glance writes to a slot that has
// changed meanwhile: the validator would find it.
func TestGlance_BesideMoves(t *testing.T) {
	if !glances(t) {
		t.Skip("this build has no glances")
	}
	t.Run("moved", func(t *testing.T) { besideMoves(t, false) })
	t.Run("renewed", func(t *testing.T) { besideMoves(t, true) })
}

// besideMoves has glances at a key that is set again and again; renew tells that it is removed before, so that no Set
// finds how often it has been read.
func besideMoves(t *testing.T, renew bool) {
	g := tiny(1, 4096, 16)
	g.asideFrom = 0
	c := mustCache(t, g)
	c.shared.known.Store(1<<(1<<laneBits) - 1)
	k := []byte("the key")
	h := c.shared.hash(k)
	require.NoError(t, c.Set(k, nil))
	var over atomic.Bool
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		v := make([]byte, 200)
		for i := 0; !over.Load(); i++ {
			if renew {
				c.Del(k)
			}
			v := v[:i%200]
			for at := range v {
				v[at] = byte(i)
			}
			if err := c.Set(k, v); err != nil {
				t.Error(err)
			}
		}
	}()
	dst := make([]byte, 0, 200)
	for answered := 0; answered < 300_000*rounds(); {
		n := glanceHashed(c, dst, k, laneHere(), h)
		if n == glanceUnsure {
			continue
		}
		answered++
		if n == glanceMiss {
			if !renew {
				t.Error("the key is missing")
				break
			}
			continue
		}
		if v := dst[:n]; n > 0 && bytes.Count(v, v[:1]) != n {
			t.Errorf("a mixture: %x", v)
			break
		}
	}
	over.Store(true)
	wg.Wait()
	require.NoError(t, c.validate())
	require.True(t, c.Has(k))
}

// A glance that has just been sure of a slot may find that the ring has given up its chunk.
func TestGlance_WithoutChunk(t *testing.T) {
	if !glances(t) {
		t.Skip("this build has no glances")
	}
	c := mustCache(t, tiny(1, 4096, 16))
	k := []byte("key")
	h := c.shared.hash(k)
	setPlain(t, c, "key", "value")
	c.shared.known.Store(1<<(1<<laneBits) - 1)
	look := func() int { return glanceHashed(c, make([]byte, 0, 9), k, 0, h) }
	require.Equal(t, 5, look())
	slot, ok := c.buckets[0].likely(h)
	require.True(t, ok)
	r := &c.buckets[0].rings[slotRing(slot)]
	chunk := r.slots[r.slot(slot)]
	r.slots[r.slot(slot)] = chunkRef{}
	require.Equal(t, glanceUnsure, look())
	r.slots[r.slot(slot)] = chunk
	require.Equal(t, 5, look())
}

// The key may lie where its value is to go, and is found even if a glance has written the value and has to begin again.
func TestGlance_KeyInRoom(t *testing.T) {
	c := mustCache(t, tiny(1, 4096, 16))
	c.shared.known.Store(1<<(1<<laneBits) - 1)
	key, value := "the key of 20 bytes.", strings.Repeat("value", 20)
	setPlain(t, c, key, value)
	var over atomic.Bool
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for !over.Load() {
			setPlain(t, c, "another", "value")
		}
	}()
	for i := range 100_000 * rounds() {
		var buf [256]byte
		at := 100 + i%150 - 40 // of the key; the value goes to 100 and on
		k := buf[at : at+copy(buf[at:], key)]
		v, ok := c.HasGet(buf[:100], k)
		if !ok || string(v[100:]) != value {
			t.Errorf("with the key at %d: %t, %q", at, ok, v[100:])
			break
		}
	}
	over.Store(true)
	wg.Wait()
}

// A glance may come by while an index is given up, grows from nothing, and gives its pages to others: it looks at none that is
// not there, and in no circle of chunks. (What it finds is of no matter: the values are all the same.)
func TestGlance_BesideResets(t *testing.T) {
	if !glances(t) {
		t.Skip("this build has no glances")
	}
	for _, keys := range []uint32{20, 200, 600, 900} { // with more, some are looked for in the next group, or have a hint
		t.Run(fmt.Sprint(keys), func(t *testing.T) {
			besideResets(t, keys, func(c *Cache, dst, k []byte) {
				n := glanceHashed(c, dst, k, laneHere(), c.shared.hash(k))
				if n > 0 && string(dst[:n]) != "value" {
					t.Errorf("a wrong value: %q", dst[:n])
				}
			})
		})
	}
}

// Nor does that which only asks for a record.
func TestAgenda_BesideResets(t *testing.T) {
	besideResets(t, 900, func(c *Cache, _, k []byte) {
		p := aside{hash: c.shared.hash(k), slot: unsought}
		require.True(t, p.claim(p.hash))
		foresee(c, &p)
	})
}

// besideResets has look go on beside a cache of one bucket that gets so many keys, and is reset, again and again.
func besideResets(t *testing.T, keys uint32, look func(c *Cache, dst, k []byte)) {
	c := mustCache(t, tiny(1, 1024, 64))
	c.shared.known.Store(1<<(1<<laneBits) - 1)
	var over atomic.Bool
	var wg sync.WaitGroup
	for id := range uint32(3) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var k, dst [32]byte
			for ; !over.Load(); id++ {
				look(c, dst[:0], trafficKey(k[:0], id%(2*keys)))
			}
		}()
	}
	for range 300_000 / keys * uint32(rounds()) {
		for id := range keys {
			require.NoError(t, c.Set(trafficKey(nil, id), []byte("value")))
		}
		c.Reset()
	}
	over.Store(true)
	wg.Wait()
	require.NoError(t, c.validate())
}
