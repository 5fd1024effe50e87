package persist

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/store"
)

// ReadSnapshot adds: keys that are there stay as they are, the absent ones among them.
func TestReadSnapshot_Adds(t *testing.T) {
	c := ringtest.MixedCache(t, ringtest.Default(ringtest.MinBytes))
	b, path := ringtest.SnapshotOf(t, c)
	g := ringtest.Default(ringtest.MinBytes)
	var now time.Duration
	g.Elapsed = func() time.Duration { return now }
	d := ringtest.MustCache(t, g)
	for id := range uint32(700) {
		v := ringtest.Stamp{ID: id, Version: 2, Size: ringtest.MixedSize(id + 7)}.Value(nil)
		require.NoError(t, d.Set(ringtest.TrafficKey(nil, id), v))
	}
	require.NoError(t, d.SetWithTTL([]byte("an hour"), nil, time.Second))
	now = time.Second
	was := ringtest.Contents(t, d)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	n, err := d.ReadSnapshot(f)
	require.NoError(t, err)
	require.EqualValues(t, len(b), n)
	want := ringtest.Contents(t, c)
	for k, e := range was {
		if k != "an hour" {
			want[k] = e
		}
	}
	ringtest.RequireSame(t, want, ringtest.Contents(t, d), false)
	n, err = d.ReadSnapshot(f) // which is at its end
	require.ErrorIs(t, err, ringcache.ErrCorrupt)
	require.ErrorContains(t, err, path)
	require.Zero(t, n)
}

// What loading pushes out is told, with no lock held.
func TestSnapshot_LoadingTellsOnRemove(t *testing.T) {
	t.Parallel()
	big := ringtest.MustCache(t, ringtest.Default(128<<20))
	ringtest.FillCache(t, big, 0, 400_000, 100)
	_, path := ringtest.SnapshotOf(t, big)
	var c *ringcache.Cache
	var told atomic.Int64
	g := ringtest.Default(ringtest.MinBytes)
	g.OnRemove = func(gone ringcache.Removal) {
		told.Add(1)
		c.Has(gone.Key)
		assert.Equal(t, ringcache.RemovedEvicted, gone.Reason)
	}
	c = ringtest.MustCache(t, g)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	_, err = c.ReadSnapshot(f)
	require.NoError(t, err)
	s := ringtest.StatsOf(c)
	require.EqualValues(t, s.EvictedEntries, told.Load())
	require.Equal(t, s.RestoredEntries, s.EvictedEntries+s.EntriesCount)
	require.NotZero(t, told.Load())
}

// A typed view works on a loaded cache, and a loaded one is saved like any other.
func TestSnapshot_TypedViewOfALoadedCache(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	type user struct{ Name string }
	view := func(c *ringcache.Cache) *ringcache.Typed[uint64, user] {
		return ringcache.NewTyped[uint64](c, codec.JSON[user](), ringcache.TypedOptions{Prefix: "user:"})
	}
	require.NoError(t, view(c).Set(7, user{"Ada"}))
	_, path := ringtest.SnapshotOf(t, c)
	for range 3 {
		d := ringtest.MustLoad(t, path)
		u, ok, err := view(d).Get(7)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "Ada", u.Name)
		_, path = ringtest.SnapshotOf(t, d)
	}
}

// Errors of files name what was asked for, and leave nothing.
func TestSnapshot_FilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none")
	c, err := ringcache.LoadFromFile(none)
	require.Nil(t, c)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "ringcache: load snapshot: "+none)
	_, err = ringcache.LoadFromFile(dir)
	require.ErrorContains(t, err, "not a regular file: d")

	c, report, err := ringcache.Load(none, ringcache.Options{MaxBytes: ringtest.MinBytes})
	require.NoError(t, err)
	require.ErrorIs(t, report.Err, fs.ErrNotExist)
	require.ErrorContains(t, report.Err, "ringcache: load snapshot: "+none)
	require.Zero(t, report.DiscardedBlocks+report.Entries, "nothing was lost")
	require.Zero(t, c.Len())
	require.ErrorContains(t, c.SaveToFile(dir), dir, "a folder is not replaced")
	require.Empty(t, ringtest.Litter(t, filepath.Dir(dir)))
	file := filepath.Join(dir, "file")
	require.NoError(t, c.SaveToFile(file))
	require.Error(t, c.SaveToFile(filepath.Join(file, "below a file")))
	info, err := os.Stat(file)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, fs.FileMode(0o600), info.Mode())
	}
	require.Zero(t, ringtest.MustLoad(t, file).Len(), "an empty cache is a snapshot too")

	require.NoError(t, c.Close())
	require.ErrorIs(t, c.SaveToFile(file), ringcache.ErrClosed, "or it would replace a full one")
	_, err = c.WriteSnapshot(io.Discard)
	require.ErrorIs(t, err, ringcache.ErrClosed)
	_, err = c.ReadSnapshot(bytes.NewReader(ringtest.ReadFile(t, file)))
	require.ErrorIs(t, err, ringcache.ErrClosed, "though there is nothing to restore")
	n, err := c.ReadSnapshot(bytes.NewReader([]byte("none")))
	require.ErrorIs(t, err, ringcache.ErrClosed)
	require.Zero(t, n, "nothing is taken from the stream")
	full := ringtest.MixedCache(t, ringtest.Default(ringtest.MinBytes))
	b, _ := ringtest.SnapshotOf(t, full)
	_, err = c.ReadSnapshot(bytes.NewReader(b))
	require.ErrorIs(t, err, ringcache.ErrClosed)
}

// OnRemove runs in the goroutine that calls ReadSnapshot, so a panic in it reaches that caller.
func TestSnapshot_PanicInOnRemoveReachesTheCaller(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(64<<20))
	ringtest.FillCache(t, c, 0, 60_000, 1000)
	_, path := ringtest.SnapshotOf(t, c)
	g := ringtest.Default(ringtest.MinBytes)
	g.OnRemove = func(ringcache.Removal) { panic("of the user") }
	d := ringtest.MustCache(t, g)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.PanicsWithValue(t, "of the user", func() { _, _ = d.ReadSnapshot(f) })
	require.NoError(t, ringtest.Validate(d))
}

// A full cache that is loaded into the same bound loses no entry.
func TestLoad_FullCacheLosesNothing(t *testing.T) {
	t.Parallel()
	sizes := []int{1, 2}
	if *ringtest.LongRun {
		sizes = []int{1, 4}
	}
	for _, mb := range sizes {
		for _, size := range []int{20, 100, 1000} {
			for _, mixed := range []bool{false, true} {
				o := ringcache.Options{MaxBytes: mb << 20}
				c, err := ringcache.NewWithOptions(o)
				require.NoError(t, err)
				for i := range 3 * o.MaxBytes / (size + 20) {
					n := size
					if mixed {
						n = rand.IntN(2 * size)
						c.Has(fmt.Append(nil, i-rand.IntN(1+i/5)))
					}
					require.NoError(t, c.Set(fmt.Append(nil, i), make([]byte, n)))
				}
				path := filepath.Join(ringtest.DirInMemory(t), "snapshot")
				require.NoError(t, c.SaveToFile(path))
				d, _, err := ringcache.Load(path, o)
				require.NoError(t, err)
				require.Equal(t, c.Len(), d.Len(), "%d MB, values of %d bytes, mixed: %v", mb, size, mixed)
				require.NoError(t, ringtest.Validate(d))
				require.NoError(t, c.Close())
				require.NoError(t, d.Close())
			}
		}
	}
}

// What is loaded stays within the bound, also where the snapshot has more bytes than the saved
// cache: values that were compressed there, and records that a partial snapshot has twice.
func TestLoad_StaysWithinTheBound(t *testing.T) {
	t.Parallel()
	for name, partial := range map[string]bool{"compressed": false, "partial": true} {
		t.Run(name, func(t *testing.T) {
			o, entries := ringcache.Options{MaxBytes: 4 << 20}, 50_000
			if *ringtest.LongRun {
				o.MaxBytes, entries = 4*o.MaxBytes, 4*entries
			}
			g := ringtest.Default(o.MaxBytes)
			if !partial {
				g = ringtest.WithCold(g, ringtest.FlateCompressor{})
				g.ByHand = true
			}
			c := ringtest.MustCache(t, g)
			for i := range entries {
				v := bytes.Repeat(binary.BigEndian.AppendUint32(nil, uint32(i)), 75)
				require.NoError(t, c.Set(fmt.Append(nil, i), v))
				if i%(entries/20) == 0 {
					ringtest.SinkAll(c)
				}
				c.Has(fmt.Append(nil, i/2))
			}
			path := filepath.Join(t.TempDir(), "snapshot")
			save := ringcache.SaveOptions{Partial: partial}
			require.NoError(t, c.Save(context.Background(), path, save))
			d, report, err := ringcache.Load(path, o)
			require.NoError(t, err)
			require.NoError(t, report.Err)
			b := ringtest.ReadFile(t, path)
			contents, err := snapshot.Scan(bytes.NewReader(b), int64(len(b)), false)
			require.NoError(t, err)
			size := uint64(0)
			for _, block := range contents.Blocks {
				size += block.Size
			}
			require.Greater(t, size, uint64(o.MaxBytes), "all would fit: the test proves nothing")
			// Workers may each take a chunk at the same time.
			most := o.MaxBytes + runtime.GOMAXPROCS(0)*ringtest.Shared(d).Pool.ChunkSize()
			require.LessOrEqual(t, ringtest.Shared(d).Pool.Used(), most)
			require.Greater(t, d.Len()*300, o.MaxBytes*2/3)
			require.NoError(t, ringtest.Validate(d))
			require.NoError(t, d.Close())
		})
	}
}

// The sizes of buckets that a snapshot claims take no more memory than its length allows.
func TestLoad_ClaimedSizes(t *testing.T) {
	t.Parallel()
	const bound = 64 << 20
	buckets := ringtest.Shared(ringtest.MustCache(t, ringtest.Default(bound))).Buckets
	for name, claim := range map[string][2]uint64{ // records and their bytes
		"many":     {1 << 40, 0},
		"overflow": {0, 1<<64 - store.SlotBytes},
		"most":     {1<<64 - 1, 1<<64 - 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshot.Saver{
				Context: context.Background(), Parts: 1,
				Header: snapshot.Header{MaxBytes: bound},
				Names:  func(*snapshot.Worker) error { return nil },
				Walker: func(*snapshot.Worker) snapshot.Step {
					return func(int, int) (bool, error) { return true, nil }
				},
			}
			for range buckets + store.LargeBuckets {
				s.Sizes = binary.LittleEndian.AppendUint64(s.Sizes, claim[0])
				s.Sizes = binary.LittleEndian.AppendUint64(s.Sizes, claim[1])
			}
			var b bytes.Buffer
			s.To = &b
			require.NoError(t, s.Run(1))
			path := filepath.Join(t.TempDir(), "snapshot")
			require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
			c, err := ringcache.LoadFromFile(path)
			require.NoError(t, err)
			require.Less(t, ringtest.Shared(c).Pool.Used(), 1<<20)
			require.NoError(t, ringtest.Validate(c))
			require.NoError(t, c.Close())
		})
	}
}

// The sizes in a snapshot count packed records at their unpacked length. Otherwise a cache without
// room for all entries would not notice, and would not keep the hottest.
func TestSnapshot_SizesCountPackedRecordsUnpacked(t *testing.T) {
	g := ringtest.WithCold(ringtest.Tiny(4, 1024, 256), ringtest.FlateCompressor{})
	g.ByHand = true
	p := &ringtest.PackedCache{Cache: ringtest.MustCache(t, g), Size: 500}
	p.FillPacked(t, 6000)
	require.Greater(t, ringtest.CountPacked(p.Cache), uint64(p.Len()/2), "the test proves nothing")
	b, _ := ringtest.SnapshotOf(t, p.Cache)
	s, err := snapshot.Scan(bytes.NewReader(b), int64(len(b)), false)
	require.NoError(t, err)
	claimed, there := uint64(0), uint64(0)
	for i := range s.Blocks {
		body, err := s.Body(&s.Blocks[i], new(snapshot.Buffers))
		require.NoError(t, err)
		if !s.Blocks[i].IsSizes() {
			there += s.Blocks[i].Size
			continue
		}
		for at := 8; at < len(body); at += 16 {
			claimed += binary.LittleEndian.Uint64(body[at:])
		}
	}
	t.Logf("%d bytes claimed, %d there, of %d entries", claimed, there, p.Len())
	require.Greater(t, claimed, there*9/10)
}

// failingWriter fails once.
type failingWriter struct{ left, after int }

func (w *failingWriter) Write(b []byte) (int, error) {
	switch w.left--; {
	case w.left == 0:
		return 0, io.ErrClosedPipe
	case w.left < 0:
		w.after++
	}
	return len(b), nil
}

// Nothing is written after a writer has failed.
func TestSnapshot_StopsAtTheFirstError(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	require.NoError(t, c.Namespace("tenant").Set([]byte("key"), nil))
	for n := 1; ; n++ {
		w := &failingWriter{left: n}
		if _, err := c.WriteSnapshot(w); err == nil {
			require.Greater(t, n, 4)
			return
		} else {
			require.ErrorIs(t, err, io.ErrClosedPipe)
		}
		require.Zero(t, w.after, "after write %d", n)
	}
}

// An entry that a snapshot has twice counts once, whether its record is stored as it is or not: in
// a cache with ExpireAfterAccess no record is.
func TestLoad_CountsAnEntryOnce(t *testing.T) {
	for _, idle := range []time.Duration{0, time.Hour} {
		o := ringcache.Options{MaxBytes: 8 << 20, ExpireAfterAccess: idle}
		c, err := ringcache.NewWithOptions(o)
		require.NoError(t, err)
		defer ringtest.CloseCache(t, c)
		for id := range uint32(100) {
			k := ringtest.TrafficKey(nil, id)
			require.NoError(t, c.Set(k, make([]byte, 10+id%2*20_000))) // small and large
			require.True(t, c.Has(k))
			require.NotEmpty(t, c.Get(nil, k))
		}
		path := filepath.Join(t.TempDir(), "snapshot") // has what was read, then all
		require.NoError(t, c.Save(t.Context(), path, ringcache.SaveOptions{Partial: true}))
		loaded, report, err := ringcache.Load(path, o)
		require.NoError(t, err)
		defer ringtest.CloseCache(t, loaded)
		require.NoError(t, report.Err)
		require.Equal(t, 100, loaded.Len(), "idle time %v", idle)
		require.Equal(t, 100, report.Entries, "idle time %v", idle)
	}
}
