package store_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

// taker takes chunks of a pool, for which the system has no more memory then.
type taker struct {
	pool  *chunk.Pool
	bound int
	taken []chunk.Ref

	refusals atomic.Int32
}

// newDryCache returns a cache of packed entries, that gets no more memory from the system, and
// who has taken what the pool had left of it. The bound lets buckets believe in more.
func newDryCache(t *testing.T) (*ringtest.PackedCache, *taker) {
	t.Helper()
	var m ringtest.Meter
	m.Allowed.Store(100)
	from := new(taker)
	p := ringtest.NewPackedCache(t, ringtest.FlateCompressor{}, func(g *ringtest.Shape) {
		g.Memory = m.Memory()
		refused := g.Memory.Map
		g.Memory.Map = func(n int) ([]byte, error) {
			b, err := refused(n)
			if err != nil {
				from.refusals.Add(1)
				time.Sleep(time.Millisecond) // those who wait for the pool get it in their order
			}
			return b, err
		}
	})
	m.Allowed.Store(0)
	from.pool, from.bound = ringtest.Shared(p.Cache).Pool, ringtest.Shared(p.Cache).Bound()
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

// An entry of the cold part that is to go back to main, where there is no memory, takes the
// room of others.
func TestMemory_RefusedToAPromotion(t *testing.T) {
	p, from := newDryCache(t)
	p.SetPacked(t, ringtest.PackedKey, func() error {
		return p.Set(ringtest.PackedKey, ringtest.PackedValue)
	})
	ringtest.SinkAll(p.Cache) // main has no chunk
	b := ringtest.Nth(p.Cache, 0)
	b.Mu.Lock()
	b.Rings[policy.Small].Trim()
	b.Rings[policy.Main].Trim()
	b.Mu.Unlock()
	from.takeAll()
	for range 3 {
		v, ok := p.HasGet(nil, ringtest.PackedKey)
		require.True(t, ok)
		require.Equal(t, string(ringtest.PackedValue), string(v))
	}
	require.NotZero(t, b.Rings[policy.Main].Entries)
	require.Empty(t, p.Told(ringtest.PackedKey))
	require.NoError(t, ringtest.Validate(p.Cache))
	p.RequireTrue(t)
	from.giveBack()
	require.NoError(t, p.Set(ringtest.PackedKey, []byte("anew")))
	require.Equal(t, "anew", string(p.Get(nil, ringtest.PackedKey)))
}

// A record at the cold ring's tail that is to have another round is not lost, though somebody else
// takes each chunk that is free.
func TestMemory_RotationNeedsNone(t *testing.T) {
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
	before := ringtest.PolicyOf(p.Cache).Evicted
	rotated := rotateSome(t, p)
	close(stop)
	others.Wait()
	from.giveBack()
	require.Greater(t, rotated, 500)
	require.LessOrEqual(t, ringtest.PolicyOf(p.Cache).Evicted-before, uint64(rotated/10))
	require.NoError(t, ringtest.Validate(p.Cache))
	require.Greater(t, p.RequireTrue(t), 300)
}

// rotateSome gives one record of the cold ring after the other another round, and returns how
// many. Now and then one is dropped, so that head and tail meet at all places of a chunk.
func rotateSome(t *testing.T, p *ringtest.PackedCache) (rotated int) {
	t.Helper()
	ringtest.Change(p.Cache, 0, func(b *store.Store) { rotated = rotateSomeLocked(t, p, b) })
	return rotated
}

func rotateSomeLocked(t *testing.T, p *ringtest.PackedCache, b *store.Store) (rotated int) {
	r := b.Ring(policy.Cold)
	for i := 1; rotated < 2000; i++ {
		hd, ok := r.Header(r.Tail)
		require.True(t, ok)
		if hd.Dead || i%20 == 0 {
			b.PassTail(policy.Cold, 0)
			continue
		}
		key, _ := r.Read(nil, r.Tail+uint64(hd.Size), hd.KeyLen)
		at, ok := b.Index.Find(ringtest.HashOf(p.Cache, key), policy.Cold, r.Tail)
		require.True(t, ok)
		index.MarkRead(&at.Group.Slots[at.I], at.Slot)
		n := r.Entries
		b.PassTail(policy.Cold, 1)
		require.Equal(t, n, r.Entries)
		rotated++
	}
	return rotated
}
