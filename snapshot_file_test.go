package ringcache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/snapshot"
)

func TestLoad_HasTheOptionsOfTheProgram(t *testing.T) {
	g := defaultGeometry(64 << 20)
	g.policy, g.ttl = PolicyFIFO, time.Hour
	saved := mixedCache(t, g)
	_, path := snapshotOf(t, saved)
	c, report := mustLoadInto(t, path, Options{MaxBytes: 128 << 20, TTL: time.Minute,
		Compressor: flateCompressor{}})
	require.Equal(t, LoadReport{Entries: saved.Len()}, report)
	requireSame(t, contents(t, saved), contents(t, c), false)
	s := statsOf(c)
	require.EqualValues(t, 128<<20, s.MaxBytesSize)
	require.EqualValues(t, saved.Len(), s.Snapshots.RestoredEntries)
	require.Equal(t, PolicyS3FIFO, Policy(c.shared.Policy))
	require.NoError(t, c.Set([]byte("new"), nil))
	left, ok := c.TTL([]byte("new"))
	require.True(t, ok)
	require.InDelta(t, time.Minute, left, float64(10*time.Second))
	require.NotNil(t, c.shared.Compression)
	require.Equal(t, saved.Len(), c.shared.Expected, "the snapshot says how many to expect")

	c, _ = mustLoadInto(t, path, Options{MaxBytes: 128 << 20, ExpectedEntries: 7})
	require.Equal(t, 7, c.shared.Expected, "the program's own")
	c, _ = mustLoadInto(t, filepath.Join(t.TempDir(), "none"), Options{MaxBytes: 128 << 20})
	require.Zero(t, c.shared.Expected)
}

// Load fails where NewWithOptions does, whatever the file is.
func TestLoad_InvalidOptions(t *testing.T) {
	_, path := snapshotOf(t, mixedCache(t, defaultGeometry(minMaxBytes)))
	for _, path := range []string{path, filepath.Join(t.TempDir(), "none")} {
		for _, o := range []Options{{}, {MaxBytes: -1}, {MaxBytes: minMaxBytes, TTL: -1}} {
			c, report, err := Load(path, o)
			require.Nil(t, c)
			require.Zero(t, report)
			_, want := NewWithOptions(o)
			require.ErrorIs(t, err, ErrInvalidOptions)
			require.EqualError(t, err, want.Error())
		}
	}
}

func TestLoad_Namespaces(t *testing.T) {
	saved := New(1)
	require.NoError(t, saved.Namespace("a").Set([]byte("k"), []byte("v")))
	require.NoError(t, saved.Namespace("b").Set([]byte("k"), []byte("gone")))
	require.NoError(t, saved.Namespace("b").Invalidate())
	_, path := snapshotOf(t, saved)
	closeCache(t, saved)
	c, report := mustLoadInto(t, path, Options{MaxBytes: minMaxBytes})
	require.NoError(t, report.Err)
	require.Equal(t, "v", string(c.Namespace("a").Get(nil, []byte("k"))))
	require.False(t, c.Namespace("b").Has([]byte("k")))
}

// An entry of Options.File is newer than one of a snapshot, and counts as none of it.
func TestLoad_IntoAFile(t *testing.T) {
	o := Options{MaxBytes: minMaxBytes, File: filepath.Join(t.TempDir(), "cache")}
	c, err := NewWithOptions(o)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	require.NoError(t, c.Set([]byte("k"), []byte("old")))
	require.NoError(t, c.Set([]byte("only in the snapshot"), nil))
	_, path := snapshotOf(t, c)
	c.Del([]byte("only in the snapshot"))
	require.NoError(t, c.Set([]byte("k"), []byte("new")))
	closeCache(t, c)
	c, report := mustLoadInto(t, path, o)
	require.Equal(t, LoadReport{Entries: 1}, report)
	require.Equal(t, "new", string(c.Get(nil, []byte("k"))))
	require.Equal(t, 2, c.Len())
}

// A panic of OnRemove leaves no cache behind: the file can be opened again.
func TestLoad_PanicInOnRemoveClosesTheCache(t *testing.T) {
	big := mustCache(t, defaultGeometry(64<<20))
	fillCache(t, big, 0, 60_000, 1000)
	_, path := snapshotOf(t, big)
	o := Options{MaxBytes: minMaxBytes, File: filepath.Join(t.TempDir(), "cache")}
	c, err := NewWithOptions(o)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	closeCache(t, c)
	of := o
	of.OnRemove = func([]byte, []byte, RemovalReason) { panic("of the user") }
	require.PanicsWithValue(t, "of the user", func() { _, _, _ = Load(path, of) })
	c, err = NewWithOptions(o)
	require.NoError(t, err, "it is still in use")
	require.NotZero(t, c.Len())
	closeCache(t, c)
}

// A file that cannot be opened is reported with the error of the file system.
func TestLoad_FileThatCannotBeOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "circle")
	if err := os.Symlink("circle", path); err != nil {
		t.Skip(err)
	}
	c, report := mustLoadInto(t, path, Options{MaxBytes: minMaxBytes})
	var of *fs.PathError
	require.ErrorAs(t, report.Err, &of)
	require.Equal(t, 1, report.DiscardedBlocks)
	require.EqualValues(t, 1, statsOf(c).Snapshots.DiscardedBlocks)
	require.Zero(t, c.Len())
}

// Of several damaged places, the first one is reported, and the whole blocks between them are
// loaded. A copy of the header at the end replaces a damaged one.
func TestLoad_ReportsTheFirstDamage(t *testing.T) {
	c := mustCache(t, defaultGeometry(64<<20))
	fillCache(t, c, 0, 100_000, 100)
	b, _ := snapshotOf(t, c)
	blocks := blocksOf(t, b)
	require.Greater(t, len(blocks), 4)
	lost := 0
	for _, block := range []placed{blocks[1], blocks[3]} { // their headers: Scan sees it
		b[block.At+8] ^= 1
		lost += int(block.Entries)
	}
	d, report := mustLoadInto(t, writeFile(t, b), Options{MaxBytes: 64 << 20})
	require.Equal(t, c.Len()-lost, d.Len())
	require.Equal(t, []int{d.Len(), 2}, []int{report.Entries, report.DiscardedBlocks})
	require.ErrorIs(t, report.Err, ErrCorrupt)
	require.ErrorContains(t, report.Err, fmt.Sprintf("offset %d: ", blocks[1].At))

	b[snapshot.HeaderSize-1] ^= 1
	d, report = mustLoadInto(t, writeFile(t, b), Options{MaxBytes: 64 << 20})
	require.Equal(t, c.Len()-lost, d.Len())
	require.ErrorIs(t, report.Err, ErrCorrupt)
	require.ErrorContains(t, report.Err, "offset 0: ")
}
