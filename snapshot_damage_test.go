package ringcache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/testhook"
)

// smallSnapshot returns the bytes of a snapshot of a few hundred bytes, and its entries.
func smallSnapshot(t testing.TB) ([]byte, map[string]kept) {
	t.Helper()
	c := mustCache(t, tiny(1, 64, 64))
	for id := range uint32(8) {
		v := stamp{id: id, version: 1, size: selfSize}.value(nil)
		if id == 7 {
			v = text(7, 150) // which can be compressed
		}
		require.NoError(t, c.SetWithTTL(trafficKey(nil, id), v, time.Duration(id%2)*time.Hour))
		c.Has(trafficKey(nil, id/2))
	}
	b, _ := snapshotOf(t, c)
	return b, contents(t, c)
}

// judges are caches that are empty each time, and made once.
var judges = [3]func() *Cache{emptied(0), emptied(0), emptied(0x20)}

// emptied returns a function that returns a cache, with a cold part as maybeCold has it.
func emptied(shape byte) func() *Cache {
	once := sync.OnceValue(func() *Cache { return newCache(maybeCold(tiny(1, 64, 64), shape)) })
	return func() *Cache {
		once().Reset()
		return once()
	}
}

// judge loads bytes in every way. An error is ErrCorrupt and says where; what comes back
// was saved; and what a salvage leaves out is counted. It returns how many entries the
// salvage has brought.
func judge(t *testing.T, b []byte, all map[string]kept, whole bool, what string) int {
	t.Helper()
	stream, file, rest := judges[0](), judges[1](), judges[2]()
	check := func(c *Cache) int {
		got := contents(t, c)
		for k, e := range got {
			if w, ok := all[k]; !ok || w.value != e.value || w.negative != e.negative {
				require.Fail(t, "a wrong value", "%s: key %x", what, k)
			}
		}
		return len(got)
	}
	_, errStream := stream.ReadSnapshot(io.MultiReader(bytes.NewReader(b)))
	_, errFile := file.ReadSnapshot(bytes.NewReader(b))
	for _, err := range []error{errStream, errFile} {
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt, what)
			require.ErrorContains(t, err, "offset ", what)
		}
		require.Equal(t, whole, err == nil, what)
	}
	check(stream)
	check(file)

	s, err := snapshot.Scan(bytes.NewReader(b), int64(len(b)), true)
	if err != nil {
		require.ErrorIs(t, err, ErrCorrupt, what)
		return 0
	}
	require.NoError(t, testhook.Restore(rest, s), what)
	n := check(rest)
	rest.sinkAll()
	check(rest)
	require.Equal(t, whole, s.Damaged == 0, what)
	if whole {
		require.NoError(t, s.Damage(), what)
	} else {
		require.ErrorIs(t, s.Damage(), ErrCorrupt, what)
	}
	if whole {
		require.Equal(t, len(all), n, what)
	}
	return n
}

// Of every bit of a small snapshot, the flip is noticed, and costs a block at most.
func TestSnapshot_EveryBitFlipped(t *testing.T) {
	t.Parallel()
	b, all := smallSnapshot(t)
	whole := len(all)
	require.Equal(t, whole, judge(t, b, all, true, "as it is"))
	blocks := blocksOf(t, b)
	require.Greater(t, len(blocks), 2)
	for i := range b {
		for bit := range 8 {
			if i%3 != bit%3 && testing.Short() {
				continue
			}
			b[i] ^= 1 << bit
			n := judge(t, b, all, false, fmt.Sprintf("bit %d of byte %d", bit, i))
			b[i] ^= 1 << bit
			lost := 0
			for _, block := range blocks {
				if i >= int(block.At) && i < block.end() {
					lost = int(block.Entries)
				}
			}
			require.Equal(t, whole-lost, n, "bit %d of byte %d", bit, i)
		}
	}
}

// placed is a block and its place.
type placed struct{ snapshot.Ref }

func (p placed) end() int { return int(p.At) + snapshot.BlockHeaderSize + int(p.Length) }

func blocksOf(t testing.TB, b []byte) (all []placed) {
	t.Helper()
	s, err := snapshot.Scan(bytes.NewReader(b), int64(len(b)), false)
	require.NoError(t, err)
	for _, ref := range s.Blocks {
		all = append(all, placed{ref})
	}
	return all
}

// Every truncation is noticed, and what stands before it is there.
func TestSnapshot_EveryTruncation(t *testing.T) {
	b, all := smallSnapshot(t)
	blocks := blocksOf(t, b)
	for n := range b {
		got := judge(t, b[:n], all, false, fmt.Sprintf("%d bytes", n))
		want := 0
		for _, block := range blocks {
			if block.end() <= n {
				want += int(block.Entries)
			}
		}
		require.Equal(t, want, got, "%d bytes", n)
	}
}

// Blocks may come in any order. None may be missing, or come twice.
func TestSnapshot_BlocksElsewhere(t *testing.T) {
	b, all := smallSnapshot(t)
	blocks := blocksOf(t, b)
	part := func(i int) []byte { return b[blocks[i].At:blocks[i].end()] }
	last := len(blocks) - 1
	head, end := b[:snapshot.HeaderSize], b[blocks[last].end():]
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	var reversed, rest [][]byte
	for i := range blocks {
		reversed = append(reversed, part(last-i))
		if i > 0 {
			rest = append(rest, part(i))
		}
	}
	missing := len(all) - int(blocks[0].Entries)
	judge(t, join(head, join(reversed...), end), all, true, "reversed")
	n := judge(t, join(head, join(rest...), end), all, false, "one is missing")
	require.Equal(t, missing, n)
	n = judge(t, join(b[:len(b)-len(end)], part(0), end), all, false, "one comes twice")
	require.Equal(t, len(all), n)
	n = judge(t, join(head, join(rest...), part(1), end), all, false, "one in another's place")
	require.Equal(t, missing, n)
	zeroed := bytes.Clone(b)
	clear(zeroed[blocks[0].At:blocks[0].end()])
	require.Equal(t, missing, judge(t, zeroed, all, false, "zeroed"))
	n = judge(t, join(head, []byte("rblk rubbish rblkrblk"), b[len(head):]), all, false,
		"rubbish")
	require.Equal(t, len(all), n)
	n = judge(t, b[:len(b)-len(end)], all, false, "no end")
	require.Equal(t, len(all), n)

	// A block of another snapshot, be it of the same cache.
	other, _ := smallSnapshot(t)
	foreign := blocksOf(t, other)[0]
	n = judge(t, join(head, join(rest...), other[foreign.At:foreign.end()], end), all, false,
		"foreign")
	require.Equal(t, missing, n)
}

// A value that holds a whole snapshot is not taken for a part of this one.
func TestSnapshot_ValueThatLooksLikeABlock(t *testing.T) {
	evil := mustCache(t, defaultGeometry(minMaxBytes))
	require.NoError(t, evil.Set([]byte("evil"), []byte("v")))
	inner, _ := snapshotOf(t, evil)
	c := mustCache(t, defaultGeometry(minMaxBytes))
	require.NoError(t, c.Set([]byte("k"), inner))
	b, _ := snapshotOf(t, c)
	require.Contains(t, string(b), string(inner))
	b[snapshot.HeaderSize] ^= 1 // so that the next block is searched for
	d, report := mustLoadInto(t, writeFile(t, b), Options{MaxBytes: minMaxBytes})
	require.False(t, d.Has([]byte("evil")))
	require.Zero(t, d.Len())
	require.ErrorIs(t, report.Err, ErrCorrupt)
	require.NotZero(t, report.DiscardedBlocks)
}

// The public functions on a damaged file.
func TestSnapshot_DamagedFile(t *testing.T) {
	c := mustCache(t, defaultGeometry(64<<20))
	fillCache(t, c, 0, 100_000, 100)
	b, path := snapshotOf(t, c)
	blocks := blocksOf(t, b)
	hurt := blocks[len(blocks)/2]
	b[hurt.At+1000] ^= 0x10
	require.NoError(t, os.WriteFile(path, b, 0o600))
	d, err := LoadFromFile(path)
	require.Nil(t, d)
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, "ringcache: load snapshot: "+path+": offset ")
	where := fmt.Sprintf("offset %d: checksum of block %d is ", hurt.At, hurt.ID)
	require.ErrorContains(t, err, where)
	d, report := mustLoadInto(t, path, Options{MaxBytes: 64 << 20})
	require.Equal(t, c.Len()-int(hurt.Entries), d.Len())
	require.Equal(t, d.Len(), report.Entries)
	require.Equal(t, 1, report.DiscardedBlocks)
	require.EqualValues(t, 1, statsOf(d).Snapshots.DiscardedBlocks)
	require.EqualError(t, report.Err, err.Error(), "Load reports what LoadFromFile returns")
	b[hurt.At+1000] ^= 0x10
	path = writeFile(t, append(b, 0))
	_, err = LoadFromFile(path)
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, "1 bytes follow the end mark")
	_, report = mustLoadInto(t, path, Options{MaxBytes: 64 << 20})
	require.EqualError(t, report.Err, err.Error())
	require.Equal(t, []int{c.Len(), 0}, []int{report.Entries, report.DiscardedBlocks})
	all := []string{"", "x", strings.Repeat("ringsnap", 100), strings.Repeat("\x00", 5000)}
	for _, rubbish := range all {
		path := writeFile(t, []byte(rubbish))
		_, err := LoadFromFile(path)
		require.ErrorIs(t, err, ErrCorrupt)
		e, report := mustLoadInto(t, path, Options{MaxBytes: minMaxBytes})
		require.EqualError(t, report.Err, err.Error())
		require.Equal(t, 1, report.DiscardedBlocks)
		require.EqualValues(t, 1, statsOf(e).Snapshots.DiscardedBlocks)
		require.Zero(t, e.Len())
	}
}

// forge makes a snapshot of a header and blocks that say what they like.
func forge(h snapshot.Header, blocks ...[]byte) []byte {
	b := h.Append(nil)
	for i, body := range blocks {
		var block snapshot.Block
		block.Reset()
		block.Bytes = append(block.Bytes, body...)
		block.Entries = 1
		b = append(b, block.Finish(5, uint32(i), h.Salt, new(snapshot.Packer))...)
	}
	end := snapshot.End{Blocks: uint64(len(blocks)), Entries: uint64(len(blocks))}
	return end.Append(b, &h)
}

// Nothing is allocated on the word of a number in the file, and nothing panics, even if
// all checksums are right.
func TestSnapshot_NumbersThatLie(t *testing.T) {
	huge := binary.AppendUvarint(nil, 1<<62)
	entry := func(meta byte, parts ...[]byte) []byte {
		return append([]byte{meta}, bytes.Join(parts, nil)...)
	}
	good := entry(0, []byte{1, 1}, []byte("kv"))
	never := bytes.Repeat([]byte{0xff}, 8)
	h := snapshot.Header{MaxBytes: 1 << 25}
	for name, b := range map[string][]byte{
		"key":         forge(h, entry(0, huge, []byte{1}, []byte("kv"))),
		"value":       forge(h, entry(0, []byte{1}, huge, []byte("kv"))),
		"both":        forge(h, entry(0, huge, huge)),
		"endless":     forge(h, bytes.Repeat([]byte{0xff}, 30)),
		"meta":        forge(h, entry(0x80, []byte{1, 1}, []byte("kv"))),
		"no expiry":   forge(h, entry(4, []byte{1, 1}, []byte("kv"))),
		"before 1970": forge(h, entry(4, []byte{1, 1}, never, []byte("kv"))),
		"negative":    forge(h, entry(8, []byte{1, 1}, []byte("kv"))),
		"two entries": forge(h, append(bytes.Clone(good), good...)),
		"no entry":    forge(h, nil),
	} {
		path := writeFile(t, b)
		_, err := LoadFromFile(path)
		require.ErrorIs(t, err, ErrCorrupt, name)
		d, report := mustLoadInto(t, path, Options{MaxBytes: minMaxBytes})
		require.Zero(t, d.Len(), name)
		require.ErrorIs(t, report.Err, ErrCorrupt, name)
		require.NotZero(t, report.DiscardedBlocks, name)
	}
	for name, h := range map[string]snapshot.Header{ // settings are not worth the entries
		"no bound":   {},
		"a past ttl": {MaxBytes: 1 << 25, TTL: -1},
		"ahead":      {MaxBytes: 1 << 25, TTL: 1, RefreshAhead: 2},
	} {
		d, err := LoadFromFile(writeFile(t, forge(h, good)))
		require.NoError(t, err, name)
		require.True(t, d.Has([]byte("k")), name)
		closeCache(t, d)
	}
	for name, h := range map[string]snapshot.Header{
		"4 TB":   {MaxBytes: 1<<42 + 1},
		"no int": {MaxBytes: 1 << 63},
	} {
		_, err := LoadFromFile(writeFile(t, forge(h, good)))
		if h.MaxBytes > 1<<42 && runtime.GOARCH == "386" {
			continue // it is as much as there can be
		}
		require.ErrorIs(t, err, ErrInvalidOptions, name)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	h = snapshot.Header{MaxBytes: 1 << 30, Entries: 1 << 60, Bytes: 1 << 60, Policy: 200}
	d, err := LoadFromFile(writeFile(t, forge(h, good)))
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	if offHeap { // or the cache's own memory is counted too
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20))
	}
	require.Less(t, statsOf(d).ReservedBytes, uint64(1<<20))
	v, ok := d.HasGet(nil, []byte("k"))
	require.True(t, ok)
	require.Equal(t, "v", string(v))
	require.Equal(t, PolicyS3FIFO, Policy(d.shared.Policy), "of a policy that is not known")
	closeCache(t, d)
}

// Another version of the format, newer or older, is told from damage.
func TestSnapshot_OtherVersion(t *testing.T) {
	h := snapshot.Header{MaxBytes: 1 << 25}
	for _, version := range []uint32{0, snapshot.Version - 1, snapshot.Version + 1} {
		b := h.Append(nil)
		binary.LittleEndian.PutUint32(b[12:], version)
		binary.LittleEndian.PutUint64(b[len(b)-8:], xxhash.Sum64(b[:len(b)-8]))
		for _, err := range []error{
			func() error { _, err := LoadFromFile(writeFile(t, b)); return err }(),
			func() error { _, err := New(1).ReadSnapshot(bytes.NewBuffer(b)); return err }(),
		} {
			require.ErrorIs(t, err, ErrVersion)
			require.False(t, errors.Is(err, ErrCorrupt))
			require.ErrorContains(t, err,
				fmt.Sprintf("version %d of the format, only 2 is known", version))
		}
	}
}

var golden = flag.Bool("ringcache.golden", false, "write the golden snapshot anew")

const goldenFile = "testdata/v2.snapshot"

// A file of version 2 of the format is read by every later version, on all platforms.
func TestSnapshot_Golden(t *testing.T) {
	if *golden {
		g := defaultGeometry(minMaxBytes)
		g.ttl, g.ahead = time.Hour, time.Minute
		saver := newFakeMachine() // whose wall clock is behind that of all who read the file
		saver.wall = time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)
		g.machine = saver.machine()
		c := mustCache(t, g)
		goldenEntries(t, c, saver.wall)
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, c.SaveToFile(goldenFile))
	}
	c := mustLoad(t, goldenFile)
	want := newCache(defaultGeometry(minMaxBytes))
	defer want.Close()
	goldenEntries(t, want, time.Now())
	got := contents(t, c)
	requireSame(t, contents(t, want), got, true)
	h := headerOf(t, c)
	require.Equal(t, []time.Duration{time.Hour, time.Minute}, []time.Duration{h.TTL, h.RefreshAhead})
	require.EqualValues(t, minMaxBytes, statsOf(c).MaxBytesSize)
	left, ok := c.TTL([]byte("until 2033"))
	require.True(t, ok)
	until := time.Now().Add(left)
	if time.Now().Year() < 2033 {
		require.WithinDuration(t, time.Date(2033, 1, 1, 0, 0, 0, 0, time.UTC), until, time.Second)
	}
}

func goldenEntries(t testing.TB, c *Cache, now time.Time) {
	t.Helper()
	for id := range uint32(300) {
		v := stamp{id: id, version: 1, size: int(id % 60)}.value(nil)
		require.NoError(t, c.SetWithTTL(trafficKey(nil, id), v, 0))
		for range id % 5 {
			c.Has(trafficKey(nil, id))
		}
	}
	require.NoError(t, c.SetWithTTL(nil, nil, 0))
	require.NoError(t, c.SetWithTTL(bytes.Repeat([]byte("k"), 200), []byte("long key"), 0))
	require.NoError(t, c.SetWithTTL([]byte("long"), bytes.Repeat([]byte("v"), 70_000), 0))
	require.NoError(t, c.SetWithTTL([]byte("until 2033"), []byte("v"),
		time.Date(2033, 1, 1, 0, 0, 0, 0, time.UTC).Sub(now)))
	w := store.Write{Key: []byte("negative"), Negative: true, Expiry: 1<<32 - 1}
	require.NoError(t, testhook.Write(c, w))
}

// FuzzSnapshot reads any bytes, as they are and with a header before them, and changes
// bytes of a good snapshot.
func FuzzSnapshot(f *testing.F) {
	b, all := smallSnapshot(f)
	f.Add(b, uint16(0), byte(0))
	f.Add([]byte("rblk"), uint16(100), byte(1))
	f.Add([]byte{0, 1, 1, 'k', 'v'}, uint16(5), byte(255))
	f.Fuzz(func(t *testing.T, data []byte, at uint16, x byte) {
		changed := bytes.Clone(b)
		i := int(at) % len(b)
		changed[i] ^= x
		n := copy(changed[i:], data[:min(len(data), int(x))])
		if _, err := snapshot.ParseHeader(changed, 0); errors.Is(err, ErrVersion) {
			return // a corpus has snapshots that an older tree wrote
		}
		judge(t, changed, all, bytes.Equal(changed, b), fmt.Sprintf("%d bytes at %d", n, i))

		// What the checksums do not save us from.
		c := judges[0]()
		_, err := c.ReadSnapshot(bytes.NewReader(forge(snapshot.Header{MaxBytes: 1 << 25}, data)))
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
		}
		require.NoError(t, c.validate())
		s, err := snapshot.Scan(bytes.NewReader(data), int64(len(data)), true)
		if err == nil {
			require.NoError(t, testhook.Restore(c, s))
			require.NoError(t, c.validate())
		}
	})
}
