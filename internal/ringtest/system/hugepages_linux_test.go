package system

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// What Linux says of large pages, in /proc/self/smaps.

// needHugePages skips a test where the kernel gives no large pages, or few because its memory is
// fragmented. It comes before InChild.
func needHugePages(t *testing.T) {
	t.Helper()
	b, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil || strings.Contains(string(b), "[never]") {
		t.Skipf("no transparent huge pages here: %s, %v", b, err)
	}
	const flags = unix.MAP_ANON | unix.MAP_PRIVATE
	b, err = unix.Mmap(-1, 0, fullBytes, unix.PROT_READ|unix.PROT_WRITE, flags)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(b)) }()
	before := smaps(t)
	require.NoError(t, unix.Madvise(b, unix.MADV_HUGEPAGE))
	for i := 0; i < len(b); i += os.Getpagesize() {
		b[i] = 1
	}
	if n := smaps(t).since(before).large; n < fullBytes*3/4 {
		t.Skipf("few transparent huge pages here: for %d bytes of %d", n, fullBytes)
	}
}

// pages are the bytes of a process's memory of some kinds.
type pages struct {
	large    int // on large pages
	wanted   int // asked to be on large pages: "hg" of VmFlags
	unwanted int // asked to be on small ones: "nh"
}

func smaps(t *testing.T) (p pages) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	size := 0
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		kb := 0
		if len(f) == 3 && f[2] == "kB" {
			kb, err = strconv.Atoi(f[1])
			require.NoError(t, err)
		}
		switch f[0] {
		case "Size:":
			size = kb << 10
		case "AnonHugePages:":
			p.large += kb << 10
		case "VmFlags:":
			for _, flag := range f[1:] {
				switch flag {
				case "hg":
					p.wanted += size
				case "nh":
					p.unwanted += size
				}
			}
		}
	}
	return p
}

func (p pages) since(q pages) pages {
	return pages{p.large - q.large, p.wanted - q.wanted, p.unwanted - q.unwanted}
}

// newFull returns a cache that is full of entries of 116 bytes.
func newFull(t *testing.T, huge ringcache.HugePages) *ringcache.Cache {
	t.Helper()
	c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: fullBytes, HugePages: huge})
	require.NoError(t, err)
	fillOver(t, c, 116)
	return c
}

func TestHugePages_AreAskedForAsOptionsSay(t *testing.T) {
	needHugePages(t)
	if !ringtest.InChild(t) {
		return
	}
	before := smaps(t)
	c := newFull(t, ringcache.HugePagesOff)
	got := smaps(t).since(before)
	assert.GreaterOrEqual(t, got.unwanted, fullBytes, "off")
	assert.LessOrEqual(t, got.large, 2<<20, "off")
	ringtest.CloseCache(t, c)

	before = smaps(t)
	c2 := newFull(t, ringcache.HugePagesWhenFull)
	got = smaps(t).since(before)
	assert.GreaterOrEqual(t, got.wanted, fullBytes*7/8, "when full")
	ringtest.CloseCache(t, c2)

	before = smaps(t)
	c3 := newFull(t, ringcache.HugePagesAtOnce)
	got = smaps(t).since(before)
	assert.GreaterOrEqual(t, got.wanted, fullBytes, "at once")
	assert.GreaterOrEqual(t, got.large, fullBytes/2, "at once: as many as the kernel had")
	ringtest.CloseCache(t, c3)
	c.Len() // and the others: addresses stay until here
	c2.Len()
	c3.Len()
}

// The cache gives back what Resize takes away, even where it was a part of a large page.
func TestHugePages_ResizedCacheGivesPartsBack(t *testing.T) {
	needHugePages(t)
	if !ringtest.InChild(t) {
		return
	}
	const smaller = fullBytes / 2
	resident, before := ringtest.Rss(t), smaps(t)
	c := newFull(t, ringcache.HugePagesAtOnce)
	large := smaps(t).since(before).large
	require.GreaterOrEqual(t, large, fullBytes/2, "the test proves nothing")
	split := vmstat(t, "thp_split_page")
	ringtest.MustResize(t, c, smaller)
	// A large page that is not split stays as a whole, though nobody counts it any more.
	assert.GreaterOrEqual(t, vmstat(t, "thp_split_page")-split, large/(2<<20)/2, "that were split")
	const most = smaller + smaller/10 + 8<<20
	assert.LessOrEqual(t, ringtest.Rss(t)-resident, most)
	fillOver(t, c, 116)
	assert.LessOrEqual(t, ringtest.Rss(t)-resident, most, "filled again")
	ringtest.CloseCache(t, c)
	assert.LessOrEqual(t, ringtest.Rss(t)-resident, goneBound, "after Close")
}

// A cache that is filling asks for large pages only behind what has been filled.
func TestHugePages_WhenFullTakesNoMemory(t *testing.T) {
	needHugePages(t)
	if !ringtest.InChild(t) {
		return
	}
	grown := map[ringcache.HugePages]int{}
	for _, huge := range []ringcache.HugePages{ringcache.HugePagesOff, ringcache.HugePagesWhenFull} {
		before := ringtest.Rss(t)
		c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 1 << 30, HugePages: huge})
		require.NoError(t, err)
		ringtest.FillCache(t, c, 0, 1_200_000, 100) // some 150 MB
		grown[huge] = ringtest.Rss(t) - before
		ringtest.CloseCache(t, c)
	}
	// Pages of indexes lie on large pages at once.
	assert.LessOrEqual(t, grown[ringcache.HugePagesWhenFull],
		grown[ringcache.HugePagesOff]+grown[ringcache.HugePagesOff]/100+4<<20)
}

// vmstat returns a counter of the kernel's.
func vmstat(t *testing.T, name string) int {
	t.Helper()
	b, err := os.ReadFile("/proc/vmstat")
	require.NoError(t, err)
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); f[0] == name {
			n, err := strconv.Atoi(f[1])
			require.NoError(t, err)
			return n
		}
	}
	require.Fail(t, "no such counter", name)
	return 0
}
