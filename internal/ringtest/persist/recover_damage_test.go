//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package persist

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringfile"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/store"
)

// damaged is a small cache's file, and what may be found in it.
type damaged struct {
	g     ringtest.Shape
	path  string
	whole []byte
	holds map[string]string
	alone bool // no other test runs meanwhile
}

// newDamaged returns the file of a cache with entries of all kinds: short, long, with an
// expiry, large, overwritten, deleted, and expired.
func newDamaged(t testing.TB) *damaged { return newDamagedOf(t, ringtest.Tiny(2, 256, 16)) }

// newDamagedOf is newDamaged of a cache of that shape, which may have a cold part.
func newDamagedOf(t testing.TB, g ringtest.Shape) *damaged {
	d := &damaged{
		g:     g,
		path:  filepath.Join(ringtest.DirInMemory(t), "cache"),
		holds: map[string]string{},
	}
	_, d.alone = t.(*testing.F)
	var now time.Duration
	d.g.Elapsed = func() time.Duration { return now }
	c := ringtest.MustOpen(t, d.g, d.path)
	set := func(k, v string, ttl time.Duration) {
		require.NoError(t, c.SetWithTTL([]byte(k), []byte(v), ttl))
		d.holds[k] = v
	}
	for i := range 25 {
		set(fmt.Sprint("key ", i), fmt.Sprint("value ", i), 0)
	}
	set(string(bytes.Repeat([]byte("long key "), 10)), "of a long header", 0)
	set("key 1", "value X", 0) // over the old one
	set("key 2", "a longer value elsewhere", 0)
	set("expires", "late", time.Hour)
	set("large", string(bytes.Repeat([]byte("large"), 100)), 0)
	set("expires soon", "gone", time.Second)
	set("deleted", "gone", 0)
	set("deleted too", "gone", time.Hour)
	for _, k := range []string{"deleted", "deleted too", "expires soon"} {
		delete(d.holds, k)
	}
	require.True(t, c.Del([]byte("deleted")))
	require.True(t, c.Del([]byte("deleted too")))
	now = time.Minute
	if g.Compressor != nil {
		for i := range 20 {
			set(fmt.Sprint("packed ", i), string(ringtest.Text(i, 200)), 0)
		}
		ringtest.SinkAll(c)
		require.Equal(t, !*ringtest.ColdOn, ringtest.CountPacked(c) > 20)
	}
	require.NoError(t, c.Close())
	d.whole = d.read(t)
	return d
}

func (d *damaged) read(t testing.TB) []byte {
	b, err := os.ReadFile(d.path)
	require.NoError(t, err)
	return b
}

// openAllocates is the most that opening a file allocates apart from the length of the file.
const openAllocates = 1 << 20

// open opens the file with other bytes, and checks that nothing wrong is found. It
// returns how many entries are left, or -1 if the file was refused.
func (d *damaged) open(t testing.TB, b []byte, what string) (left int) {
	require.NoError(t, os.WriteFile(d.path, b, 0o600))
	var c *ringcache.Cache
	var err error
	open := func() { c, err = ringtest.Open(d.g, d.path) }
	if !d.alone || !chunk.OffHeap {
		open()
	} else if n := ringtest.Allocated(open); n > openAllocates+uint64(len(b)) {
		require.Fail(t, "too much is allocated", "%s: %d bytes for %d", what, n, len(b))
	}
	if err != nil {
		if !errors.Is(err, ringcache.ErrVersion) { // as a damaged header may say
			require.ErrorIs(t, err, ringcache.ErrCorrupt, what)
		}
		return -1
	}
	if err := ringtest.Validate(c); err != nil {
		require.NoError(t, err, what)
	}
	for k, v := range c.All() {
		if want, ok := d.holds[string(k)]; !ok || want != string(v) {
			require.Equal(t, want, string(v), "%s: value of %q", what, k)
		}
		left++
	}
	for _, k := range []string{"deleted", "deleted too", "expires soon"} {
		if c.Has([]byte(k)) {
			require.Fail(t, "it has come back", "%s: %s", what, k)
		}
	}
	if err := c.Set([]byte("new"), []byte("value")); err != nil {
		require.NoError(t, err, what)
	}
	if !c.Has([]byte("new")) {
		require.Fail(t, "a Set is not found", what)
	}
	ringtest.Abandon(c) // Close waits for the disk
	return left
}

func TestFile_EveryBitFlipped(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	d := newDamaged(t)
	all := d.open(t, d.whole, "whole")
	require.Equal(t, len(d.holds), all)
	flips, lost := 0, 0
	for at := range d.whole {
		inUse := d.whole[at] != 0 || at < 256 || at > 0 && d.whole[at-1] != 0
		if !inUse {
			continue // of a part that nobody has written to
		}
		for bit := range 8 {
			if !*ringtest.LongRun && (bit != at%8 || at > 2*ringfile.HeadSize && at%9 != 0) && at > 256 {
				continue // one of each byte but of the header, and of every ninth of records
			}
			b := bytes.Clone(d.whole)
			b[at] ^= 1 << bit
			left := d.open(t, b, fmt.Sprintf("bit %d of byte %d", bit, at))
			flips++
			if left < all {
				lost++
			}
		}
	}
	t.Logf("%d bits flipped, of which %d lost something", flips, lost)
	require.Greater(t, lost, flips/4, "the flips hit nothing")
}

func TestFile_TruncatedZeroedAndGarbage(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	d := newDamaged(t)
	step := 997
	if *ringtest.LongRun {
		step = 31
	}
	for n := 0; n <= len(d.whole); n += step {
		d.open(t, d.whole[:n], fmt.Sprintf("the first %d bytes", n))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		b := bytes.Clone(d.whole)
		from := r.IntN(len(b))
		if r.IntN(2) == 0 {
			from = ringfile.HeadSize*2 + r.IntN(len(b)-2*ringfile.HeadSize) // of the chunks
		}
		part := b[from:min(len(b), from+1+r.IntN(4096))]
		switch r.IntN(3) {
		case 0:
			clear(part)
		case 1:
			ringtest.FillRandom(r, part)
		default:
			copy(part, b[r.IntN(len(b)):]) // another part of the same file
		}
		d.open(t, b, fmt.Sprintf("%d bytes from %d on", len(part), from))
	}
	garbage := make([]byte, len(d.whole))
	ringtest.FillRandom(r, garbage)
	require.Equal(t, -1, d.open(t, garbage, "garbage"), "the file is refused")
	require.Equal(t, garbage, d.read(t), "and stays as it is")
}

// A ring that is lost as a whole begins anew, and what is set then is found after a death.
func TestFile_LostRingBeginsAnew(t *testing.T) {
	g := ringtest.Tiny(2, 256, 16)
	path := filepath.Join(t.TempDir(), "cache")
	c := ringtest.MustOpen(t, g, path)
	ringtest.FillCache(t, c, 0, 1000, 20)
	require.NoError(t, c.Close())
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	clear(b[ringfile.HeadSize:][:8]) // what makes the chunks an extent
	require.NoError(t, os.WriteFile(path, b, 0o600))
	for round := range 2 {
		c = ringtest.MustOpen(t, g, path)
		require.NoError(t, ringtest.Validate(c))
		require.Equal(t, round, c.Len())
		require.NoError(t, c.Set([]byte("new"), []byte("value")))
		require.NoError(t, ringtest.Validate(c))
		ringtest.Abandon(c)
	}
}

// A copy made while the file is in use may have chunks of one bucket where another has its own. The
// records in them are no entries, since no lookup would find them.
func TestFile_ChunksOfAnotherBucket(t *testing.T) {
	t.Parallel()
	const size = 256 // of a chunk
	g := ringtest.Tiny(2, size, 16)
	path := filepath.Join(t.TempDir(), "cache")
	c := ringtest.MustOpen(t, g, path)
	ringtest.FillCache(t, c, 0, 1000, 20)
	require.NoError(t, c.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	var chunks []int
	for at := 2 * ringfile.HeadSize; at < len(whole); at += size {
		if bytes.Count(whole[at:at+size], []byte{0}) < size-16 {
			chunks = append(chunks, at)
		}
	}
	require.Greater(t, len(chunks), 16)
	for i, x := range chunks[:4] {
		for _, y := range chunks[i+1:] {
			b := bytes.Clone(whole)
			copy(b[x:x+size], whole[y:y+size])
			copy(b[y:y+size], whole[x:x+size])
			require.NoError(t, os.WriteFile(path, b, 0o600))
			c := ringtest.MustOpen(t, g, path)
			found := 0
			for k := range c.Keys() {
				require.True(t, c.Has(k))
				found++
			}
			require.Equal(t, c.Len(), found)
			ringtest.Abandon(c)
		}
	}
}

// An overwrite that gives another expiry, cut off behind that: the old value must not live
// on with it.
func TestFile_OldValueDoesNotGetTheNewExpiry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	c := ringtest.OpenFile(t, path, 32<<20)
	k := []byte("k")
	require.NoError(t, c.SetWithTTL(k, []byte("old"), time.Hour))
	h := ringtest.HashOf(c, k)
	b := ringtest.BucketOf(c, h)
	b.Lock()
	var f store.Found
	require.True(t, b.Find(&f, k, h))
	f.Ring.SetTimes(f.Pos, f.Header, record.Times{Expiry: f.Expiry + 1000})
	b.Unlock()
	ringtest.Abandon(c)
	c = ringtest.OpenFile(t, path, 32<<20)
	require.False(t, c.Has(k))
	require.NoError(t, ringtest.Validate(c))
	require.NoError(t, c.Close())
}

// A file that was made small, was in use with a larger bound, and is small again.
func TestFile_BoundHoldsAfterALargerOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	require.NoError(t, ringtest.OpenFile(t, path, 32<<20).Close())
	c := ringtest.OpenFile(t, path, 64<<20)
	ringtest.FillCache(t, c, 0, 60_000, 1000)
	require.NoError(t, c.Close())
	c = ringtest.OpenFile(t, path, 32<<20)
	var s ringcache.Stats
	c.UpdateStats(&s)
	require.LessOrEqual(t, s.ReservedBytes, s.MaxBytesSize)
	require.Greater(t, c.Len(), 20_000)
	require.NoError(t, ringtest.Validate(c))
	require.NoError(t, c.Close())
}

func FuzzFile(f *testing.F) {
	files := [2]*damaged{newDamaged(f),
		newDamagedOf(f, ringtest.MaybeCold(ringtest.Tiny(2, 256, 64), 0x20))}
	const cold = 1 << 31 // added to a place in the file
	for _, add := range []uint32{0, cold} {
		f.Add(add, []byte{1})
		f.Add(add+4096, bytes.Repeat([]byte{0xff}, 64))
		f.Add(add+2*ringfile.HeadSize, files[0].whole[2*ringfile.HeadSize:][:512])
	}
	f.Fuzz(func(t *testing.T, at uint32, patch []byte) {
		d := files[at/cold]
		at %= cold
		b := bytes.Clone(d.whole)
		copy(b[int(at)%len(b):], patch)
		d.open(t, b, fmt.Sprintf("%d bytes at %d", len(patch), int(at)%len(b)))
	})
}

func TestFile_InUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	c := ringtest.OpenFile(t, path, 32<<20)
	require.NoError(t, c.Set([]byte("k"), []byte("v")))
	_, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 32 << 20, File: path})
	require.ErrorIs(t, err, ringcache.ErrInUse)
	require.ErrorContains(t, err, path)
	require.Equal(t, "v", string(c.Get(nil, []byte("k"))), "the first one is not harmed")
	require.NoError(t, c.Close())
	c = ringtest.OpenFile(t, path, 32<<20)
	require.True(t, c.Has([]byte("k")))
	require.NoError(t, c.Close())
}

func TestFile_NotAFileOfOurs(t *testing.T) {
	dir := t.TempDir()
	refused := func(path string) error {
		_, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 32 << 20, File: path})
		require.Error(t, err)
		require.ErrorContains(t, err, path)
		return err
	}
	refused(dir)
	require.ErrorIs(t, refused(filepath.Join(dir, "missing", "cache")), os.ErrNotExist)
	others := bytes.Repeat([]byte("somebody's "), 10000)
	for name, text := range map[string]string{
		"short": "somebody's", "long": string(others),
		"short, from zeros on": string(make([]byte, 100)) + "somebody's",
		"a letter":             "r", "a word": "ring", "the name": "ringfile\n",
		"from the name on": "ringfiles " + string(others), "zeros": string(make([]byte, 100)),
		"zeros, a byte short": string(make([]byte, ringfile.HeadSize-1)),
		"zeros, a byte more":  string(make([]byte, ringfile.HeadSize+1)),
		"long, from zeros on": string(make([]byte, ringfile.HeadSize)) + string(others),
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.ErrorIs(t, refused(path), ringcache.ErrCorrupt)
		require.Regexp(t, "^ringcache: open ring file .*: data is corrupt$", refused(path))
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(b), "it stays as it is")
	}
	path := filepath.Join(dir, "cache")
	for _, n := range []int64{0, ringfile.HeadSize} { // what a crash leaves of a file that is new
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Truncate(path, n))
		require.NoError(t, ringtest.OpenFile(t, path, 32<<20).Close())
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}

func TestFile_HeaderOfAnother(t *testing.T) {
	d := newDamaged(t)
	newer := bytes.Clone(d.whole)
	binary.LittleEndian.PutUint32(newer[12:], ringfile.Version+1)
	require.Equal(t, -1, d.open(t, newer, "newer version"))
	_, err := ringtest.Open(d.g, d.path)
	require.ErrorIs(t, err, ringcache.ErrVersion)
	require.NotErrorIs(t, err, ringcache.ErrCorrupt)
	order := bytes.Clone(d.whole)
	for i := range 4 {
		order[8+i] = d.whole[11-i]
	}
	require.Equal(t, -1, d.open(t, order, "other byte order"))
	require.Equal(t, order, d.read(t))
	for _, buckets := range []uint32{0, 3, 1024, math.MaxUint32} {
		other := bytes.Clone(d.whole)
		binary.LittleEndian.PutUint32(other[20:], buckets)
		binary.LittleEndian.PutUint64(other[sumAt:], xxhash.Sum64(other[:sumAt]))
		require.Equal(t, -1, d.open(t, other, fmt.Sprintf("%d buckets", buckets)))
	}
}

func TestFile_AnotherBootStartsEmptyUnlessClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	for _, closed := range []bool{true, false} {
		c := ringtest.OpenFile(t, path, 32<<20)
		require.NoError(t, c.Set([]byte("k"), []byte("v")))
		if closed {
			require.NoError(t, c.Close())
		} else {
			ringtest.Shared(c).File.Rings.SetState(anotherBoot, false)
			ringtest.Abandon(c)
		}
		c = ringtest.OpenFile(t, path, 32<<20)
		require.Equal(t, closed, c.Has([]byte("k")))
		require.NoError(t, c.Close())
	}
}

func TestFile_OtherOptions(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	path := filepath.Join(t.TempDir(), "cache")
	const n = 100_000
	c := ringtest.OpenFile(t, path, 256<<20)
	ringtest.FillCache(t, c, 0, n, 100)
	ringtest.FillCache(t, c, 0, n/2, 100)
	require.NoError(t, c.Close())
	for _, o := range []ringcache.Options{
		{MaxBytes: 512 << 20}, {MaxBytes: 128 << 20}, {MaxBytes: 256 << 20, Policy: ringcache.PolicyFIFO},
		{MaxBytes: 64 << 20}, {MaxBytes: 1 << 30}, {MaxBytes: 32 << 20},
	} {
		o.File = path
		c, err := ringcache.NewWithOptions(o)
		require.NoError(t, err)
		require.NoError(t, ringtest.Validate(c))
		held := 0
		key, want := make([]byte, 8), make([]byte, 100)
		for i := range n {
			binary.LittleEndian.PutUint64(key, uint64(i))
			if v, ok := c.HasGet(nil, key); ok {
				require.Equal(t, want, v)
				held++
			}
		}
		require.Greater(t, held, n*95/100, "%d bytes, %v", o.MaxBytes, o.Policy)
		var s ringcache.Stats
		c.UpdateStats(&s)
		require.LessOrEqual(t, s.ReservedBytes, s.MaxBytesSize)
		require.EqualValues(t, o.MaxBytes, s.MaxBytesSize)
		require.NoError(t, c.Close())
	}
}

func TestFile_CloseTwiceAndAfter(t *testing.T) {
	c := ringtest.OpenFile(t, filepath.Join(t.TempDir(), "cache"), 32<<20)
	require.NoError(t, c.Set([]byte("k"), []byte("v")))
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	require.False(t, c.Has([]byte("k")))
	require.True(t, errors.Is(c.Set([]byte("k"), []byte("v")), ringcache.ErrClosed))
}

// A damaged record may have the kind of a packed one in any ring, also without a cold part.
func TestFile_DamagedKindIsNoPackedRecord(t *testing.T) {
	d := newDamaged(t)
	flips := 0
	for at := ringfile.HeadSize; at < len(d.whole); at++ {
		if d.whole[at] != 0x40 { // a long header without an expiry, or some other byte
			continue
		}
		b := bytes.Clone(d.whole)
		b[at] = 0x43
		d.open(t, b, fmt.Sprint("byte ", at))
		flips++
	}
	require.NotZero(t, flips)
}
