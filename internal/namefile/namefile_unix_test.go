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
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/osfile"
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
		if f.parse(bytes.NewReader(b)) != nil {
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

// A file that is longer than its records, such as one of zeros, takes no memory for its length.
func TestOpen_LongFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names")
	f, _ := open(t, path)
	require.NoError(t, f.Set("n", 1))
	require.NoError(t, f.Close())
	var before, after runtime.MemStats
	for _, is := range []error{nil, ErrForeign} {
		require.NoError(t, os.Truncate(path, 256<<20))
		runtime.ReadMemStats(&before)
		f, known, err := Open(path)
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, is)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
		if is == nil {
			require.Equal(t, map[string]uint64{"n": 1}, known)
			require.NoError(t, f.Close())
		}
		require.NoError(t, os.Truncate(path, 0))
	}
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

// What could not be written is written by Close, in a new file.
func TestClose_WritesWhatCouldNotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names")
	f, _ := open(t, path)
	for i, name := range []string{"reset", "dropped", "kept"} {
		require.NoError(t, f.Set(name, uint64(i+1)))
	}
	writable := f.file
	var err error
	f.file, err = os.Open(path)
	require.NoError(t, err)
	require.Error(t, f.Set("reset", 4))
	require.Error(t, f.Drop("dropped"))
	require.NoError(t, f.Set("new", 5), "no older generation can be found")
	require.NoError(t, writable.Close())
	require.NoError(t, f.Close())
	_, known := open(t, path)
	require.Equal(t, map[string]uint64{"reset": 4, "kept": 3, "new": 5}, known)
}

// A name that had no room is written by Close.
func TestClose_WritesWhatHadNoRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names")
	f, _ := open(t, path)
	require.NoError(t, os.Mkdir(path, 0o700))
	require.NoError(t, f.Set("n", 1))
	require.NoError(t, f.Set("other", 2))
	require.NoError(t, os.Remove(path))
	require.NoError(t, f.Close())
	_, known := open(t, path)
	require.Equal(t, map[string]uint64{"n": 1, "other": 2}, known)
}

// Only the file that is open is replaced: not one that has come to its path, nor is one made where
// the directory was before it was moved.
func TestSet_ReplacesNoOtherFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	require.NoError(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "names")
	f, _ := open(t, path)
	require.NoError(t, os.WriteFile(path, []byte("of another"), 0o600))
	require.NoError(t, f.Set("n", 1))
	err := f.Close()
	require.ErrorIs(t, err, os.ErrExist)
	require.ErrorContains(t, err, path)
	has, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "of another", string(has))
	require.NoError(t, os.Remove(path))

	f, _ = open(t, path)
	require.NoError(t, f.Set("n", 1))
	require.NoError(t, os.Rename(dir, dir+"2"))
	for i := range 40 { // the file would be replaced
		name := fmt.Sprint(i)
		require.NoError(t, f.Set(name, 2))
		require.NoError(t, f.Drop(name))
	}
	require.NoError(t, f.Set("n", 3))
	early, _ := open(t, path)
	require.NoError(t, early.Set("n", 1))
	require.ErrorIs(t, early.Close(), os.ErrNotExist)
	require.NoDirExists(t, dir)
	_, known := open(t, filepath.Join(dir+"2", "names"))
	require.Equal(t, map[string]uint64{"n": 3}, known)
	require.NoError(t, f.Close())
}

// A file that is in use is locked, so that programs that remove old files leave it.
func TestFile_IsLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names")
	f, _ := open(t, path)
	for _, f := range []*File{f, nil} {
		if f == nil {
			f, _ = open(t, path)
		}
		require.NoError(t, f.Set("n", 1))
		other, err := os.Open(path)
		require.NoError(t, err)
		require.ErrorIs(t, osfile.Lock(other), osfile.ErrLocked)
		require.NoError(t, other.Close())
		require.NoError(t, f.Close())
	}
}
