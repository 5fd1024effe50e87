//go:build unix

package sidefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/osfile"
)

const magic = "ringtest"

// inPlace is that of a ring file which nobody moves.
func inPlace() error { return nil }

// open opens a file that another process may have open still, as after a kill.
func open(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path, magic, inPlace)
	require.NoError(t, err)
	return f
}

// What was set is found by the next process, whether this one closes the file or is killed.
func TestFile_IsWhatAMapHolds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "file")
	want := map[string]uint64{}
	f := open(t, path)
	require.Empty(t, f.Words())
	for range 20_000 {
		key := strings.Repeat(fmt.Sprint(rnd.IntN(200)), rnd.IntN(4))
		switch op := rnd.IntN(1000); {
		case op == 0:
			require.NoError(t, f.Clear())
			clear(want)
		case op < 10:
			if rnd.IntN(2) == 0 {
				require.NoError(t, f.Close())
				require.ErrorIs(t, f.Set(key, 1), ErrClosed)
				require.ErrorIs(t, f.Set(key, 0), ErrClosed)
			} else {
				f.file.Close()
			}
			f = open(t, path)
			require.True(t, maps.Equal(want, f.Words()), "want %v, got %v", want, f.Words())
		case op < 400:
			require.NoError(t, f.Set(key, 0))
			delete(want, key)
		default:
			want[key] = 1 + rnd.Uint64()>>1
			require.NoError(t, f.Set(key, want[key]))
		}
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(100_000), "free records pile up")
	require.EqualValues(t, 0o600, info.Mode().Perm())
	require.NoError(t, f.Close())
	require.NoError(t, f.Close(), "again")
	var none *File
	require.NoError(t, none.Set("k", 1))
	require.NoError(t, none.Close())
}

// A process that is killed while it adds a key leaves the earlier ones, and nothing that a later
// record would not hide. So does one that is killed twice. Before the first record there are none.
func TestFile_EndsAnywhere(t *testing.T) {
	dir := t.TempDir()
	whole := func(name string, keys ...string) []byte {
		path := filepath.Join(dir, name)
		f := open(t, path)
		for i, key := range keys {
			require.NoError(t, f.Set(key, uint64(i+1)))
		}
		require.NoError(t, f.Close())
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		return b
	}
	inner := whole("inner", "inner")[headSize:] // a key that looks like records
	evil := strings.Repeat("x", align-recordHead) + strings.Repeat(string(inner), 4)
	all, shorter := whole("evil", "first", evil), whole("shorter", "first", evil[:2*align])
	first := len(whole("first", "first")) - recordHead
	path := filepath.Join(dir, "file")
	for n := range all {
		for _, n2 := range []int{0, first + recordHead + 1, first + align, len(shorter)} {
			if n2 > 0 && n%8 != 0 {
				continue
			}
			// The head of a record is written last, and until then is zeros.
			b := bytes.Clone(all[:n])
			b = append(append([]byte{}, shorter[:min(n2, len(shorter))]...), b[min(n2, n):]...)
			if len(b) > first && (n < len(all)-recordHead || n2 > 0) {
				clear(b[first:min(len(b), first+recordHead)])
			}
			require.NoError(t, os.WriteFile(path, b, 0o600))
			f := open(t, path)
			want := map[string]uint64{"first": 1}
			if len(b) < first {
				want = map[string]uint64{}
			} else if n >= len(all)-recordHead && n2 == 0 {
				want[evil] = 2
			}
			require.True(t, maps.Equal(want, f.Words()), "%d %d bytes: %v", n, n2, f.Words())
			require.NoError(t, f.Set("a", 3))
			require.NoError(t, f.Close())
			f = open(t, path)
			want["a"] = 3
			require.True(t, maps.Equal(want, f.Words()), "%d %d bytes: %v", n, n2, f.Words())
			require.NoError(t, f.Close())
		}
	}
}

// A key that was damaged is gone, and the others stay.
func TestOpen_DamagedKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f := open(t, path)
	for i, key := range []string{"one", strings.Repeat("two", 100), "three"} {
		require.NoError(t, f.Set(key, uint64(i+1)))
	}
	require.NoError(t, f.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	at := bytes.Index(whole, []byte("two"))
	for bit := 0; bit < 8*300; bit += 7 {
		whole[at+bit/8] ^= 1 << (bit % 8)
		require.NoError(t, os.WriteFile(path, whole, 0o600))
		f := open(t, path)
		require.Equal(t, map[string]uint64{"one": 1, "three": 3}, f.Words())
		require.NoError(t, f.Close())
		whole[at+bit/8] ^= 1 << (bit % 8)
	}
}

// Of any bytes a file is made, or an error, in no more memory than they have.
func FuzzParse(f *testing.F) {
	seed := &File{magic: magic}
	head := seed.head()
	rec := make([]byte, align)
	binary.LittleEndian.PutUint64(rec, 1)
	binary.LittleEndian.PutUint32(rec[8:], 3)
	binary.LittleEndian.PutUint32(rec[12:], sum([]byte("key")))
	copy(rec[recordHead:], "key")
	f.Add(head)
	f.Add(append(bytes.Clone(head), rec...))
	f.Add(append(append(bytes.Clone(head), rec...), bytes.Repeat([]byte{0xff}, align)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		f := &File{magic: magic}
		f.forget()
		if f.parse(bytes.NewReader(b)) != nil {
			return
		}
		require.LessOrEqual(t, f.end, max(int64(len(b)), headSize))
		total := int64(headSize)
		for key, r := range f.records {
			require.NotZero(t, r.word)
			total += sizeOf(int64(len(key)))
		}
		for size, free := range f.free {
			total += size * int64(len(free))
		}
		require.LessOrEqual(t, total, f.end)
	})
}

// A file that is longer than its records, such as one of zeros, takes no memory for its length.
func TestOpen_LongFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f := open(t, path)
	require.NoError(t, f.Set("k", 1))
	require.NoError(t, f.Close())
	var before, after runtime.MemStats
	for _, want := range []map[string]uint64{{"k": 1}, {}} {
		require.NoError(t, os.Truncate(path, 256<<20))
		runtime.ReadMemStats(&before)
		f := open(t, path)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
		require.Equal(t, want, f.Words())
		require.NoError(t, f.Close())
		require.NoError(t, os.Truncate(path, 0))
	}
}

// A file that a crash has left blank, or with a part of its head, has no records; that of another
// program is refused and left as it is.
func TestOpen_BlankOrForeign(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	head := string((&File{magic: magic}).head())
	for text, want := range map[string]error{
		"": nil, "ringt": nil, magic: nil, head[:len(magic)+1]: nil, head[:headSize-1]: nil, head: nil,
		strings.Repeat("\x00", 10): nil, strings.Repeat("\x00", 1000): nil,
		"x": osfile.ErrForeign, "ringname": osfile.ErrForeign,
		strings.Repeat("words ", 20): osfile.ErrForeign,
		magic + "\x02" + head[9:]:    osfile.ErrVersion, magic + "\x00" + head[9:]: osfile.ErrVersion,
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o640))
		f, err := Open(path, magic, inPlace)
		require.ErrorIs(t, err, want, "%q", text)
		has, readErr := os.ReadFile(path)
		require.NoError(t, readErr)
		require.Equal(t, text, string(has))
		if err != nil {
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.EqualValues(t, 0o640, info.Mode().Perm())
			continue
		}
		require.NoError(t, f.Set("k", 1))
		require.NoError(t, f.Close())
		f = open(t, path)
		require.Equal(t, map[string]uint64{"k": 1}, f.Words(), "%q", text)
		require.NoError(t, f.Close())
		require.NoError(t, os.Remove(path))
	}
}

// What could not be written is written by Close.
func TestClose_WritesWhatCouldNotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f := open(t, path)
	for i, key := range []string{"reset", "dropped", "kept"} {
		require.NoError(t, f.Set(key, uint64(i+1)))
	}
	writable := f.file
	var err error
	f.file, err = os.Open(path)
	require.NoError(t, err)
	require.Error(t, f.Set("reset", 4))
	require.Error(t, f.Set("dropped", 0))
	require.Error(t, f.Set("new", 5))
	require.Error(t, f.Set("new and dropped", 6))
	require.NoError(t, f.Set("new and dropped", 0))
	require.NoError(t, f.file.Close())
	f.file = writable
	require.NoError(t, f.Close())
	require.Equal(t, map[string]uint64{"reset": 4, "kept": 3, "new": 5}, open(t, path).Words())
}

// A key that had no room is written by Close.
func TestClose_WritesWhatHadNoRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f := open(t, path)
	require.NoError(t, os.Mkdir(path, 0o700))
	require.Error(t, f.Set("k", 1))
	require.Error(t, f.Set("other", 2))
	require.NoError(t, os.Remove(path))
	require.NoError(t, f.Close())
	require.Equal(t, map[string]uint64{"k": 1, "other": 2}, open(t, path).Words())
}

// Close tells keys that are missing from words that are wrong.
func TestClose_MissingOrWrong(t *testing.T) {
	for _, wrong := range []bool{false, true} {
		f := open(t, filepath.Join(t.TempDir(), "file"))
		require.NoError(t, f.Set("k", 1))
		require.NoError(t, f.file.Close())
		var err error
		f.file, err = os.Open(f.path)
		require.NoError(t, err)
		err = f.Set("new", 2)
		require.Error(t, err)
		require.NotErrorIs(t, err, ErrStale)
		if wrong {
			require.ErrorIs(t, f.Set("k", 2), ErrStale)
		}
		err = f.Close()
		require.Error(t, err)
		require.Equal(t, wrong, errors.Is(err, ErrStale))
		require.Equal(t, map[string]uint64{"k": 1}, open(t, f.path).Words())
	}
}

// A directory that cannot be read, and so not synced, can have the file.
func TestSet_DirectoryCannotBeRead(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads every directory")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o300))
	defer func() { require.NoError(t, os.Chmod(dir, 0o700)) }()
	f := open(t, filepath.Join(dir, "file"))
	require.NoError(t, f.Set("k", 1))
	require.NoError(t, f.Close())
	require.Equal(t, map[string]uint64{"k": 1}, open(t, f.path).Words())
}

// A file that could not be used at first is used later.
func TestSet_AfterOneThatFailed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f := open(t, path)
	other, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	require.NoError(t, osfile.Lock(other))
	require.ErrorIs(t, f.Set("one", 1), osfile.ErrLocked)
	require.NoError(t, other.Close())
	require.NoError(t, f.Set("two", 2))
	require.NoError(t, f.Close())
	require.Equal(t, map[string]uint64{"one": 1, "two": 2}, open(t, path).Words())
}

// No file that has come to the path is written to, nor is one made where the directory was before
// it was moved.
func TestSet_WritesToNoOtherFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	require.NoError(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "file")
	f := open(t, path)
	require.NoError(t, os.WriteFile(path, []byte("of another"), 0o600))
	require.ErrorIs(t, f.Set("k", 1), os.ErrExist)
	err := f.Close()
	require.ErrorIs(t, err, os.ErrExist)
	require.ErrorContains(t, err, path)
	has, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "of another", string(has))
	require.NoError(t, os.Remove(path))

	f = open(t, path)
	elsewhere := filepath.Join(dir, "elsewhere")
	require.NoError(t, os.Symlink(elsewhere, path))
	require.Error(t, f.Set("k", 1))
	require.ErrorContains(t, f.Close(), path)
	require.NoFileExists(t, elsewhere)
	require.NoError(t, os.Remove(path))

	f = open(t, path)
	require.NoError(t, f.Set("k", 1))
	require.NoError(t, os.Rename(dir, dir+"2"))
	require.NoError(t, f.Set("k", 3))
	early := open(t, path)
	require.ErrorIs(t, early.Set("k", 1), os.ErrNotExist)
	require.ErrorIs(t, early.Close(), os.ErrNotExist)
	require.NoDirExists(t, dir)
	require.NoError(t, f.Close())
	require.Equal(t, map[string]uint64{"k": 3}, open(t, filepath.Join(dir+"2", "file")).Words())
}

// A file that is in use is locked, so that programs that remove old files leave it, and another
// cache is refused, until Close, even if a child process has the file open for a moment.
func TestFile_IsLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f := open(t, path)
	for _, f := range []*File{f, nil} {
		if f == nil {
			f = open(t, path)
		}
		require.NoError(t, f.Set("k", 1))
		other, err := os.Open(path)
		require.NoError(t, err)
		require.ErrorIs(t, osfile.Lock(other), osfile.ErrLocked)
		require.NoError(t, other.Close())
		_, err = Open(path, magic, inPlace)
		require.ErrorIs(t, err, osfile.ErrLocked)
		require.ErrorContains(t, err, path)
		child, err := syscall.Dup(int(f.file.Fd())) // as fork does
		require.NoError(t, err)
		defer syscall.Close(child)
		require.NoError(t, f.Close())
	}
}
