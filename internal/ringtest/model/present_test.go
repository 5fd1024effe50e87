package model

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

// A key that is there is found, whatever happens to its bucket meanwhile. A reader may
// not take what is half moved for absent: histories do not notice, since a cache may
// drop an entry at any time.

// presence is a cache with keys that stay, and readers that look for them.
type presence struct {
	c       *ringcache.Cache
	keys    [][]byte
	lost    []atomic.Bool // by OnRemove's account
	missed  []atomic.Int64
	lookups atomic.Int64
	stop    atomic.Bool
	paced   bool // writers wait for readers now and then, see letRead
}

func newPresence(t *testing.T, g ringtest.Shape, keys int) *presence {
	t.Helper()
	p := &presence{lost: make([]atomic.Bool, keys), missed: make([]atomic.Int64, keys)}
	g.OnRemove = func(gone ringcache.Removal) {
		id := binary.BigEndian.Uint64(gone.Key)
		if gone.Reason == ringcache.RemovedEvicted && id < uint64(keys) {
			p.lost[id].Store(true)
		}
	}
	p.c = ringtest.MustCache(t, g)
	for i := range keys {
		p.keys = append(p.keys, presentKey(nil, uint64(i)))
		require.NoError(t, p.c.Set(p.keys[i], presentValue(nil, i, 0)))
	}
	return p
}

func presentKey(buf []byte, id uint64) []byte {
	return binary.BigEndian.AppendUint64(buf, id)
}

// presentValue is a value of key i: its length says which write it is of.
func presentValue(buf []byte, i, version int) []byte {
	size := 8 + (i*7+version*3)%60
	for len(buf) < size {
		buf = append(buf, byte(i))
	}
	return buf
}

// read looks for all keys by each of the ways to read, until the run stops.
func (p *presence) read(t *testing.T) {
	var dst []byte
	vals := make([][]byte, len(p.keys))
	for round := 0; !p.stop.Load(); round++ {
		runtime.Gosched() // the writers are to get on as well, however few processors there are
		if round%6 == 5 {
			dst, _ = p.c.GetBatch(dst[:0], p.keys, vals)
		}
		for i, k := range p.keys {
			v, ok := vals[i], true
			switch round % 6 {
			case 0, 1:
				dst, ok = p.c.HasGet(dst[:0], k)
				v = dst
			case 2:
				v, ok = p.c.HasGet(nil, k)
			case 3:
				ok = p.c.Has(k)
				v = k[:0]
			case 4:
				ok = ringtest.View(p.c, k, func(got []byte) { v = append(dst[:0], got...) })
			case 5:
				ok = v != nil
			}
			if !ok {
				p.missed[i].Add(1)
			} else if round%6 != 3 && (len(v) < 8 || v[0] != byte(i) || v[len(v)-1] != byte(i)) {
				assert.Fail(t, "a wrong value", "key %d, way %d: %x", i, round%6, v)
				p.stop.Store(true)
				return
			}
			p.lookups.Add(1)
		}
	}
}

// while runs the writers once, and readers beside them.
func (p *presence) while(t *testing.T, writers ...func()) {
	t.Helper()
	var readers, writing sync.WaitGroup
	for range 3 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			p.read(t)
		}()
	}
	for _, w := range writers {
		writing.Add(1)
		go func() {
			defer writing.Done()
			w()
		}()
	}
	writing.Wait()
	p.stop.Store(true)
	readers.Wait()
}

// letRead waits until the readers have been round about once: keys that nobody reads
// do not stay.
func (p *presence) letRead() {
	enough := p.lookups.Load() + int64(3*len(p.keys))
	for p.paced && p.lookups.Load() < enough && !p.stop.Load() {
		runtime.Gosched()
	}
}

// requireFound fails if a key was missed that has not been dropped, or hardly one looked up.
func (p *presence) requireFound(t *testing.T) {
	t.Helper()
	p.requireNoneMissed(t)
	require.Greater(t, p.lookups.Load(), int64(len(p.keys)), "hardly a key was looked up")
}

// requireNoneMissed fails if a key was missed that has not been dropped.
func (p *presence) requireNoneMissed(t *testing.T) {
	t.Helper()
	lost := 0
	for i := range p.keys {
		if p.lost[i].Load() {
			lost++
			continue
		}
		require.Zero(t, p.missed[i].Load(), "key %d is there and was missed", i)
	}
	require.Less(t, lost, len(p.keys)*9/10, "hardly a key has stayed: the test proves little")
}

// overwrite sets all keys anew, in place and with other lengths, by each way to write.
func (p *presence) overwrite(t *testing.T, rounds int) func() {
	return func() {
		var v []byte
		for version := range rounds {
			p.letRead()
			for i, k := range p.keys {
				v = presentValue(v[:0], i, version/2)
				var err error
				switch version % 5 {
				case 0:
					_, err = p.c.SetIfChanged(k, v)
				case 1:
					err = p.c.Update(k, ringtest.Replace(func(old []byte, ok bool) ([]byte, bool) {
						return v, true
					}))
				default:
					err = p.c.Set(k, v)
				}
				if !assert.NoError(t, err) {
					return
				}
			}
		}
	}
}

// insert sets so many other keys, and reads each a little later: what is read moves.
func (p *presence) insert(t *testing.T, first, n, size int) func() {
	return func() {
		var k []byte
		const later = 50
		v := make([]byte, size)
		for id := first; id < first+n && !p.stop.Load(); id++ {
			if id%50 == 0 {
				p.letRead()
			}
			k = presentKey(k[:0], uint64(id))
			if err := p.c.Set(k, v); err != nil {
				assert.NoError(t, err)
				return
			}
			p.c.Has(presentKey(k[:0], uint64(max(first, id-later))))
		}
	}
}

func presentRuns() (inserts, overwrites int) {
	if ringtest.RaceEnabled {
		return 30_000, 20
	}
	return 200_000, 200
}

// The indexes of two buckets grow from a page to hundreds, and that of one bucket to a
// few, again and again.
func TestPresent_WhileTheIndexGrows(t *testing.T) {
	inserts, overwrites := presentRuns()
	p := newPresence(t, ringtest.Tiny(2, 64<<10, 512), 200)
	p.while(t,
		p.insert(t, 1<<20, inserts, 20),
		p.insert(t, 1<<30, inserts, 4),
		p.overwrite(t, overwrites))
	require.Greater(t, p.c.Len(), inserts)
	p.requireFound(t)
	lookups := int64(0)
	for range 40 {
		p := newPresence(t, ringtest.Tiny(1, 4096, 256), 20)
		p.while(t, p.insert(t, 1<<20, inserts/50, 4), p.overwrite(t, overwrites))
		p.requireNoneMissed(t) // on a busy machine readers may begin when writers have ended
		lookups += p.lookups.Load()
	}
	require.Greater(t, lookups, int64(40*20), "hardly a key was looked up")
}

// The cache becomes larger in steps, while it fills.
func TestPresent_WhileTheCacheIsMadeLarger(t *testing.T) {
	inserts, overwrites := presentRuns()
	g := ringtest.Default(ringtest.MinBytes)
	g.Seed = ringtest.TestSeed
	p := newPresence(t, g, 200)
	p.while(t,
		func() {
			for n := ringtest.MinBytes; n <= 8*ringtest.MinBytes; n += ringtest.MinBytes / 4 {
				if !assert.NoError(t, p.c.Resize(n)) {
					return
				}
			}
		},
		p.insert(t, 1<<20, inserts/2, 60),
		p.overwrite(t, overwrites))
	p.requireFound(t)
}

// In a full cache, entries that are read move to the main ring, and round in it.
func TestPresent_WhileEntriesMove(t *testing.T) {
	inserts, overwrites := presentRuns()
	for _, buckets := range []int{1, 8} {
		t.Run(fmt.Sprintf("%d buckets", buckets), func(t *testing.T) {
			p := newPresence(t, ringtest.Tiny(buckets, 1024, 256/buckets), 20)
			p.insert(t, 1<<20, 10_000, 50)() // when main is full at first, some go that were read
			p.overwrite(t, 1)()
			clear(p.lost)
			before := ringtest.PolicyOf(p.c)
			p.paced = true
			p.while(t,
				p.insert(t, 1<<20, inserts/2, 100),
				p.insert(t, 1<<30, inserts/2, 10),
				p.overwrite(t, overwrites/4))
			after := ringtest.PolicyOf(p.c)
			require.Greater(t, after.Promotions, before.Promotions)
			require.Greater(t, after.Reinsertions, before.Reinsertions)
			p.requireFound(t)
		})
	}
}

// While a bucket is being written to, no way to read believes what it sees there.
func TestRead_BelievesNothingWhileTheSequenceIsOdd(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(1, 4096, 64))
	k, v := []byte("key"), []byte("value")
	require.NoError(t, c.Set(k, v))
	for name, read := range map[string]func() string{
		"HasGet": func() string { v, _ := c.HasGet(nil, k); return string(v) },
		"GetBatch": func() string {
			vals := make([][]byte, 1)
			c.GetBatch(nil, [][]byte{k}, vals)
			return string(vals[0])
		},
		"View": func() (got string) {
			ringtest.View(c, k, func(v []byte) {
				got = string(v)
			})
			return got
		},
		"GetOrLoad": func() string {
			v, _ := c.GetOrLoad(t.Context(), nil, k, ringtest.NeverLoads)
			return string(v)
		},
	} {
		b, h := ringtest.BucketOf(c, ringtest.HashOf(c, k)), ringtest.HashOf(c, k)
		b.Lock()
		var f store.Found
		require.True(t, b.Find(&f, k, h))
		value := f.Rec[f.Size+f.KeyLen:]
		copy(value, "wrong")
		got := make(chan string, 1)
		go func() { got <- read() }()
		select {
		case wrong := <-got:
			got <- wrong
			assert.Fail(t, "it did not wait", "%s: %s", name, wrong)
		case <-time.After(20 * time.Millisecond):
		}
		copy(value, v)
		b.Unlock()
		require.Equal(t, "value", <-got, name)
	}
}
