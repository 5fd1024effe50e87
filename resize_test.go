package ringcache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringcache/ringcache/internal/refcache"
)

// resizable returns a cache of maxBytes whose hashes are the same in every run.
func resizable(t *testing.T, maxBytes int) *Cache {
	t.Helper()
	g := defaultGeometry(maxBytes)
	g.seed = testSeed
	return mustCache(t, g)
}

// mustResize resizes, and checks what must hold from then on.
func mustResize(t *testing.T, c *Cache, maxBytes int) {
	t.Helper()
	if err := c.Resize(maxBytes); err != nil {
		t.Fatal(err)
	}
	if err := c.validate(); err != nil {
		t.Fatalf("resized to %d: %v", maxBytes, err)
	}
	var s Stats
	c.UpdateStats(&s)
	if s.MaxBytesSize != uint64(maxBytes) || s.ReservedBytes > s.MaxBytesSize || s.Corruptions > 0 {
		t.Fatalf("resized to %d: %+v", maxBytes, s)
	}
}

func TestResize_Bounds(t *testing.T) {
	for _, c := range []struct{ made, least int }{
		{minMaxBytes, minMaxBytes}, {256 << 20, 32 << 20}, {512 << 20, 64 << 20}, {1 << 30, 128 << 20}, {math.MaxInt32, 128 << 20},
	} {
		cache := resizable(t, c.made)
		for _, n := range []int{-1, 0, 1, c.least - 1} {
			err := cache.Resize(n)
			if !errors.Is(err, ErrInvalidOptions) || !strings.Contains(err.Error(), fmt.Sprintf("%d bytes, must be at least %d", n, c.least)) {
				t.Errorf("made with %d, resized to %d: got %v", c.made, n, err)
			}
		}
		if math.MaxInt > math.MaxInt32 {
			if err := cache.Resize(math.MaxInt); !errors.Is(err, ErrInvalidOptions) {
				t.Errorf("resized to %d: got %v", math.MaxInt, err)
			}
		}
		mustResize(t, cache, c.least)
		closeCache(t, cache)
		if err := cache.Resize(c.made); !errors.Is(err, ErrClosed) {
			t.Errorf("resized after Close: got %v", err)
		}
	}
}

// The longest value follows the bound.
func TestResize_LongestValue(t *testing.T) {
	c := resizable(t, 256<<20)
	key := []byte("key")
	for _, size := range []int{256 << 20, 32 << 20, 64 << 20, 400 << 20, 32 << 20} {
		mustResize(t, c, size)
		v := make([]byte, size/16+1)
		if err := c.Set(key, v); !errors.Is(err, ErrTooLarge) || c.Has(key) {
			t.Errorf("size %d, value of %d bytes: got %v, want ErrTooLarge", size, len(v), err)
		}
		if err := c.Set(key, v[1:]); err != nil || len(c.Get(nil, key)) != len(v)-1 {
			t.Errorf("size %d, value of %d bytes: got %v", size, len(v)-1, err)
		}
	}
}

// survivors returns how many of the entries of fillCache from first to end-1
// are there.
func survivors(t *testing.T, c *Cache, first, end, valueSize int) (n int) {
	t.Helper()
	var key [8]byte
	var dst []byte
	for id := first; id < end; id++ {
		binary.LittleEndian.PutUint64(key[:], uint64(id))
		var ok bool
		w := write{k: key[:], h: c.shared.hash(key[:])}
		if dst, _, ok = c.peek(dst[:0], &w, true); ok {
			n++
			if len(dst) != valueSize {
				t.Fatalf("entry %d has %d bytes", id, len(dst))
			}
		}
	}
	return n
}

// What fits into the smaller cache stays, all of it.
func TestResize_KeepsWhatFits(t *testing.T) {
	c := resizable(t, 128<<20)
	fillCache(t, c, 0, 150_000, 100)
	fillCache(t, c, 1<<30, 80, 100_000)
	before := c.Len()
	mustResize(t, c, 48<<20)
	if n := c.Len(); n < before*999/1000 {
		t.Errorf("%d entries of %d are left", n, before)
	}
	if n := survivors(t, c, 1<<30, 1<<30+80, 100_000); n < 75 {
		t.Errorf("%d large entries of 80 are left", n)
	}
}

// Of what does not fit, what has been read stays.
func TestResize_KeepsWhatIsRead(t *testing.T) {
	c := resizable(t, 128<<20)
	const n, size = 400_000, 250
	fillCache(t, c, 0, n, size)
	for round := range 2 {
		var key [8]byte
		for id := n / 2; id < n/2+n/10; id++ {
			binary.LittleEndian.PutUint64(key[:], uint64(id))
			if !c.Has(key[:]) && round == 0 && id%1000 == 0 {
				t.Logf("entry %d is not there", id)
			}
		}
	}
	mustResize(t, c, 40<<20)
	read := survivors(t, c, n/2, n/2+n/10, size)
	if all := c.Len(); read < n/10*9/10 || all < n/5 {
		t.Errorf("%d entries are left, and %d of the %d that were read", all, read, n/10)
	}
}

// A cache that was resized holds as much as one that was made with that size,
// whatever was in it before: no index is left too large, no memory idle.
func TestResize_HoldsAsMuch(t *testing.T) {
	sizes := []int{96 << 20, 32 << 20, 48 << 20}
	if testing.Short() || raceEnabled {
		sizes = sizes[:2]
	}
	for _, values := range [][]int{{100}, {300, 100_000}} {
		c := resizable(t, sizes[0])
		fill := func(c *Cache, first int) {
			t.Helper()
			for i, size := range values {
				var s Stats
				c.UpdateStats(&s)
				fillCache(t, c, first+i<<24, int(s.MaxBytesSize)/(size+40)*3/2/len(values), size)
			}
		}
		for i, size := range sizes {
			mustResize(t, c, size)
			after := c.liveBytes() // before anything new comes
			fill(c, i<<28)
			plain := resizable(t, size)
			fill(plain, i<<28)
			if got, want := c.liveBytes(), plain.liveBytes(); got < want*9/10 {
				t.Errorf("values of %v bytes, resized to %d: %d bytes live, %d in a new one", values, size, got, want)
			}
			if i > 0 && size < sizes[i-1] && after < plain.liveBytes()*3/4 {
				t.Errorf("values of %v bytes, resized to %d: %d bytes are left, %d would fit", values, size, after, plain.liveBytes())
			}
		}
	}
}

// Pages that indexes do not need any more become chunks again, even if each
// bucket had chunks of pages to itself.
func TestResize_PagesBecomeChunks(t *testing.T) {
	g := defaultGeometry(256 << 20)
	g.seed = testSeed
	g.expected = expectation{entries: 3_000_000, valueSize: 20}
	c := mustCache(t, g)
	fillCache(t, c, 0, 300_000, 250)
	mustResize(t, c, 64<<20)
	held := 0
	c.each(func(b *bucket) { held += b.heldLocked() })
	if idle := int(c.shared.pool.used.Load()) - held; idle > 3<<20 {
		t.Errorf("%d bytes of idle pages are between those in use", idle)
	}
	plain := resizable(t, 64<<20)
	fillCache(t, plain, 0, 300_000, 250)
	if got, want := c.liveBytes(), plain.liveBytes(); got < want*7/10 {
		t.Errorf("%d bytes are left, %d would fit", got, want)
	}
}

// A value that is longer than the new bound allows is not kept, however often it
// is read.
func TestResize_LongValuesGo(t *testing.T) {
	c := resizable(t, 256<<20)
	long := []byte("long")
	lb := c.largeBucket(c.shared.hash(long))
	if err := c.Set(long, make([]byte, 7<<20)); err != nil {
		t.Fatal(err)
	}
	mustResize(t, c, 96<<20)
	sets := 0
	for id := uint32(0); c.Has(long); id++ {
		k := trafficKey(nil, id)
		if c.largeBucket(c.shared.hash(k)) != lb {
			continue
		}
		if err := c.Set(k, make([]byte, 5<<20)); err != nil {
			t.Fatal(err)
		}
		c.Has(k) // so that it goes to main, where the long one is
		if sets++; sets > 100 {
			t.Fatalf("still there after %d sets", sets)
		}
	}
}

// The pool's bound follows what is in use down to where it is to be, and not
// beyond.
func TestResize_BoundFollows(t *testing.T) {
	p := newChunkPool(osMemory, 100<<10, 1<<10)
	var taken []chunkRef
	for range 80 {
		r, err := p.chunk()
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, r)
	}
	for want := 80; len(taken) > 0; want-- {
		p.lower(30 << 10)
		if got := int(p.bound.Load()) >> 10; got != max(want, 30) {
			t.Fatalf("the bound is %d chunks with %d in use", got, len(taken))
		}
		p.put(taken[0])
		taken = taken[1:]
	}
	if err := p.close(); err != nil {
		t.Error(err)
	}
}

func (c *Cache) liveBytes() int {
	var s Stats
	c.UpdateStats(&s)
	return int(s.BytesSize)
}

// No bucket is locked for long: a step drops or moves so many bytes or records
// and no more.
func TestResize_StepsAreSmall(t *testing.T) {
	for _, size := range []int{0, 100, 1000, 60_000} {
		c := resizable(t, 1<<30)
		c.mask = 0 // all in one bucket
		b := &c.buckets[0]
		n := 2 << 20 / (size + 20)
		fillCache(t, c, 0, n, size)
		var key [8]byte
		for id := range n {
			if id%3 > 0 {
				binary.LittleEndian.PutUint64(key[:], uint64(id))
				c.Has(key[:])
			}
		}
		c.shared.maxBytes.Store(128 << 20)
		c.allot(128 << 20)
		total := func() (records, bytes int) {
			return int(b.evictedSmall + b.evictedMain + b.promotions + b.reinsertions), b.sizeLocked()
		}
		steps := 0
		for f := (fit{}); !f.done; steps++ {
			records, bytes := total()
			b.fit(&f, new(write))
			r, by := total()
			// The last record of a step, and what a promotion makes room for.
			most := fitBytes + size + 2*shrinkStep
			if r-records > fitRecords+most/(size+11) || bytes-by > most {
				t.Errorf("values of %d bytes: a step has %d records and %d bytes", size, r-records, bytes-by)
			}
		}
		if steps < 10 || b.heldLocked() > b.quota() {
			t.Errorf("values of %d bytes: %d steps to %d bytes, quota %d", size, steps, b.heldLocked(), b.quota())
		}
		c.mask = bucketCount - 1
		c.Reset()
	}
}

// A Set that comes to its bucket with the figures of a larger cache is sent
// back.
func TestResize_LateSet(t *testing.T) {
	c := resizable(t, 256<<20)
	small, large := make([]byte, 60_000), make([]byte, 16<<20)
	k := []byte("key")
	h := c.shared.hash(k)
	b := c.bucket(h)
	if c.isLarge(len(small) + longHeader + len(k)) {
		t.Fatal("not small: the test proves nothing")
	}
	mustResize(t, c, 32<<20)
	late := write{k: k, v: small, h: h, n: len(small) + longHeader + len(k)}
	if err := c.setSmall(b, &late); err != errResized {
		t.Errorf("a record too large for its bucket: got %v", err)
	}
	late.v, late.n = large, len(large)+longHeader+len(k)
	if err := c.setLarge(b, &late); err != errResized {
		t.Errorf("a record too large for the cache: got %v", err)
	}
	if c.Len() != 0 {
		t.Errorf("%d entries are there", c.Len())
	}
	if err := c.Set(k, small); err != nil || len(c.Get(nil, k)) != len(small) {
		t.Errorf("set: got %v", err)
	}
}

// OnEvict hears of all that a smaller cache has no room for, and may use the
// cache meanwhile.
func TestResize_TellsOnEvict(t *testing.T) {
	g := defaultGeometry(256 << 20)
	told := 0
	var c *Cache
	g.onEvict = func(k, _ []byte, reason Reason) {
		told++
		if reason != EvictCapacity || c.Has(k) {
			t.Errorf("told of %x, which is there or left for reason %s", k, reason)
		}
	}
	c = mustCache(t, g)
	fillCache(t, c, 0, 100_000, 400)
	fillCache(t, c, 1<<30, 200, 500_000)
	before, toldBefore := c.Len(), told
	mustResize(t, c, 32<<20)
	if gone := before - c.Len(); gone < 1000 || told-toldBefore != gone {
		t.Errorf("%d entries are gone, OnEvict was told of %d", gone, told-toldBefore)
	}
}

// A value that is too long by now is lost when Touch has to write it again, and
// OnEvict is told.
func TestResize_TouchTooLong(t *testing.T) {
	g := defaultGeometry(256 << 20)
	var reasons []Reason
	g.onEvict = func(_, _ []byte, reason Reason) { reasons = append(reasons, reason) }
	c := mustCache(t, g)
	k := []byte("long")
	if err := c.Set(k, make([]byte, 7<<20)); err != nil {
		t.Fatal(err)
	}
	mustResize(t, c, 96<<20)
	if !c.Has(k) {
		t.Fatal("gone already: the test proves nothing")
	}
	if c.Touch(k, time.Hour) || c.Has(k) || !slices.Equal(reasons, []Reason{EvictCapacity}) {
		t.Errorf("it is there, or OnEvict was told %v", reasons)
	}
}

// Resize up and down, again and again, under everybody else's traffic.
func TestResize_Concurrent(t *testing.T) {
	for _, g := range concurrentCases() {
		for _, clock := range []*refcache.Clock{new(refcache.Clock), nil} {
			t.Run(fmt.Sprintf("%s/history=%v", describe(g), clock != nil), func(t *testing.T) {
				for seed := range uint64(rounds()) {
					tr := newTraffic(t, g)
					tr.clock, tr.resized = clock, true
					resizeDuring(t, tr, g, func() {
						all := tr.run(t, seed, concurrentSteps())
						if clock != nil {
							tr.checkHistories(t, seed, all)
						}
					})
				}
			})
		}
	}
}

// resizeDuring resizes the cache until run returns.
func resizeDuring(t *testing.T, tr *traffic, g geometry, run func()) {
	t.Helper()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Add(1)
	go func() {
		defer wg.Done()
		least := leastBytes(g)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if !tr.c.resize(least + (g.maxBytes*2-least)*(i*3%7)/6) {
				return // closed
			}
		}
	}()
	run()
	close(stop)
	wg.Wait()
	if tr.c.resize(leastBytes(g)) {
		var s Stats
		if tr.c.UpdateStats(&s); s.ReservedBytes > s.MaxBytesSize {
			t.Errorf("%d bytes in use, the bound is %d", s.ReservedBytes, s.MaxBytesSize)
		}
	}
}

func TestResize_CloseMeanwhile(t *testing.T) {
	g := tiny(16, 4096, 64)
	for seed := range uint64(3) {
		tr := newTraffic(t, g)
		tr.resized = true
		resizeDuring(t, tr, g, func() {
			var wg sync.WaitGroup
			wg.Add(1)
			go func() {
				defer wg.Done()
				for tr.c.Len() < 200 {
					runtime.Gosched()
				}
				tr.closing.Store(true)
				closeCache(t, tr.c)
				tr.closed.Store(true)
			}()
			tr.run(t, seed, 2000)
			wg.Wait()
		})
		var s Stats
		if tr.c.UpdateStats(&s); s.ReservedBytes != 0 || s.EntriesCount != 0 {
			t.Errorf("a closed cache holds something: %+v", s)
		}
	}
}
