package fastcache

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	real "github.com/VictoriaMetrics/fastcache"
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

// fastcache itself writes its folder, which is read, and replaced by a file.
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
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.True(t, info.Mode().IsRegular(), "a file now")
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
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing but the file")

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
