package ringcache

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// hinted returns a cache of the least size for which such entries were said to
// come.
func hinted(t *testing.T, entries, valueSize int) *Cache {
	t.Helper()
	g := defaultGeometry(minMaxBytes)
	g.seed = testSeed
	g.expected = expectation{entries, valueSize}
	return mustCache(t, g)
}

// indexPages returns how many pages the indexes of all small buckets have, and
// how many buckets have one.
func indexPages(c *Cache) (pages, buckets int) {
	for i := range c.buckets {
		if n := len(c.buckets[i].index.pages); n > 0 {
			pages += n
			buckets++
		}
	}
	return pages, buckets
}

// With the right hints, indexes have their final size at once, and it is not
// far from what they would have grown to.
func TestHints_IndexNeedNotGrow(t *testing.T) {
	const entries, size = 300_000, 40
	c, plain := hinted(t, entries, size), hinted(t, 0, 0)
	fillCache(t, c, 0, entries/10, size)
	fillCache(t, plain, 0, entries/10, size)
	first, touched := indexPages(c)
	if touched != bucketCount {
		t.Fatalf("%d buckets have an index", touched)
	}
	if n, _ := indexPages(plain); n >= first {
		t.Errorf("%d pages with hints, %d without", first, n)
	}
	fillCache(t, c, 0, entries, size)
	fillCache(t, plain, 0, entries, size)
	if n, _ := indexPages(c); n > first+first/50 {
		t.Errorf("%d pages at first, %d in the end: the indexes grew", first, n)
	}
	if n, _ := indexPages(plain); first > n+n/4 {
		t.Errorf("%d pages with hints, grown to %d without", first, n)
	}
	if n := c.Len(); n < entries*999/1000 {
		t.Errorf("%d of %d entries are there", n, entries)
	}
}

// A new bucket knows how long records are.
func TestHints_Shape(t *testing.T) {
	for _, c := range []struct {
		valueSize, lines int
		crowdedAt        uint8
	}{{0, 1, crowdedFilling}, {1, 1, crowdedFilling}, {100, 3, crowdedFilling}, {2000, 4, crowdedRoomy}, {1 << 30, 4, crowdedRoomy}} {
		b := &hinted(t, 1000, c.valueSize).buckets[0]
		if int(b.rings[0].lines) != c.lines || b.crowdedAt != c.crowdedAt {
			t.Errorf("values of %d bytes: %d lines, crowded at %d", c.valueSize, b.rings[0].lines, b.crowdedAt)
		}
	}
}

// Hints beyond all measure take little from the entries.
func TestHints_TooHigh(t *testing.T) {
	const size = 500
	plain := hinted(t, 0, 0)
	fillCache(t, plain, 0, 100_000, size)
	for _, valueSize := range []int{0, size} {
		c := hinted(t, math.MaxInt, valueSize)
		fillCache(t, c, 0, 100_000, size)
		least := plain.Len() * 19 / 20
		if valueSize == 0 {
			least = plain.Len() * 4 / 5
		}
		if n := c.Len(); n < least {
			t.Errorf("expected value size %d: %d entries, %d without hints", valueSize, n, plain.Len())
		}
	}
}

// Where there is no memory for all first pages, one has to do.
func TestHints_OnePageIfNotMore(t *testing.T) {
	var m meter
	m.allowed.Store(1)
	for _, bound := range []int{0, 1 << 20} { // refused by the bound; by the operating system
		m.maps.Store(0)
		g := tiny(1, 1024, 64)
		g.mem = m.memory()
		g.expected = expectation{entries: 500}
		c := mustCache(t, g)
		b, p := &c.buckets[0], c.shared.pool
		want := b.firstPages()
		if want < 3 {
			t.Fatalf("%d pages expected: the test proves little", want)
		}
		for p.used.Load() < int64(p.mapSize-2*p.chunkSize) {
			if _, err := p.chunk(); err != nil {
				t.Fatal(err)
			}
		}
		p.bound.Add(int64(bound))
		if err := b.startIndexLocked(); err != nil {
			t.Fatal(err)
		}
		if n := len(b.index.pages); n != 1 {
			t.Errorf("bound and %d: %d pages of %d expected", bound, n, want)
		}
	}
}

func TestHints_Options(t *testing.T) {
	for name, o := range map[string]Options{
		"ExpectedEntries is -1":   {MaxBytes: 1, ExpectedEntries: -1},
		"ExpectedValueSize is -7": {MaxBytes: 1, ExpectedValueSize: -7},
	} {
		if _, err := NewWithOptions(o); !errors.Is(err, ErrInvalidOptions) || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: got %v", o, err)
		}
	}
	c, err := NewWithOptions(Options{MaxBytes: 1, ExpectedEntries: math.MaxInt, ExpectedValueSize: math.MaxInt})
	if err != nil {
		t.Fatal(err)
	}
	fillCache(t, c, 0, 2000, 10)
	if c.Len() != 2000 {
		t.Errorf("%d of 2000 entries are there", c.Len())
	}
	closeCache(t, c)
}
