package ringcache

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
)

var errRefused = errors.New("refused by the test")

// meter is memory that refuses maps beyond a number.
type meter struct {
	allowed atomic.Int32
	maps    atomic.Int32
}

func (m *meter) memory() chunk.Memory {
	mem := osMemory()
	mem.Map = func(n int) ([]byte, error) {
		if m.maps.Load() >= m.allowed.Load() {
			return nil, errRefused
		}
		m.maps.Add(1)
		return osMemory().Map(n)
	}
	return mem
}

func TestMemory_RefusedFromTheStart(t *testing.T) {
	var m meter
	g := tiny(2, 256, 64)
	g.mem = m.memory()
	c := mustCache(t, g)
	for _, size := range []int{0, 10, 300, g.maxBytes / 16} {
		k := trafficKey(nil, uint32(size))
		for range 3 { // a lock left held would stop the second
			err := c.Set(k, make([]byte, size))
			require.ErrorIs(t, err, ErrNoMemory, "Set of %d bytes", size)
			require.ErrorIs(t, err, errRefused, "Set of %d bytes", size)
			require.False(t, c.Has(k), "%d bytes that were refused", size)
			require.False(t, c.Del(k), "%d bytes that were refused", size)
			require.Zero(t, c.Len(), "%d bytes that were refused", size)
		}
	}
	c.Reset()
	m.allowed.Store(1)
	runShort(t, c, g)
}

// runShort checks that c works as ever.
func runShort(t *testing.T, c *Cache, g geometry) {
	t.Helper()
	r := &runner{c: c, g: g, bound: g.maxBytes, life: newLife(false)}
	for i := range uint32(500) {
		o := op{kind: opSet, id: i % 50, class: 16, arg: uint16(i)}
		if err := r.step(o); err != nil {
			require.NoError(t, err, "once memory is there again: set %d", i)
		}
	}
	require.NoError(t, r.finish(), "once memory is there again")
}

// The second map is refused in the middle of a filling cache: whatever is
// stored stays, and nothing is read of what was refused.
func TestMemory_RefusedWhileFilling(t *testing.T) {
	var m meter
	m.allowed.Store(1)
	g := defaultGeometry(160 << 20) // maps of 64 MB
	g.seed = testSeed
	g.mem = m.memory()
	c := mustCache(t, g)
	refused := fillUntilRefused(t, c, g)
	overwriteRefused(t, c, 3000)
	m.allowed.Store(100)
	for _, id := range refused[:100] {
		s := stamp{id: id, version: 2, size: 4000}
		if err := c.Set(trafficKey(nil, id), s.value(nil)); err != nil {
			require.NoError(t, err, "once memory is there again")
		}
		if got, ok := c.HasGet(nil, trafficKey(nil, id)); !ok || !s.wrote(got) {
			require.Fail(t, "set once memory was there again", "key %d: found %v", id, ok)
		}
	}
}

// fillUntilRefused sets keys of 4000 bytes until many have been refused, checks
// all that the cache then holds, and returns the refused.
func fillUntilRefused(t *testing.T, c *Cache, g geometry) (refused []uint32) {
	t.Helper()
	const size = 4000
	stored := 0
	isRefused := map[uint32]bool{}
	var key, val, dst []byte
	for id := uint32(0); len(refused) < 1000; id++ {
		if int(id)*size > 2*g.maxBytes {
			require.Fail(t, "memory was never refused", "%d sets", id)
		}
		key = trafficKey(key, id)
		val = stamp{id: id, version: 1, size: size}.value(val)
		switch err := c.Set(key, val); {
		case err == nil:
			stored++
		case errors.Is(err, ErrNoMemory):
			refused = append(refused, id)
			isRefused[id] = true
		default:
			require.ErrorIs(t, err, ErrNoMemory, "set %d", id)
		}
	}
	var s Stats
	c.UpdateStats(&s)
	assert.Equal(t, stored, c.Len()+int(s.EvictedEntries), "what became of Sets that succeeded")
	assert.LessOrEqual(t, s.EvictedEntries, uint64(stored)/10, "a refusal harms others")
	live := 0
	for id := range uint32(stored + len(refused)) {
		got, ok := c.HasGet(dst[:0], trafficKey(key, id))
		dst = got
		if !ok {
			continue
		}
		live++
		if isRefused[id] || !(stamp{id: id, version: 1, size: size}).wrote(got) {
			require.Fail(t, "a wrong value", "key %d (refused: %v)", id, isRefused[id])
		}
	}
	assert.Equal(t, c.Len(), live, "keys that are found")
	return refused
}

// overwriteRefused overwrites keys with values of another size, of which some
// must be refused: they must not leave the old value to be read.
func overwriteRefused(t *testing.T, c *Cache, keys uint32) {
	t.Helper()
	refusals := 0
	for id := range keys {
		k := trafficKey(nil, id)
		s := stamp{id: id, version: 3, size: 5000}
		err := c.Set(k, s.value(nil))
		got, ok := c.HasGet(nil, k)
		switch {
		case err == nil && !(ok && s.wrote(got)):
			require.Fail(t, "overwritten, and not found", "key %d: %v", id, ok)
		case errors.Is(err, ErrNoMemory):
			refusals++
			require.False(t, ok, "key %d is found after a refused overwrite", id)
		case err != nil:
			require.ErrorIs(t, err, ErrNoMemory, "overwrite key %d", id)
		}
	}
	require.NotZero(t, refusals, "no overwrite was refused: the test proves nothing")
}

// taker takes chunks of a pool, for which the system has no more memory then.
type taker struct {
	pool  *chunk.Pool
	bound int
	taken []chunk.Ref

	refusals atomic.Int32
}

// newDryCache returns a cache of packed entries, that gets no more memory from the system, and
// who has taken what the pool had left of it. The bound lets buckets believe in more.
func newDryCache(t *testing.T) (*packedCache, *taker) {
	t.Helper()
	var m meter
	m.allowed.Store(100)
	from := new(taker)
	p := newPackedCache(t, flateCompressor{}, func(g *geometry) {
		g.mem = m.memory()
		refused := g.mem.Map
		g.mem.Map = func(n int) ([]byte, error) {
			b, err := refused(n)
			if err != nil {
				from.refusals.Add(1)
				time.Sleep(time.Millisecond) // those who wait for the pool get it in their order
			}
			return b, err
		}
	})
	m.allowed.Store(0)
	from.pool, from.bound = p.shared.pool, p.shared.bound()
	t.Cleanup(from.giveBack)
	return p, from
}

// takeAll takes all chunks that the pool has.
func (k *taker) takeAll() {
	for {
		r, err := k.pool.Chunk()
		if err != nil {
			k.pool.SetBound(k.bound + len(k.taken)*k.pool.ChunkSize())
			return
		}
		k.taken = append(k.taken, r)
	}
}

// giveBack gives the chunks back.
func (k *taker) giveBack() {
	for _, r := range k.taken {
		k.pool.Put(r)
	}
	k.taken = nil
	k.pool.SetBound(k.bound)
}

// An entry of the cold part that is to go back to main, and for which there is no memory there,
// is found that once, and is a miss from then on.
func TestMemory_RefusedToAPromotion(t *testing.T) {
	p, from := newDryCache(t)
	p.setPacked(t, packedKey, func() error { return p.Set(packedKey, packedValue) })
	p.sinkAll() // main has no chunk
	b := &p.buckets[0]
	b.mu.Lock()
	b.rings[policy.Small].Trim()
	b.rings[policy.Main].Trim()
	b.mu.Unlock()
	from.takeAll()
	before := p.Stats()
	for range 2 {
		v, ok := p.HasGet(nil, packedKey)
		require.True(t, ok)
		require.Equal(t, string(packedValue), string(v))
	}
	require.False(t, p.Has(packedKey))
	require.Equal(t, before.EvictedCold+1, p.Stats().EvictedCold)
	want := []departure{{string(packedKey), string(packedValue), EvictCapacity}}
	require.Equal(t, want, p.told(packedKey))
	require.NoError(t, p.validate())
	p.requireTrue(t)
	from.giveBack()
	require.NoError(t, p.Set(packedKey, []byte("anew")))
	require.Equal(t, "anew", string(p.Get(nil, packedKey)))
}

// A record at the cold ring's tail that is to have another round, and whose chunk somebody else
// gets meanwhile, is evicted.
func TestMemory_RefusedToARotation(t *testing.T) {
	p, from := newDryCache(t)
	from.takeAll()
	stop := make(chan struct{})
	var others sync.WaitGroup
	for range 4 {
		others.Add(1)
		go func() {
			defer others.Done()
			own := taker{pool: from.pool, bound: from.bound}
			for ; ; own.takeAll() {
				select {
				case <-stop:
					own.giveBack()
					return
				default:
				}
			}
		}()
	}
	for from.refusals.Load() < 20 {
		runtime.Gosched() // until they all wait for the pool
	}
	p.left = nil
	before := p.Stats()
	k := p.rotateUntilOneIsLost(t)
	close(stop)
	others.Wait()
	from.giveBack()
	for _, d := range p.left {
		var id int
		_, err := fmt.Sscanf(d.k, "filler %d", &id)
		require.NoError(t, err)
		require.Equal(t, departure{d.k, string(text(id, p.size)), EvictCapacity}, d)
	}
	require.Len(t, p.told([]byte(k)), 1)
	require.False(t, p.Has([]byte(k)))
	require.Equal(t, before.EvictedCold+uint64(len(p.left)), p.Stats().EvictedCold)
	require.NoError(t, p.validate())
	require.Greater(t, p.requireTrue(t), 300)
}

// rotateUntilOneIsLost gives one record of the cold ring after the other another round, until
// one is lost, and returns its key. The ring asks for a chunk if head and tail come to the end
// of theirs with the same record: now and then one is dropped, until it is so.
func (p *packedCache) rotateUntilOneIsLost(t *testing.T) (k string) {
	t.Helper()
	var w write
	b := &p.buckets[0]
	defer p.shared.notify(&w)
	b.lock()
	defer b.unlockFor(&w)
	r := b.cold.store()
	chunk := uint64(p.shared.pool.ChunkSize())
	for i, lost := 0, false; !lost; i++ {
		hd, ok := r.Header(r.Tail)
		require.True(t, ok)
		if hd.Dead || r.Size%chunk > 100 || i%20 == 0 {
			b.evictTailLocked(policy.Cold, nil)
			continue
		}
		key, _ := r.Read(nil, r.Tail+uint64(hd.Size), hd.KeyLen)
		k = string(key)
		at, ok := b.index.Find(p.shared.hash(key), policy.Cold, r.Tail)
		require.True(t, ok)
		index.MarkRead(at.Group.At(at.I), at.Slot)
		n := r.Entries
		require.True(t, b.rotateColdLocked())
		lost = r.Entries < n
	}
	return k
}
