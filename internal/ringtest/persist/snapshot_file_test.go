package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/snapshot"
)

func TestLoad_HasTheOptionsOfTheProgram(t *testing.T) {
	g := ringtest.Default(64 << 20)
	g.Policy, g.TTL = ringcache.PolicyFIFO, time.Hour
	saved := ringtest.MixedCache(t, g)
	_, path := ringtest.SnapshotOf(t, saved)
	c, report := ringtest.MustLoadInto(t, path,
		ringcache.Options{MaxBytes: 128 << 20, TTL: time.Minute,
			Compressor: ringtest.FlateCompressor{}})
	require.Equal(t, ringcache.LoadReport{Entries: saved.Len()}, report)
	ringtest.RequireSame(t, ringtest.Contents(t, saved), ringtest.Contents(t, c), false)
	s := ringtest.StatsOf(c)
	require.EqualValues(t, 128<<20, s.MaxBytesSize)
	require.EqualValues(t, saved.Len(), s.RestoredEntries)
	require.Equal(t, ringcache.PolicyS3FIFO, ringcache.Policy(ringtest.Shared(c).Policy))
	require.NoError(t, c.Set([]byte("new"), nil))
	left, ok := c.TTL([]byte("new"))
	require.True(t, ok)
	require.InDelta(t, time.Minute, left, float64(10*time.Second))
	require.NotNil(t, ringtest.Shared(c).Compression)
	require.Equal(t, saved.Len(), ringtest.Shared(c).Expected, "the snapshot says how many to expect")

	c, _ = ringtest.MustLoadInto(t, path, ringcache.Options{MaxBytes: 128 << 20, ExpectedEntries: 7})
	require.Equal(t, 7, ringtest.Shared(c).Expected, "the program's own")
	c, _ = ringtest.MustLoadInto(t, filepath.Join(t.TempDir(), "none"),
		ringcache.Options{MaxBytes: 128 << 20})
	require.Zero(t, ringtest.Shared(c).Expected)
}

// Each cache has another hash secret, but one that is loaded has that of the snapshot, whose blocks
// are in the order of that hash.
func TestLoad_HasTheHashSecretOfTheSnapshot(t *testing.T) {
	c := ringcache.New(32 << 20)
	require.NoError(t, c.Set([]byte("k"), []byte("v")))
	path := filepath.Join(t.TempDir(), "snapshot")
	require.NoError(t, c.SaveToFile(path))
	want := ringtest.Shared(c).Seed
	require.NotEqual(t, want, ringtest.Shared(ringcache.New(32<<20)).Seed)

	loaded, report, err := ringcache.Load(path, ringcache.Options{MaxBytes: 64 << 20})
	require.NoError(t, err)
	require.NoError(t, report.Err)
	require.Equal(t, want, ringtest.Shared(loaded).Seed)
	require.Equal(t, want, ringtest.Shared(ringtest.MustLoad(t, path)).Seed)

	for _, word := range []uint64{0, 1, 2, 1<<63 | 1, math.MaxUint64} { // no cache draws these
		h := snapshot.Header{Secret: [2]uint64{1, word}}
		empty := append(h.Append(nil), (&snapshot.End{}).Append(nil, &h)...)
		loaded = ringtest.MustLoad(t, ringtest.WriteFile(t, empty))
		require.NotEqual(t, h.Secret, ringtest.Shared(loaded).Seed)
	}
}

// Load fails where NewWithOptions does, whatever the file is.
func TestLoad_InvalidOptions(t *testing.T) {
	_, path := ringtest.SnapshotOf(t, ringtest.MixedCache(t, ringtest.Default(ringtest.MinBytes)))
	for _, path := range []string{path, filepath.Join(t.TempDir(), "none")} {
		for _, o := range []ringcache.Options{{}, {MaxBytes: -1},
			{MaxBytes: ringtest.MinBytes, TTL: -1}} {
			c, report, err := ringcache.Load(path, o)
			require.Nil(t, c)
			require.Zero(t, report)
			_, want := ringcache.NewWithOptions(o)
			require.ErrorIs(t, err, ringcache.ErrInvalidOptions)
			require.EqualError(t, err, want.Error())
		}
	}
}

func TestLoad_Namespaces(t *testing.T) {
	saved := ringcache.New(ringtest.MinBytes)
	require.NoError(t, saved.Namespace("a").Set([]byte("k"), []byte("v")))
	require.NoError(t, saved.Namespace("b").Set([]byte("k"), []byte("gone")))
	saved.Namespace("b").Reset()
	_, path := ringtest.SnapshotOf(t, saved)
	ringtest.CloseCache(t, saved)
	c, report := ringtest.MustLoadInto(t, path, ringcache.Options{MaxBytes: ringtest.MinBytes})
	require.NoError(t, report.Err)
	require.Equal(t, "v", string(c.Namespace("a").Get(nil, []byte("k"))))
	require.False(t, c.Namespace("b").Has([]byte("k")))
	require.EqualValues(t, 1, c.Stats().EntriesCount, "what was reset is not saved")
	require.Equal(t, 1, report.Entries)
}

// An entry of Options.File is newer than one of a snapshot, and counts as none of it.
func TestLoad_IntoAFile(t *testing.T) {
	o := ringcache.Options{MaxBytes: ringtest.MinBytes, File: filepath.Join(t.TempDir(), "cache")}
	c, err := ringcache.NewWithOptions(o)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	require.NoError(t, c.Set([]byte("k"), []byte("old")))
	require.NoError(t, c.Set([]byte("only in the snapshot"), nil))
	_, path := ringtest.SnapshotOf(t, c)
	c.Del([]byte("only in the snapshot"))
	require.NoError(t, c.Set([]byte("k"), []byte("new")))
	ringtest.CloseCache(t, c)
	c, report := ringtest.MustLoadInto(t, path, o)
	require.Equal(t, ringcache.LoadReport{Entries: 1}, report)
	require.Equal(t, "new", string(c.Get(nil, []byte("k"))))
	require.Equal(t, 2, c.Len())
}

// A panic of OnRemove leaves no cache behind: the file can be opened again.
func TestLoad_PanicInOnRemoveClosesTheCache(t *testing.T) {
	big := ringtest.MustCache(t, ringtest.Default(64<<20))
	ringtest.FillCache(t, big, 0, 60_000, 1000)
	_, path := ringtest.SnapshotOf(t, big)
	o := ringcache.Options{MaxBytes: ringtest.MinBytes, File: filepath.Join(t.TempDir(), "cache")}
	c, err := ringcache.NewWithOptions(o)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	ringtest.CloseCache(t, c)
	of := o
	of.OnRemove = func(ringcache.Removal) { panic("of the user") }
	require.PanicsWithValue(t, "of the user", func() { _, _, _ = ringcache.Load(path, of) })
	c, err = ringcache.NewWithOptions(o)
	require.NoError(t, err, "it is still in use")
	require.NotZero(t, c.Len())
	ringtest.CloseCache(t, c)
}

// A file that cannot be opened is reported with the error of the file system.
func TestLoad_FileThatCannotBeOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "circle")
	if err := os.Symlink("circle", path); err != nil {
		t.Skip(err)
	}
	c, report := ringtest.MustLoadInto(t, path, ringcache.Options{MaxBytes: ringtest.MinBytes})
	var of *fs.PathError
	require.ErrorAs(t, report.Err, &of)
	require.Equal(t, 1, report.DiscardedBlocks)
	require.Zero(t, c.Len())
}

// Of several damaged places, the first one is reported, and the whole blocks between them are
// loaded. A copy of the header at the end replaces a damaged one.
func TestLoad_ReportsTheFirstDamage(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(64<<20))
	ringtest.FillCache(t, c, 0, 100_000, 100)
	b, _ := ringtest.SnapshotOf(t, c)
	blocks := blocksOf(t, b)
	require.Greater(t, len(blocks), 4)
	lost := 0
	for _, block := range []placed{blocks[1], blocks[3]} { // their headers: Scan sees it
		b[block.At+8] ^= 1
		lost += int(block.Entries)
	}
	d, report := ringtest.MustLoadInto(t, ringtest.WriteFile(t, b),
		ringcache.Options{MaxBytes: 64 << 20})
	require.Equal(t, c.Len()-lost, d.Len())
	require.Equal(t, []int{d.Len(), 2}, []int{report.Entries, report.DiscardedBlocks})
	require.ErrorIs(t, report.Err, ringcache.ErrCorrupt)
	require.ErrorContains(t, report.Err, fmt.Sprintf("offset %d: ", blocks[1].At))

	b[snapshot.HeaderSize-1] ^= 1
	d, report = ringtest.MustLoadInto(t, ringtest.WriteFile(t, b),
		ringcache.Options{MaxBytes: 64 << 20})
	require.Equal(t, c.Len()-lost, d.Len())
	require.ErrorIs(t, report.Err, ringcache.ErrCorrupt)
	require.ErrorContains(t, report.Err, "offset 0: ")
}
