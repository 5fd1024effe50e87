package dictfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dictionaries are those of a file of tests.
var dictionaries = []Dict{
	{Number: 3, Bytes: []byte("three")}, {Number: 0}, {Number: 255, Bytes: make([]byte, 300)},
}

func TestFile_ComesBack(t *testing.T) {
	for _, id := range []string{"", "an ID", strings.Repeat("x", MostID)} {
		for n := range len(dictionaries) + 1 {
			path := filepath.Join(t.TempDir(), "folder", "dict")
			require.NoError(t, Write(path, "another", dictionaries))
			require.NoError(t, Write(path, id, dictionaries[:n]))
			gotID, dicts, err := Read(path)
			require.NoError(t, err)
			require.Equal(t, id, gotID)
			require.Len(t, dicts, n)
			for i, d := range dicts {
				require.Equal(t, dictionaries[i].Number, d.Number)
				require.Equal(t, string(dictionaries[i].Bytes), string(d.Bytes))
			}
		}
	}
}

// A file of which any bit has changed, or the end is missing, is refused.
func TestFile_RefusesWhatIsDamaged(t *testing.T) {
	whole := format("an ID", dictionaries)
	_, _, err := parse(whole)
	require.NoError(t, err)
	for n := range whole {
		want := ErrDamaged
		if n < len(magic) {
			want = ErrForeign
		}
		_, _, err := parse(whole[:n])
		require.ErrorIs(t, err, want, "the first %d bytes", n)
	}
	for i := range 8 * len(whole) {
		whole[i/8] ^= 1 << (i % 8)
		want := ErrDamaged
		if i < 8*len(magic) {
			want = ErrForeign
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
	require.ErrorIs(t, err, ErrDamaged)
	whole := format("an ID", dictionaries)
	for n := len(magic) + 2 + len("an ID") + 1; n < len(whole)-sumSize; n++ {
		_, dicts, err := parse(appendSum(whole[:n:n]))
		if err == nil {
			require.Less(t, len(dicts), len(dictionaries), "the first %d bytes", n)
		} else {
			require.ErrorIs(t, err, ErrDamaged)
		}
	}
}

func TestRead_NoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dict")
	_, _, err := Read(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte(magic), 0o600))
	require.NoError(t, os.Truncate(path, mostBytes+1))
	_, _, err = Read(path)
	require.ErrorIs(t, err, ErrDamaged, "too long to be read")
}

// What somebody else has written is told from what was damaged, which may be replaced.
func TestRead_FileOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dict")
	require.NoError(t, os.WriteFile(path, []byte("words\n"), 0o600))
	_, _, err := Read(path)
	require.ErrorIs(t, err, ErrForeign)
	newer := format("an ID", nil)
	newer[len(magic)]++
	require.NoError(t, os.WriteFile(path, appendSum(newer[:len(newer)-sumSize]), 0o600))
	_, _, err = Read(path)
	require.ErrorIs(t, err, ErrVersion)
}
