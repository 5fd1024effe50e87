package persist

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/testhook"
)

// smallSnapshot returns the bytes of a snapshot of a few hundred bytes, and its entries.
func smallSnapshot(t testing.TB) ([]byte, map[string]ringtest.Kept) {
	t.Helper()
	c := ringtest.MustCache(t, ringtest.Tiny(1, 64, 64))
	for id := range uint32(8) {
		v := ringtest.Stamp{ID: id, Version: 1, Size: ringtest.SelfSize}.Value(nil)
		if id == 7 {
			v = ringtest.Text(7, 150) // which can be compressed
		}
		require.NoError(t, c.SetWithTTL(ringtest.TrafficKey(nil, id), v, time.Duration(id%2)*time.Hour))
		c.Has(ringtest.TrafficKey(nil, id/2))
	}
	b, _ := ringtest.SnapshotOf(t, c)
	return b, ringtest.Contents(t, c)
}

// judges are caches that are empty each time, and made once.
var judges = [3]func() *ringcache.Cache{emptied(0), emptied(0), emptied(0x20)}

// emptied returns a function that returns a cache, with a cold part as MaybeCold has it.
func emptied(shape byte) func() *ringcache.Cache {
	once := sync.OnceValue(func() *ringcache.Cache {
		return ringtest.NewCache(ringtest.MaybeCold(ringtest.Tiny(1, 64, 64), shape))
	})
	return func() *ringcache.Cache {
		once().Reset()
		return once()
	}
}

// judge loads bytes in every way. An error is ErrCorrupt and says where; what comes back
// was saved; and what a salvage leaves out is counted. It returns how many entries the
// salvage has brought.
func judge(t *testing.T, b []byte, all map[string]ringtest.Kept, whole bool, what string) int {
	t.Helper()
	stream, file, rest := judges[0](), judges[1](), judges[2]()
	check := func(c *ringcache.Cache) int {
		got := ringtest.Contents(t, c)
		for k, e := range got {
			if w, ok := all[k]; !ok || w.Value != e.Value || w.Negative != e.Negative {
				require.Fail(t, "a wrong value", "%s: key %x", what, k)
			}
		}
		return len(got)
	}
	_, errStream := stream.ReadSnapshot(io.MultiReader(bytes.NewReader(b)))
	_, errFile := file.ReadSnapshot(bytes.NewReader(b))
	for _, err := range []error{errStream, errFile} {
		if err != nil {
			require.ErrorIs(t, err, ringcache.ErrCorrupt, what)
			require.ErrorContains(t, err, "offset ", what)
		}
		require.Equal(t, whole, err == nil, what)
	}
	check(stream)
	check(file)

	s, err := snapshot.Scan(bytes.NewReader(b), int64(len(b)), true)
	if err != nil {
		require.ErrorIs(t, err, ringcache.ErrCorrupt, what)
		return 0
	}
	require.NoError(t, testhook.Restore(rest, s), what)
	n := check(rest)
	ringtest.SinkAll(rest)
	check(rest)
	require.Equal(t, whole, s.Damaged == 0, what)
	if whole {
		require.NoError(t, s.Damage(), what)
	} else {
		require.ErrorIs(t, s.Damage(), ringcache.ErrCorrupt, what)
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
			if i%3 != bit%3 && !*ringtest.LongRun {
				continue
			}
			b[i] ^= 1 << bit
			n := judge(t, b, all, false, fmt.Sprintf("bit %d of byte %d", bit, i))
			b[i] ^= 1 << bit
			lost := 0
			for _, block := range blocks {
				if i >= int(block.At) && i < block.end() {
					lost = int(block.Records)
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
				want += int(block.Records)
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
	missing := len(all) - int(blocks[0].Records)
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
	evil := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	require.NoError(t, evil.Set([]byte("evil"), []byte("v")))
	inner, _ := ringtest.SnapshotOf(t, evil)
	c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	value := bytes.Clone(inner)
	for range 4000 { // so that the block is not packed
		value = append(value, byte(rand.Uint64()))
	}
	require.NoError(t, c.Set([]byte("k"), value))
	b, _ := ringtest.SnapshotOf(t, c)
	require.Contains(t, string(b), string(inner))
	b[blocksOf(t, b)[1].At] ^= 1 // so that the next block is searched for
	d, report := ringtest.MustLoadInto(t, ringtest.WriteFile(t, b),
		ringcache.Options{MaxBytes: ringtest.MinBytes})
	require.False(t, d.Has([]byte("evil")))
	require.Zero(t, d.Len())
	require.ErrorIs(t, report.Err, ringcache.ErrCorrupt)
	require.NotZero(t, report.DiscardedBlocks)
}

// The public functions on a damaged file.
func TestSnapshot_DamagedFile(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(64<<20))
	ringtest.FillCache(t, c, 0, 100_000, 100)
	b, path := ringtest.SnapshotOf(t, c)
	blocks := blocksOf(t, b)
	hurt := blocks[len(blocks)/2]
	b[hurt.At+1000] ^= 0x10
	require.NoError(t, os.WriteFile(path, b, 0o600))
	d, err := ringcache.LoadFromFile(path)
	require.Nil(t, d)
	require.ErrorIs(t, err, ringcache.ErrCorrupt)
	require.ErrorContains(t, err, "ringcache: load snapshot: "+path+": offset ")
	where := fmt.Sprintf("offset %d: checksum of block %d is ", hurt.At, hurt.ID)
	require.ErrorContains(t, err, where)
	d, report := ringtest.MustLoadInto(t, path, ringcache.Options{MaxBytes: 64 << 20})
	require.Equal(t, c.Len()-int(hurt.Records), d.Len())
	require.Equal(t, d.Len(), report.Entries)
	require.Equal(t, 1, report.DiscardedBlocks)
	require.EqualError(t, report.Err, err.Error(), "Load reports what LoadFromFile returns")
	b[hurt.At+1000] ^= 0x10
	path = ringtest.WriteFile(t, append(b, 0))
	_, err = ringcache.LoadFromFile(path)
	require.ErrorIs(t, err, ringcache.ErrCorrupt)
	require.ErrorContains(t, err, "1 bytes follow the end mark")
	_, report = ringtest.MustLoadInto(t, path, ringcache.Options{MaxBytes: 64 << 20})
	require.EqualError(t, report.Err, err.Error())
	require.Equal(t, []int{c.Len(), 0}, []int{report.Entries, report.DiscardedBlocks})
	all := []string{"", "x", strings.Repeat("ringsnap", 100), strings.Repeat("\x00", 5000)}
	for _, rubbish := range all {
		path := ringtest.WriteFile(t, []byte(rubbish))
		_, err := ringcache.LoadFromFile(path)
		require.ErrorIs(t, err, ringcache.ErrCorrupt)
		e, report := ringtest.MustLoadInto(t, path, ringcache.Options{MaxBytes: ringtest.MinBytes})
		require.EqualError(t, report.Err, err.Error())
		require.Equal(t, 1, report.DiscardedBlocks)
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
		block.Records = 1
		of := snapshot.BlockHeader{Kind: 1, Quarter: 1, ID: uint32(i)}
		b = append(b, block.Finish(of, h.Salt)...)
	}
	end := snapshot.End{Blocks: uint64(len(blocks)), Records: uint64(len(blocks))}
	return end.Append(b, &h)
}

// forgeRun returns a run that says it has so many records and bytes.
func forgeRun(ring byte, records uint32, size uint64, rest ...byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte{ring}, records)
	return append(binary.LittleEndian.AppendUint64(b, size), rest...)
}

// forgeRecord returns a run of a record, and its frequency.
func forgeRecord(record ...byte) []byte {
	return append(forgeRun(1, 1, uint64(len(record)), record...), 0)
}

// Nothing is allocated on the word of a number in the file, and nothing panics, even if
// all checksums are right.
func TestSnapshot_NumbersThatLie(t *testing.T) {
	good := forgeRecord(1, 1, 0, 'k', 'v')
	h := snapshot.Header{MaxBytes: 1 << 25}
	for name, b := range map[string][]byte{
		"key":         forge(h, forgeRecord(63, 1, 0, 'k', 'v')),
		"value":       forge(h, forgeRecord(1, 255, 255, 'k', 'v')),
		"long key":    forge(h, forgeRecord(0x40, 255, 255, 1, 0, 0, 0, 'k', 'v')),
		"long value":  forge(h, forgeRecord(0x40, 1, 0, 255, 255, 255, 255, 'k', 'v')),
		"half":        forge(h, forgeRecord(0x40, 1, 0)),
		"one byte":    forge(h, forgeRecord(1)),
		"dead":        forge(h, forgeRecord(0x81, 1, 0, 'k', 'v')),
		"packed":      forge(h, forgeRecord(0x43, 1, 0, 1, 0, 0, 0, 'k', 'v')),
		"a kind":      forge(h, forgeRecord(0x48, 1, 0, 1, 0, 0, 0, 'k', 'v')),
		"negative":    forge(h, forgeRecord(0x42, 1, 0, 1, 0, 0, 0, 9, 9, 9, 9, 'k', 'v')),
		"a byte more": forge(h, forgeRecord(1, 1, 0, 'k', 'v', 0)),
		"two records": forge(h, forgeRun(1, 2, 10, 1, 1, 0, 'k', 'v', 1, 1, 0, 'l', 'v', 0)),
		"two runs":    forge(h, append(bytes.Clone(good), good...)),
		"a ring":      forge(h, forgeRun(2, 1, 5, 1, 1, 0, 'k', 'v', 0)),
		"no record":   forge(h, forgeRun(1, 0, 0)),
		"no run":      forge(h, nil),
		"bytes":       forge(h, forgeRun(1, 1, 1<<62, 1, 1, 0, 'k', 'v', 0)),
		"all bytes":   forge(h, forgeRun(1, 1, 1<<64-1, 1, 1, 0, 'k', 'v', 0)),
		"records":     forge(h, forgeRun(1, 1<<32-1, 5, 1, 1, 0, 'k', 'v', 0)),
		"no freqs":    forge(h, forgeRun(1, 1, 5, 1, 1, 0, 'k', 'v')),
	} {
		path := ringtest.WriteFile(t, b)
		_, err := ringcache.LoadFromFile(path)
		require.ErrorIs(t, err, ringcache.ErrCorrupt, name)
		d, report := ringtest.MustLoadInto(t, path, ringcache.Options{MaxBytes: ringtest.MinBytes})
		require.Zero(t, d.Len(), name)
		require.ErrorIs(t, report.Err, ringcache.ErrCorrupt, name)
		require.NotZero(t, report.DiscardedBlocks, name)
	}
	for name, h := range map[string]snapshot.Header{ // settings are not worth the entries
		"no bound":   {},
		"4 TB":       {MaxBytes: 1<<42 + 1},
		"no int":     {MaxBytes: 1 << 63},
		"a past ttl": {MaxBytes: 1 << 25, TTL: -1},
		"ahead":      {MaxBytes: 1 << 25, TTL: 1, RefreshAhead: 2},
	} {
		d, err := ringcache.LoadFromFile(ringtest.WriteFile(t, forge(h, good)))
		require.NoError(t, err, name)
		require.True(t, d.Has([]byte("k")), name)
		ringtest.CloseCache(t, d)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	h = snapshot.Header{MaxBytes: 1 << 30, Entries: 1 << 60, Policy: 200}
	d, err := ringcache.LoadFromFile(ringtest.WriteFile(t, forge(h, good)))
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	if chunk.OffHeap { // or the cache's own memory is counted too
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20))
	}
	require.Less(t, ringtest.StatsOf(d).ReservedBytes, uint64(1<<20))
	v, ok := d.HasGet(nil, []byte("k"))
	require.True(t, ok)
	require.Equal(t, "v", string(v))
	require.Equal(t, ringcache.PolicyS3FIFO, ringcache.Policy(ringtest.Shared(d).Policy),
		"of a policy that is not known")
	ringtest.CloseCache(t, d)
}

// Another version of the format, newer or older, is told from damage.
func TestSnapshot_OtherVersion(t *testing.T) {
	h := snapshot.Header{MaxBytes: 1 << 25}
	for _, version := range []uint32{0, snapshot.Version - 1, snapshot.Version + 1} {
		b := h.Append(nil)
		binary.LittleEndian.PutUint32(b[12:], version)
		binary.LittleEndian.PutUint64(b[len(b)-8:], xxhash.Sum64(b[:len(b)-8]))
		for _, err := range []error{
			func() error { _, err := ringcache.LoadFromFile(ringtest.WriteFile(t, b)); return err }(),
			func() error {
				_, err := ringcache.New(ringtest.MinBytes).ReadSnapshot(bytes.NewBuffer(b))
				return err
			}(),
		} {
			require.ErrorIs(t, err, ringcache.ErrVersion)
			require.False(t, errors.Is(err, ringcache.ErrCorrupt))
			require.ErrorContains(t, err,
				fmt.Sprintf("version %d of the format, only 5 is known", version))
		}
	}
}

var golden = flag.Bool("ringcache.golden", false, "write the golden snapshot anew")

const goldenFile = "testdata/v5.snapshot"

// A file of version 5 of the format is read by every later version, on all platforms.
func TestSnapshot_Golden(t *testing.T) {
	if *golden {
		g := ringtest.Default(ringtest.MinBytes)
		g.TTL, g.RefreshAhead = time.Hour, time.Minute
		saver := ringtest.NewFakeMachine() // whose wall clock is behind that of all who read the file
		saver.Wall = time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)
		g.Machine = saver.Machine()
		c := ringtest.MustCache(t, g)
		goldenEntries(t, c, saver.Wall)
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, c.SaveToFile(goldenFile))
	}
	c := ringtest.MustLoad(t, goldenFile)
	want := ringtest.NewCache(ringtest.Default(ringtest.MinBytes))
	defer want.Close()
	goldenEntries(t, want, time.Now())
	got := ringtest.Contents(t, c)
	ringtest.RequireSame(t, ringtest.Contents(t, want), got, true)
	h := headerOf(t, c)
	require.Equal(t, []time.Duration{time.Hour, time.Minute}, []time.Duration{h.TTL, h.RefreshAhead})
	require.EqualValues(t, ringtest.MinBytes, ringtest.StatsOf(c).MaxBytesSize)
	left, ok := c.TTL([]byte("until 2033"))
	require.True(t, ok)
	until := time.Now().Add(left)
	if time.Now().Year() < 2033 {
		require.WithinDuration(t, time.Date(2033, 1, 1, 0, 0, 0, 0, time.UTC), until, time.Second)
	}
}

func goldenEntries(t testing.TB, c *ringcache.Cache, now time.Time) {
	t.Helper()
	for id := range uint32(300) {
		v := ringtest.Stamp{ID: id, Version: 1, Size: int(id % 60)}.Value(nil)
		require.NoError(t, c.SetWithTTL(ringtest.TrafficKey(nil, id), v, 0))
		for range id % 5 {
			c.Has(ringtest.TrafficKey(nil, id))
		}
	}
	require.NoError(t, c.SetWithTTL(nil, nil, 0))
	require.NoError(t, c.SetWithTTL(bytes.Repeat([]byte("k"), 200), []byte("long key"), 0))
	require.NoError(t, c.SetWithTTL([]byte("long"), bytes.Repeat([]byte("v"), 70_000), 0))
	require.NoError(t, c.SetWithTTL([]byte("until 2033"), []byte("v"),
		time.Date(2033, 1, 1, 0, 0, 0, 0, time.UTC).Sub(now)))
	w := store.Write{Key: []byte("negative"), Kind: record.Negative, Last: 1<<32 - 1}
	require.NoError(t, ringtest.Write(c, w))
}

// writesOf returns how often the buckets of a cache were locked to be written to.
func writesOf(c *ringcache.Cache) (n uint64) {
	ringtest.EachBucket(c, func(b ringtest.Bucket) { n += b.Seq.Load() / 2 })
	return n
}

// FuzzSnapshot reads any bytes, as they are and with a header before them, and changes
// bytes of a good snapshot.
func FuzzSnapshot(f *testing.F) {
	b, all := smallSnapshot(f)
	f.Add(b, uint16(0), byte(0))
	f.Add([]byte("rblk"), uint16(100), byte(1))
	f.Add([]byte{1, 0, 0, 'k'}, uint16(5), byte(255)) // a record, of which there are many
	f.Add(forgeRecord(1, 1, 0, 'k', 'v'), uint16(5), byte(255))
	f.Add(forgeRecord(0x61, 1, 0, 9, 0, 0, 0, 'k', 'v'), uint16(5), byte(255))
	f.Add(forgeRecord(0x42, 1, 0, 0, 0, 0, 0, 9, 0, 0, 0, 'k'), uint16(5), byte(255))
	f.Fuzz(func(t *testing.T, data []byte, at uint16, x byte) {
		changed := bytes.Clone(b)
		i := int(at) % len(b)
		changed[i] ^= x
		n := copy(changed[i:], data[:min(len(data), int(x))])
		if _, err := snapshot.ParseHeader(changed, 0); errors.Is(err, ringcache.ErrVersion) {
			return // a corpus has snapshots that an older tree wrote
		}
		judge(t, changed, all, bytes.Equal(changed, b), fmt.Sprintf("%d bytes at %d", n, i))

		// What the checksums do not save us from.
		c := judges[0]()
		forged, writes := forge(snapshot.Header{MaxBytes: 1 << 25}, data), writesOf(c)
		var err error
		allocated := ringtest.Allocated(func() { _, err = c.ReadSnapshot(bytes.NewReader(forged)) })
		if err != nil {
			require.ErrorIs(t, err, ringcache.ErrCorrupt)
		}
		require.LessOrEqual(t, writesOf(c)-writes, uint64(8+len(data)), "of %d bytes", len(data))
		require.Less(t, allocated, uint64(4*snapshot.MaxBlock+16*len(forged)), "%d bytes", len(data))
		dense := forgeDense(snapshot.Header{MaxBytes: 1 << 25}, 1, 1, data[:min(len(data), 1000)])
		allocated = ringtest.Allocated(func() { _, err = c.ReadSnapshot(bytes.NewReader(dense)) })
		if err != nil {
			require.ErrorIs(t, err, ringcache.ErrCorrupt)
		}
		require.Less(t, allocated, mostHeap(len(dense)), "copies of %d bytes", len(data))
		require.NoError(t, ringtest.Validate(c))
		s, err := snapshot.Scan(bytes.NewReader(data), int64(len(data)), true)
		if err == nil {
			require.NoError(t, testhook.Restore(c, s))
			require.NoError(t, ringtest.Validate(c))
		}
	})
}
