//go:build unix

package namefile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// open opens a file that another process may have open still, as after a kill.
func open(t *testing.T, path string) (*File, map[string]uint64) {
	t.Helper()
	f, known, err := Open(path)
	require.NoError(t, err)
	return f, known
}

// What was set is found by the next process, whether this one closes the file or is killed.
func TestFile_IsWhatAMapHolds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "names")
	want := map[string]uint64{}
	f, known := open(t, path)
	require.Empty(t, known)
	for range 20_000 {
		name := strings.Repeat(fmt.Sprint(rnd.IntN(200)), rnd.IntN(4))
		switch op := rnd.IntN(100); {
		case op == 0:
			if rnd.IntN(2) == 0 {
				require.NoError(t, f.Close())
				require.ErrorIs(t, f.Set(name, 1), ErrClosed)
				require.ErrorIs(t, f.Drop(name), ErrClosed)
			} else {
				f.file.Close()
			}
			f, known = open(t, path)
			require.True(t, maps.Equal(want, known), "want %v, got %v", want, known)
		case op < 40:
			require.NoError(t, f.Drop(name))
			delete(want, name)
		default:
			want[name] = 1 + rnd.Uint64()>>1
			require.NoError(t, f.Set(name, want[name]))
		}
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(100_000), "records of dropped namespaces pile up")
	require.EqualValues(t, 0o600, info.Mode().Perm())
	require.NoError(t, f.Close())
	require.NoError(t, f.Close(), "again")
}

// A process that is killed while it adds a namespace leaves the earlier ones, and nothing that a
// later record would not hide.
func TestFile_EndsAnywhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names")
	f, _ := open(t, path)
	require.NoError(t, f.Set("first", 1))
	first := f.end
	inner := string(f.appendRecord(nil, "inner", 7)) // a name that looks like a record
	require.NoError(t, f.Set("xxxxxxxx"+inner, 2))
	require.NoError(t, f.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for n := range whole {
		require.NoError(t, os.WriteFile(path, whole[:n], 0o600))
		f, known, err := Open(path)
		if n < headSize {
			require.ErrorIs(t, err, ErrForeign, "%d bytes", n)
			continue
		}
		require.NoError(t, err)
		want := map[string]uint64{"first": 1}
		if int64(n) < first {
			want = nil
		}
		require.True(t, maps.Equal(want, known), "%d bytes: %v", n, known)
		require.NoError(t, f.Set("a", 3))
		require.NoError(t, f.Close())
		f, known = open(t, path)
		require.Len(t, known, len(want)+1, "%d bytes: %v", n, known)
		require.EqualValues(t, 3, known["a"])
		require.NoError(t, f.Close())
	}
}

// Of any bytes a file is made, or an error, in no more memory than they have.
func FuzzParse(f *testing.F) {
	seed := &File{slots: map[string]slot{}}
	head := append([]byte(magic), make([]byte, headSize-len(magic))...)
	head[len(magic)] = version
	copy(seed.head[:], head)
	f.Add(head)
	f.Add(seed.appendRecord(bytes.Clone(head), "name", 1))
	f.Add(binary.LittleEndian.AppendUint64(seed.appendRecord(head, "", 0), 5))
	f.Fuzz(func(t *testing.T, b []byte) {
		f := &File{slots: map[string]slot{}}
		if f.parse(b) != nil {
			return
		}
		require.LessOrEqual(t, f.end, int64(len(b)))
		total := int64(headSize + recordHead*f.dropped)
		for name, s := range f.slots {
			require.NotZero(t, s.generation)
			total += sizeOf(int64(len(name)))
		}
		require.LessOrEqual(t, total, f.end)
	})
}

func TestOpen_FileOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names")
	for text, want := range map[string]error{
		"": ErrForeign, "ringn": ErrForeign, strings.Repeat("words ", 10): ErrForeign,
		magic + "\x02" + strings.Repeat("\x00", 15): ErrVersion,
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o640))
		_, _, err := Open(path)
		require.ErrorIs(t, err, want)
		has, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(has))
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.EqualValues(t, 0o640, info.Mode().Perm())
	}
}

// Where a generation cannot be overwritten, the older one does not come back: a new file takes the
// old one's place, or none does.
func TestSet_OldGenerationNeverStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names")
	begin := func() *File {
		f, _ := open(t, path)
		require.NoError(t, f.Set("n", 1))
		require.NoError(t, f.Set("other", 2))
		f.file.Close() // every later write fails
		return f
	}
	f := begin()
	require.NoError(t, f.Set("n", 3))
	_, known := open(t, path)
	require.Equal(t, map[string]uint64{"n": 3, "other": 2}, known)
	require.NoError(t, f.Close())
	f = begin()
	require.NoError(t, f.Drop("n"))
	_, known = open(t, path)
	require.Equal(t, map[string]uint64{"other": 2}, known)

	f = begin()
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700)) // no file can be made there
	require.Error(t, f.Set("n", 4))
	require.NoDirExists(t, path)
	require.NoError(t, f.Set("third", 5), "and all are back once one can")
	_, known = open(t, path)
	require.Equal(t, map[string]uint64{"n": 4, "other": 2, "third": 5}, known)
}

// A name that had no room is written by Close.
func TestClose_WritesWhatHadNoRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names")
	f, _ := open(t, path)
	require.NoError(t, os.Mkdir(path, 0o700))
	require.Error(t, f.Set("n", 1))
	require.Error(t, f.Set("other", 2))
	require.NoError(t, os.Remove(path))
	require.NoError(t, f.Close())
	_, known := open(t, path)
	require.Equal(t, map[string]uint64{"n": 1, "other": 2}, known)
}
