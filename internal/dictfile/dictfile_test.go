package dictfile

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dictionaries are those of a file of tests.
var dictionaries = []string{"", "two", strings.Repeat("3", 300), ""}

func TestFile_ComesBack(t *testing.T) {
	for _, id := range []string{"", "an ID", strings.Repeat("x", MostID)} {
		for n := range len(dictionaries) + 1 {
			path := filepath.Join(t.TempDir(), "dict")
			require.NoError(t, Write(path, "another", dictionaries))
			_, ok, err := Read(path, id)
			require.NoError(t, err)
			require.False(t, ok)
			require.NoError(t, Write(path, id, dictionaries[:n]))
			dicts, ok, err := Read(path, id)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, append([]string{}, dictionaries[:n]...), dicts)
		}
	}
}

// A file of which any bit has changed, or the end is missing, is refused.
func TestFile_RefusesWhatIsDamaged(t *testing.T) {
	whole := format("an ID", dictionaries)
	_, _, err := parse(whole)
	require.NoError(t, err)
	for n := range whole {
		want := errDamaged
		if n <= len(magic) {
			want = ErrForeign
		}
		_, _, err := parse(whole[:n])
		require.ErrorIs(t, err, want, "the first %d bytes", n)
	}
	for i := range 8 * len(whole) {
		whole[i/8] ^= 1 << (i % 8)
		want := errDamaged
		if i < 8*len(magic) {
			want = ErrForeign
		} else if i > 8*len(magic) && i < 8*(len(magic)+1) {
			want = ErrVersion
		}
		_, _, err := parse(whole)
		require.ErrorIs(t, err, want, "bit %d", i)
		whole[i/8] ^= 1 << (i % 8)
	}
}

// Lengths that lie, under a checksum that is right, are refused.
func TestFile_RefusesLengthsThatLie(t *testing.T) {
	long := format(strings.Repeat("x", 200), nil)
	long = long[:len(long)-sumSize-1] // the ID is shorter than it says
	_, _, err := parse(appendSum(long))
	require.ErrorIs(t, err, errDamaged)
	whole := format("an ID", dictionaries)
	for n := len(magic) + 1; n < len(whole)-sumSize; n++ {
		_, dicts, err := parse(appendSum(whole[:n:n]))
		if err == nil {
			require.Less(t, len(dicts), len(dictionaries), "the first %d bytes", n)
		} else {
			require.ErrorIs(t, err, errDamaged)
		}
	}
}

func TestRead_NoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dict")
	_, ok, err := Read(path, "an ID")
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, os.WriteFile(path, append([]byte(magic), version), 0o600))
	require.NoError(t, os.Truncate(path, mostBytes+1))
	_, ok, err = Read(path, "an ID")
	require.NoError(t, err)
	require.False(t, ok, "too long to be read")
}

// What somebody else has written is told from what was damaged, which may be replaced.
func TestRead_FileOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dict")
	newer := format("an ID", nil)
	newer[len(magic)]++
	for text, want := range map[string]error{
		"": ErrForeign, "words\n": ErrForeign, "ring": ErrForeign, magic: ErrForeign,
		magic + "ionary: words\n": ErrVersion,
		string(newer):             ErrVersion, string(appendSum(newer[:len(newer)-sumSize])): ErrVersion,
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, _, err := Read(path, "an ID")
		require.ErrorIs(t, err, want, "%q", text)
	}
}

// FuzzParse parses any bytes, with the checksum right: what it returns was there, and takes memory
// in proportion.
func FuzzParse(f *testing.F) {
	f.Add(format("an ID", dictionaries))
	f.Add(append([]byte(magic), version, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f))
	f.Add(append([]byte(magic), make([]byte, 1000)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		whole := appendSum(bytes.Clone(b))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		id, dicts, err := parse(whole)
		runtime.ReadMemStats(&after)
		require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(64*len(whole)+16<<10))
		if err == nil {
			again, same, err := parse(format(id, dicts))
			require.NoError(t, err)
			require.Equal(t, id, again)
			require.Equal(t, dicts, same)
		}
	})
}

// A file of another kind that has come to the path is not replaced, and no directory is made.
func TestWrite_ReplacesNoOtherFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "dict")
	require.NoError(t, os.WriteFile(path, []byte("of another"), 0o600))
	require.ErrorIs(t, Write(path, "id", dictionaries), ErrForeign)
	has, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "of another", string(has))
	require.ErrorIs(t, Write(filepath.Join(dir, "moved", "dict"), "id", nil), os.ErrNotExist)
	require.NoDirExists(t, filepath.Join(dir, "moved"))
}
