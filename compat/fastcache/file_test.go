package fastcache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	real "github.com/VictoriaMetrics/fastcache"
	"github.com/cespare/xxhash/v2"
	"github.com/golang/snappy"
	"github.com/stretchr/testify/require"
)

func pair(i int) (k, v []byte) {
	return fmt.Appendf(nil, "key %d", i), fmt.Appendf(nil, "value %d", i)
}

func TestFile_RoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new folder", "cache")
	c := New(64 << 20)
	long := bytes.Repeat([]byte("long"), 2<<20) // in parts
	c.SetBig([]byte("big"), long)
	for i := range 1000 {
		c.Set(pair(i))
	}
	for _, concurrency := range []int{-1, 0, 1, 2, 100} {
		require.NoError(t, c.SaveToFileConcurrent(path, concurrency))
		loaded, err := LoadFromFileMaxBytes(path, 64<<20)
		require.NoError(t, err)
		for i := range 1000 {
			k, v := pair(i)
			require.Equal(t, v, loaded.Get(nil, k))
		}
		require.True(t, bytes.Equal(long, loaded.GetBig(nil, []byte("big"))))
		loaded.Reset()
	}
	_, err := LoadFromFileMaxBytes(path, 96<<20)
	require.ErrorContains(t, err, `fastcache: load cache from "`)
	require.ErrorContains(t, err, "contains unexpected number of bucket chunks; got 2; want 3")
	var s Stats
	LoadFromFileOrNew(path, 96<<20).UpdateStats(&s)
	require.Equal(t, Stats{MaxBytesSize: 96 << 20}, s)
}

func TestLoadFromFile_Missing(t *testing.T) {
	c, err := LoadFromFile(filepath.Join(t.TempDir(), "missing"))
	require.True(t, errors.Is(err, os.ErrNotExist))
	require.Nil(t, c)
}

// requireOnly fails unless a folder has only the files with these names.
func requireOnly(t *testing.T, folder string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	require.ElementsMatch(t, names, got)
}

// fastcache itself writes its folder, which is read, and whose files are replaced by another one.
func TestFolder_OfFastcacheMovesOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	old := real.New(64 << 20)
	defer old.Reset()
	long := bytes.Repeat([]byte("0123456789"), 40000)
	old.SetBig([]byte("big"), long)
	old.Set([]byte("sixteen"), []byte("0123456789abcdef"))
	for i := range 20000 {
		k, v := pair(i)
		old.Set(k, []byte("out of date"))
		old.Set(k, v)
	}
	old.Del([]byte("key 7"))
	require.NoError(t, old.SaveToFileConcurrent(path, 2))

	_, err := LoadFromFileMaxBytes(path, 1)
	require.ErrorContains(t, err, "contains unexpected number of bucket chunks; got 2; want 1")
	c, err := LoadFromFileMaxBytes(path, 64<<20)
	require.NoError(t, err)
	defer c.Reset()
	for i := range 20000 {
		k, v := pair(i)
		if i == 7 {
			v = nil
		}
		require.Equal(t, v, c.Get(nil, k), "%s", k)
	}
	var s Stats
	c.UpdateStats(&s)
	require.EqualValues(t, 20000, s.GetCalls, "only those of this test")
	require.Zero(t, s.SetCalls+s.SetBigCalls)
	require.True(t, bytes.Equal(long, c.GetBig(nil, []byte("big"))))
	require.Equal(t, "0123456789abcdef", string(c.Get(nil, []byte("sixteen"))))

	require.NoError(t, c.SaveToFile(path))
	requireOnly(t, path, "snapshot.ringcache")
	again, err := LoadFromFile(path)
	require.NoError(t, err)
	defer again.Reset()
	require.Equal(t, "value 8", string(again.Get(nil, []byte("key 8"))))
}

// A ring that has come round several times: what was overwritten does not come back.
func TestFolder_AfterWraps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	old := real.New(32 << 20)
	defer old.Reset()
	const n = 300000
	value := func(i int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 150) }
	key := func(i int) []byte { return fmt.Appendf(nil, "key %d", i) }
	for i := range n {
		old.Set(key(i), value(i))
	}
	require.NoError(t, old.SaveToFile(path))
	c, err := LoadFromFile(path)
	require.NoError(t, err)
	defer c.Reset()
	var there, kept int
	for i := range n {
		v := old.Get(nil, key(i))
		got := c.Get(nil, key(i))
		if v == nil {
			require.Nil(t, got)
			continue
		}
		there++
		if got != nil {
			require.Equal(t, v, got)
			kept++
		}
	}
	require.Greater(t, kept, there*85/100, "all but what the index takes the place of")
}

// Saves that find the directory at the same time leave a file in it, and nothing else.
func TestSaveToFile_TwoReplaceWhatIsInADirectory(t *testing.T) {
	c := New(1)
	defer c.Reset()
	k, v := pair(1)
	c.Set(k, v)
	for range 20 {
		path := filepath.Join(t.TempDir(), "cache")
		old := real.New(1)
		require.NoError(t, old.SaveToFile(path))
		old.Reset()
		errs := make(chan error)
		for range 2 {
			go func() { errs <- c.SaveToFile(path) }()
		}
		one, other := <-errs, <-errs
		require.NoError(t, one)
		require.NoError(t, other)
		loaded, err := LoadFromFile(path)
		require.NoError(t, err)
		require.Equal(t, v, loaded.Get(nil, k))
		loaded.Reset()
		requireOnly(t, path, "snapshot.ringcache")
	}
}

// An interrupted save leaves an incomplete file next to fastcache's, or a complete one next to all
// or some of them. Loads find the last complete snapshot, and the next save removes the rest.
func TestSaveToFile_AfterACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	temp := filepath.Join(path, ".snapshot.ringcache.123.ringcache-tmp")
	old := real.New(1)
	defer old.Reset()
	c := New(1)
	defer c.Reset()
	old.Set([]byte("k"), []byte("old"))
	c.Set([]byte("k"), []byte("new"))
	requireLoads := func(value string) {
		t.Helper()
		loaded, err := LoadFromFileMaxBytes(path, 1)
		require.NoError(t, err)
		require.Equal(t, value, string(loaded.Get(nil, []byte("k"))))
		loaded.Reset()
	}
	for range 2 { // the second time after a return to fastcache
		require.NoError(t, old.SaveToFile(path))
		require.NoError(t, os.WriteFile(temp, []byte("part"), 0o600))
		requireLoads("old")
		require.NoError(t, c.SaveToFile(filepath.Join(path, "snapshot.ringcache")))
		requireLoads("new")
		require.NoError(t, os.Remove(filepath.Join(path, "metadata.bin")))
		requireLoads("new")
		require.NoError(t, os.WriteFile(temp, []byte("part"), 0o600))
		require.NoError(t, c.SaveToFile(path))
		requireLoads("new")
		requireOnly(t, path, "snapshot.ringcache")
	}
}

// A load during a save finds all entries, however many of fastcache's files the save has removed.
func TestLoadFromFile_WhileASaveReplacesFastcachesFiles(t *testing.T) {
	k, v := pair(1)
	old := real.New(1)
	defer old.Reset()
	old.Set(k, v)
	c := New(1)
	defer c.Reset()
	c.Set(k, v)
	path := filepath.Join(t.TempDir(), "cache")
	for range 50 {
		require.NoError(t, old.SaveToFileConcurrent(path, 8))
		saved := make(chan error, 1)
		go func() { saved <- c.SaveToFile(path) }()
		for done := false; !done; {
			select {
			case err := <-saved:
				require.NoError(t, err)
				done = true
			default:
			}
			loaded, err := LoadFromFile(path)
			require.NoError(t, err)
			require.Equal(t, v, loaded.Get(nil, k))
			loaded.Reset()
		}
	}
}

// A directory is found where the system finds it, though a link leads to the one that it is in.
func TestSaveToFile_FolderBehindALink(t *testing.T) {
	near, far := t.TempDir(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(far, "below"), 0o755))
	if os.Symlink(filepath.Join(far, "below"), filepath.Join(near, "link")) != nil {
		t.Skip("no links here")
	}
	writeFolder(t, filepath.Join(near, "cache"), 1, nil)
	writeFolder(t, filepath.Join(far, "cache"), 1, nil)
	path := near + "/link/../cache"
	c, err := LoadFromFile(path)
	require.NoError(t, err)
	defer c.Reset()
	require.NoError(t, c.SaveToFile(path))
	requireOnly(t, filepath.Join(far, "cache"), "snapshot.ringcache")
	requireOnly(t, filepath.Join(near, "cache"), metadataFile, "data.0.bin")
	loaded, err := LoadFromFile(path)
	require.NoError(t, err)
	loaded.Reset()
}

// Files next to the path are the user's. Saves and loads leave them alone, whether the path is a
// file, a directory, or missing.
func TestFile_WhatIsBesideItStays(t *testing.T) {
	c := New(1)
	defer c.Reset()
	old := real.New(1)
	defer old.Reset()
	for _, suffix := range []string{".ringcache-file", ".ringcache-folder"} {
		for kind, make := range map[string]func(path string) error{
			"file":         func(path string) error { return os.WriteFile(path, nil, 0o600) },
			"snapshot":     c.SaveToFile,
			"fastcache's":  old.SaveToFile,
			"folder":       func(path string) error { return os.MkdirAll(path+"/own", 0o755) },
			"empty folder": func(path string) error { return os.Mkdir(path, 0o755) },
		} {
			path := filepath.Join(t.TempDir(), "cache")
			require.NoError(t, make(path+suffix))
			before, err := os.Lstat(path + suffix)
			require.NoError(t, err)
			_, err = LoadFromFile(path)
			require.ErrorIs(t, err, os.ErrNotExist, "%s%s", kind, suffix)
			saves := []func(path string) error{c.SaveToFile, old.SaveToFile, c.SaveToFile}
			for _, save := range saves {
				require.NoError(t, save(path))
				loaded, err := LoadFromFile(path)
				require.NoError(t, err)
				loaded.Reset()
				requireOnly(t, filepath.Dir(path), "cache", "cache"+suffix)
				after, err := os.Lstat(path + suffix)
				require.NoError(t, err)
				require.True(t, os.SameFile(before, after), "%s%s", kind, suffix)
				require.Equal(t, before.ModTime(), after.ModTime(), "%s%s", kind, suffix)
			}
		}
	}
}

func TestFolder_DamageIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	old := real.New(1)
	defer old.Reset()
	for i := range 5000 {
		old.Set(pair(i))
	}
	require.NoError(t, old.SaveToFile(path))
	file := filepath.Join(path, "data.0.bin")
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	refused := 0
	for at := 1; at < len(whole); at += len(whole)/50 + 1 {
		flipped := bytes.Clone(whole)
		flipped[at] ^= 0x10
		for _, b := range [][]byte{flipped, whole[:at]} {
			require.NoError(t, os.WriteFile(file, b, 0o644))
			c, err := LoadFromFile(path)
			if err != nil {
				refused++
				continue
			}
			for i := range 5000 { // it ends between two buckets, or seems to
				if k, v := pair(i); c.Has(k) {
					require.Equal(t, v, c.Get(nil, k))
				}
			}
			c.Reset()
		}
	}
	require.Greater(t, refused, 80, "of 100")
	all := [][]byte{nil, make([]byte, 8), bytes.Repeat([]byte{0xff}, 8), make([]byte, 9)}
	for _, chunks := range all {
		require.NoError(t, os.WriteFile(filepath.Join(path, "metadata.bin"), chunks, 0o644))
		_, err := LoadFromFile(path)
		require.Error(t, err)
	}
}

// Counters don't wrap around, and SaveToFile succeeds beside Resets.
func TestFolder_BesideTheFirstReset(t *testing.T) {
	dir := t.TempDir()
	old := real.New(1)
	defer old.Reset()
	for i := range 50_000 {
		k, v := pair(i)
		old.Set(k, v)
	}
	require.NoError(t, old.SaveToFile(filepath.Join(dir, "old")))
	for range 5 {
		c, err := LoadFromFile(filepath.Join(dir, "old"))
		require.NoError(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 3 {
				c.Reset()
			}
		}()
		for range 4 {
			requireNoCalls(t, c)
			require.NoError(t, c.SaveToFile(filepath.Join(dir, "new")))
		}
		<-done
		requireNoCalls(t, c)
		c.Reset()
	}
}

// requireNoCalls expects the counters of a cache that nobody has used.
func requireNoCalls(t *testing.T, c *Cache) {
	t.Helper()
	var s Stats
	c.UpdateStats(&s)
	require.Equal(t, []uint64{0, 0, 0}, []uint64{s.SetCalls, s.GetCalls, s.Misses})
}

func TestFolder_OddNamesAndSizes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "br[1]")
	old := real.New(1)
	defer old.Reset()
	old.Set([]byte("k"), []byte("v"))
	require.NoError(t, old.SaveToFile(path))
	c, err := LoadFromFile(path)
	require.NoError(t, err)
	require.Equal(t, "v", string(c.Get(nil, []byte("k"))))
	require.NoError(t, c.SaveToFile(path))
	c.Reset()
	requireOnly(t, path, "snapshot.ringcache")

	folder := t.TempDir()
	chunks := []byte{0x40, 0x0d, 3, 0, 0, 0, 0, 0} // 200,000 in each bucket: 6 TB
	require.NoError(t, os.WriteFile(filepath.Join(folder, "metadata.bin"), chunks, 0o644))
	_, err = LoadFromFile(folder)
	require.ErrorContains(t, err, "invalid maxBucketChunks=200000")
}

// Only what fastcache has written is replaced, and none of it is taken for something to wait for.
func TestSaveToFile_FolderOfAnother(t *testing.T) {
	c := New(1)
	defer c.Reset()
	c.Set([]byte("k"), []byte("v"))
	for name, files := range map[string][]string{
		"empty": {}, "another's": {"photo"}, "a file more": {"metadata.bin", "data.0.bin", "photo"},
		"no metadata": {"data.0.bin"},
	} {
		folder := filepath.Join(t.TempDir(), "snapshot")
		require.NoError(t, os.Mkdir(folder, 0o755))
		for _, f := range files {
			require.NoError(t, os.WriteFile(filepath.Join(folder, f), []byte(f), 0o600))
		}
		err := c.SaveToFile(folder)
		require.ErrorContains(t, err, "fastcache: save cache to ", name)
		require.ErrorContains(t, err, "not a regular file: d", name)
		for _, f := range files {
			require.FileExists(t, filepath.Join(folder, f), name)
		}
		left, err := os.ReadDir(filepath.Dir(folder))
		require.NoError(t, err)
		require.Len(t, left, 1, name)
	}
}

// writeFolder writes a folder of fastcache with any number of chunks, and any buckets.
func writeFolder(t testing.TB, path string, chunks uint64, buckets []byte) {
	var packed bytes.Buffer
	w := snappy.NewBufferedWriter(&packed)
	_, err := w.Write(buckets)
	require.NoError(t, errors.Join(err, w.Close()))
	require.NoError(t, os.MkdirAll(path, 0o755))
	meta := binary.LittleEndian.AppendUint64(nil, chunks)
	require.NoError(t, os.WriteFile(filepath.Join(path, metadataFile), meta, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(path, "data.0.bin"), packed.Bytes(), 0o600))
}

// hostileBucket returns a bucket with n places of one record, of a key and 60,000 bytes.
func hostileBucket(n int) []byte {
	chunk := make([]byte, chunkSize)
	copy(chunk, "\x00\x01\xea\x60k")
	var b []byte
	for _, x := range []uint64{0, chunkSize, 1, uint64(n)} {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	for range n {
		b = binary.LittleEndian.AppendUint64(b, xxhash.Sum64String("k"))
		b = binary.LittleEndian.AppendUint64(b, 1<<40)
	}
	return append(binary.LittleEndian.AppendUint64(b, 1), chunk...)
}

// A place of 16 bytes does not cost a copy of 64 KB.
func TestFolder_PlacesOfOneRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	writeFolder(t, path, 1, hostileBucket(1))
	c, err := LoadFromFile(path)
	require.NoError(t, err)
	require.Len(t, c.Get(nil, []byte("k")), 60_000)
	c.Reset()
	writeFolder(t, path, 1, hostileBucket(2))
	_, err = LoadFromFile(path)
	require.ErrorContains(t, err, "records overlap")
}

// Few parts are not joined for each of many keys.
func TestFolder_PartsAreJoinedOnce(t *testing.T) {
	c := New(1)
	defer c.Reset()
	value := bytes.Repeat([]byte("v"), 60_000)
	meta := binary.BigEndian.AppendUint64(nil, xxhash.Sum64(value))
	c.Set(append(meta, make([]byte, 8)...), value)
	meta = binary.BigEndian.AppendUint64(meta, uint64(len(value)))
	for i := range 300 {
		k, _ := pair(i)
		c.Set(k, meta)
	}
	c.joinBig()
	require.EqualValues(t, 1, c.big.sets.Load())
}

// FuzzFolder reads a folder of any content: what it costs is in proportion to that.
func FuzzFolder(f *testing.F) {
	f.Add(uint64(1), hostileBucket(1))
	f.Add(uint64(1), hostileBucket(2))
	f.Add(uint64(1<<17), []byte("bucket"))
	f.Add(uint64(1), bytes.Repeat([]byte{0xff}, 100))
	path := filepath.Join(f.TempDir(), "cache")
	f.Fuzz(func(t *testing.T, chunks uint64, buckets []byte) {
		writeFolder(t, path, chunks, buckets)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c, err := LoadFromFile(path)
		runtime.ReadMemStats(&after)
		require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20+16*len(buckets)))
		if err != nil {
			return
		}
		stored := c.inner.Load().Stats()
		require.LessOrEqual(t, stored.BytesSize, uint64(4*len(buckets)))
		c.Reset()
	})
}
