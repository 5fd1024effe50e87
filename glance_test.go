package ringcache

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// glances reports whether this build has glances.
func glances(t *testing.T) bool {
	c := mustCache(t, tiny(1, 4096, 16))
	require.NoError(t, c.Set([]byte("key"), []byte("value")))
	require.Equal(t, 1, c.Len()) // and it is not aside
	openLanes(c)
	return glanceHashed(c, make([]byte, 0, 9), []byte("key"), 0, c.shared.hash([]byte("key"))) != glanceUnsure
}

// glanced is a cache whose lookups are all to go by a lane, and how many of them a
// glance has answered.
type glanced struct {
	*Cache
	t        *testing.T
	answered int
	asked    int
}

// get checks that k has value v, or is not there if v is nil, however much room dst
// has: glance writes nothing behind the value, and nothing at all if it does not answer.
func (c *glanced) get(k, v []byte) {
	c.t.Helper()
	const held, canary = "held", 0xa5
	for _, more := range []int{-1, 0, 1, 70} {
		room := len(held) + max(0, len(v)+more)
		all := append([]byte(held), bytes.Repeat([]byte{canary}, room+70-len(held))...)
		dst := all[:len(held):room]
		openLanes(c.Cache)
		var before, after Stats
		c.UpdateStats(&before)
		n := glanceHashed(c.Cache, dst, k, laneHere(), c.shared.hash(k))
		c.UpdateStats(&after)
		answered, missed := uint64(0), uint64(0)
		if n > glanceUnsure {
			answered = 1
		}
		if n == glanceMiss {
			missed = 1
		}
		require.Equal(c.t, answered, after.GetCalls-before.GetCalls)
		require.Equal(c.t, missed, after.Misses-before.Misses)
		c.asked++
		want := append([]byte(held), v...)
		switch {
		case n == glanceUnsure:
			want = want[:len(held)]
		case n < glanceUnsure:
			c.answered++
			require.Equal(c.t, glanceUnsure-len(v), n)
			require.Greater(c.t, len(want), room)
			want = want[:len(held)]
		case v == nil:
			c.answered++
			require.Equal(c.t, glanceMiss, n)
		default:
			c.answered++
			require.Equal(c.t, len(v), n)
		}
		end := min(len(want), room)
		if !bytes.Equal(want[:end], all[:end]) || len(bytes.Trim(all[end:], string([]byte{canary}))) > 0 {
			c.t.Fatalf("key of %d bytes, value of %d, room for %d: %d, %x", len(k), len(v), room-len(held), n, all)
		}
		got, ok := c.HasGet(append(make([]byte, 0, room), held...), k)
		require.Equal(c.t, v != nil, ok)
		if ok {
			want = append([]byte(held), v...)
		} else {
			want = []byte(held)
		}
		require.True(c.t, bytes.Equal(want, got), "key of %d bytes, value of %d", len(k), len(v))
	}
}

// lengthsOf returns all lengths up to most, or those at which something may change.
func lengthsOf(most int) (all []int) {
	for n := range most + 1 {
		if *longRun || n < 70 && (!raceEnabled || n < 20) || n%64 < 2 || n%64 > 62 {
			all = append(all, n)
		}
	}
	return all
}

// Keys and values of every length are read and overwritten, to the byte, and what lies
// beside them stays. Nearly all lookups that a glance can answer it does.
func TestGlance_Lengths(t *testing.T) { testLengths(t) }

func testLengths(t *testing.T) {
	has := glances(t)
	for _, chunk := range []int{64, 512, 16384} {
		t.Run(fmt.Sprintf("chunk=%d", chunk), func(t *testing.T) {
			g := tiny(2, chunk, 1<<17/chunk)
			g.asideFrom = 0
			c := &glanced{Cache: mustCache(t, g), t: t}
			for _, klen := range lengthsOf(80) {
				for _, vlen := range append(lengthsOf(1100), 5000) {
					if chunk < 16384 && vlen%16 != klen%16 {
						continue
					}
					c.asked, c.answered = 0, 0
					k := bytes.Repeat([]byte{byte(vlen), byte(klen)}, 40)[:klen]
					first := stamp{id: 1, version: 1, size: vlen}.value([]byte{})
					second := stamp{id: 2, version: 2, size: vlen}.value([]byte{})
					c.Reset()
					before, after := []byte("the key before"), []byte("the key after")
					require.NoError(t, c.Set(before, first))
					require.NoError(t, c.Set(k, first))
					require.NoError(t, c.Set(after, second))
					c.get(k, first)
					require.NoError(t, c.Set(k, second))
					c.get(k, second)
					c.get(before, first)
					c.get(after, second)
					c.get(append(k, 'x'), nil)
					short := vlen <= 1100 && klen <= maxShortKey
					if has && chunk == 16384 && short && c.answered < c.asked/3 { // in the others the chunk ends
						t.Fatalf("key of %d bytes, value of %d: %d of %d lookups answered", klen, vlen, c.answered, c.asked)
					}
				}
			}
		})
	}
}

// A glance hashes as the library does, whatever the key has in it.
func TestGlance_Hash(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		g := tiny(4, 1024, 16)
		g.seed = [2]uint64{rnd.Uint64(), rnd.Uint64() | 1}
		c := mustCache(t, g)
		for klen := range mostHashed + 1 {
			k := make([]byte, klen)
			for i := range k {
				k[i] = byte(rnd.Uint32())
			}
			want := c.shared.hash(k)
			h, _ := glance(c, make([]byte, 0, 8), k, laneHere())
			require.Equal(t, want, h, "key %x", k)
			require.Equal(t, want, askShort(c, k), "key %x", k)
			require.Equal(t, want, c.ask(k), "key %x", k)
		}
	}
}

// A lookup that hits raises the frequency, up to 3, where the policy asks for it, and one
// that has no room for the value does not count twice.
func TestGlance_Frequency(t *testing.T) {
	for kind, want := range map[Policy][]int{
		PolicyS3FIFO: {0, 1, 2, 3, 3},
		PolicyFIFO:   {0, 0, 0, 0, 0},
	} {
		g := tiny(1, 1024, 16)
		g.policy = kind
		c := mustCache(t, g)
		k, v := []byte("the key of 16 by"), []byte("a value of 20 bytes.")
		require.NoError(t, c.Set(k, v))
		for gets, freq := range want {
			require.Equal(t, freq, freqOf(t, c, k), "%v after %d lookups", kind, gets)
			require.Equal(t, v, c.Get(make([]byte, 0, 19+2*(gets%2)), k))
		}
	}
}

// What is put aside and made later is put there and made to the byte.
func TestGlance_Aside(t *testing.T) {
	for _, klen := range lengthsOf(80) {
		for i, vlen := range []int{0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, asideMany - klen, asideMany - klen + 1, asideMost - klen, asideMost - klen + 1} {
			g := tiny(1, 4096, 64)
			if i >= 22 {
				g.asideMost = asideMost
			}
			c := mustCache(t, g)
			k := bytes.Repeat([]byte{byte(vlen), byte(klen)}, 40)[:klen]
			older := stamp{id: 1, version: 1, size: vlen}.value([]byte{})
			newer := stamp{id: 2, version: 2, size: vlen}.value([]byte{})
			before, after := []byte("the key before"), []byte("the key after")
			require.NoError(t, c.Set(before, older))
			require.NoError(t, c.Set(k, older))
			require.NoError(t, c.Set(after, older))
			require.NoError(t, c.Set(k, newer))
			require.Equal(t, klen+vlen <= g.asideMost, isPutAside(c, string(k)))
			for range 2 {
				for key, want := range map[string][]byte{string(before): older, string(k): newer, string(after): older} {
					got, ok := c.HasGet(nil, []byte(key))
					require.True(t, ok)
					require.True(t, bytes.Equal(want, got), "key of %d bytes, value of %d", len(key), vlen)
				}
				require.Equal(t, 3, c.Len()) // makes it
			}
		}
	}
}

// A Set that was put aside is made the short way if it has the length of the older value, and
// no expiry.
func TestGlance_TakeUp(t *testing.T) {
	has := glances(t)
	for name, tt := range map[string]struct {
		newer string
		ttl   time.Duration
		want  bool
	}{
		"same length": {newer: "newer", want: true},
		"shorter":     {newer: "new"},
		"expiry":      {newer: "newer", ttl: time.Hour},
	} {
		c := mustCache(t, tiny(1, 4096, 64))
		mustSet(t, c, "key", "older", 0)
		mustSet(t, c, "key", tt.newer, tt.ttl)
		require.True(t, isPutAside(c, "key"), name)
		b := &c.buckets[0]
		b.mu.Lock()
		require.Equal(t, has && tt.want, takeUp(b, b.aside), name)
		b.mu.Unlock()
		require.Equal(t, tt.newer, string(c.Get(nil, []byte("key"))), name)
		require.Equal(t, 1, c.Len())
		require.Equal(t, tt.newer, string(c.Get(nil, []byte("key"))), name)
	}
}

// An overwriting Set takes the short way. For some of these records, about a tenth, there
// is none: a chunk ends in them, or the key is not in its home group.
func TestGlance_Overwrites(t *testing.T) {
	g := tiny(1, 16384, 64)
	g.asideFrom = 0
	c := mustCache(t, g)
	fillCache(t, c, 0, 1000, 100)
	b := &c.buckets[0]
	key, written := make([]byte, 8), 0
	for id := range 1000 {
		binary.LittleEndian.PutUint64(key, uint64(id))
		h := c.shared.hash(key)
		v := stamp{id: uint32(id), version: 1, size: 100}.value(nil)
		b.lock()
		_, done := replace(b, key, v[:99], h, nil)
		require.False(t, done)
		_, done = replace(b, key, v, h, nil)
		b.unlock(&write{})
		got := c.Get(nil, key)
		require.Len(t, got, 100)
		require.Equal(t, done, bytes.Equal(v, got))
		if done {
			written++
		}
	}
	require.Greater(t, written, 800)
}

// A long header whose first bytes look like a short one is not taken for one: keys of 64
// bytes and more whose length is in its form's bits, and that go on as it does.
func TestGlance_LongHeaders(t *testing.T) {
	g := tiny(1, 4096, 16)
	g.asideFrom = 0
	c := &glanced{Cache: mustCache(t, g), t: t}
	for klen := maxShortKey + 1; klen <= longBit+maxShortKey; klen++ {
		for _, vlen := range []int{0, 1, 64, 200} {
			k := bytes.Repeat(binary.LittleEndian.AppendUint32(nil, uint32(vlen)), klen/4+1)[:klen]
			v := stamp{size: vlen}.value([]byte{})
			require.NoError(t, c.Set(k, v))
			require.NoError(t, c.Set([]byte("another key"), make([]byte, 300)))
			c.get(k, v)
			require.NoError(t, c.Set(k, v))
			c.get(k, v)
		}
	}
}

// What has passed its home group is found in the next one, also across the table's end
// and while the index grows; what is not there is not.
func TestGlance_SecondGroup(t *testing.T) {
	has := glances(t)
	for _, hinted := range []bool{false, true} {
		t.Run(fmt.Sprintf("hinted=%v", hinted), func(t *testing.T) {
			g := tiny(1, 1024, 1024)
			g.asideFrom = 0
			c := &glanced{Cache: mustCache(t, g), t: t}
			entries := 150
			if hinted {
				entries = 5000
			}
			b := &c.buckets[0]
			growing, beyond := 0, 0
			var key [4]byte
			keyAt := func(i int) []byte {
				copy(key[:], fmt.Sprintf("%04x", i))
				return key[:]
			}
			for i := range entries {
				v := []byte{byte(i), byte(i >> 8)}
				require.NoError(t, c.Set(keyAt(i), v))
				if b.index.front.Load() != 0 {
					growing++
				}
				for j := i; j >= 0 && j > i-3; j-- {
					c.get(keyAt(j), []byte{byte(j), byte(j >> 8)})
				}
				c.get(keyAt(i+10_000), nil)
			}
			require.Equal(t, hinted, b.index.hint.Load() != nil)
			require.Positive(t, growing)
			for i := range entries {
				h := c.shared.hash(keyAt(i))
				if _, ok := b.likely(h); !ok {
					beyond++
				}
				c.get(keyAt(i), []byte{byte(i), byte(i >> 8)})
			}
			require.Positive(t, beyond)
			if has && c.answered < c.asked*4/5 {
				t.Fatalf("%d of %d lookups answered", c.answered, c.asked)
			}
		})
	}
}

// What is looked for with four slots at a time is found where it would be one by one, and
// what is said to be new is in no slot. Nearly all that is new is said to be so.
func TestGlance_NewKeys(t *testing.T) {
	has := glances(t)
	for _, policy := range []Policy{PolicyS3FIFO, PolicyFIFO} {
		g := tiny(1, 1024, 64)
		g.policy = policy
		c := mustCache(t, g)
		b := &c.buckets[0]
		rnd := rand.New(rand.NewPCG(3, uint64(policy)))
		said, places := 0, map[bool]int{}
		for id := range uint32(20_000) {
			require.NoError(t, c.Set(trafficKey(nil, id), make([]byte, rnd.IntN(8))))
			h := rnd.Uint64()
			if id%2 == 0 {
				h = c.shared.hash(trafficKey(nil, uint32(rnd.IntN(int(id)+1))))
			}
			b.lock()
			at, i := space(b, h)
			wantAt, want := b.index.space(h, b.windows())
			require.Equal(t, [2]int{int(wantAt), want}, [2]int{int(at), i}, "after %d Sets", id)
			if i >= 0 {
				places[b.index.group(at).tagAt(i) == 0]++
			}
			slots := 0
			b.index.each(func(tag, slot uint64) {
				if (slot^h)>>slotHashAt == 0 && tag == tagOf(h) {
					slots++
				}
			})
			if isNew(b, h) {
				require.Zero(t, slots)
				said++
			} else if has && len(b.index.pages) > 0 {
				require.NotZero(t, slots)
			}
			b.unlock(&write{})
		}
		require.Equal(t, has, said > 10_000)
		require.Greater(t, places[true], 100)
		require.Greater(t, places[false], 100)
	}
}

// A lookup is counted in the slot once, whether a glance has found the value or has to leave it to others.
func TestGlance_TouchesOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		ttl  time.Duration
		room int
	}{"a glance": {room: 5}, "no room": {room: 1}, "an expiry": {room: 5, ttl: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			c := mustCache(t, tiny(1, 4096, 16))
			mustSet(t, c, "key", "value", tt.ttl)
			c.shared.known.Store(1<<(1<<laneBits) - 1)
			for want := range uint64(5) {
				slot, ok := c.buckets[0].likely(c.shared.hash([]byte("key")))
				require.True(t, ok)
				require.Equal(t, min(want, 3), slot&slotFreqMask/slotFreqOne)
				require.Equal(t, "value", string(c.Get(make([]byte, 0, tt.room), []byte("key"))))
			}
		})
	}
}
