package system

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// answers are the calls that the library makes, the errors that their manual pages allow, with some
// that a sandbox gives, and what the library then does. Short transfers are answers of the four
// calls that read and write, and a delay is one of each.
var answers = map[string]struct {
	then   string
	errnos []unix.Errno
}{
	"openat": {"the file's: an error; /proc, /sys, a directory to sync or list: done without",
		[]unix.Errno{unix.EACCES, unix.EMFILE, unix.EINTR, unix.ENFILE, unix.ENOSPC, unix.EROFS,
			unix.ELOOP, unix.ENOMEM, unix.EIO, unix.EPERM, unix.ENOSYS, unix.EOVERFLOW}},
	"fstatat": {"an error, or the open descriptor is asked",
		[]unix.Errno{unix.EACCES, unix.ELOOP, unix.ENOMEM, unix.EIO, unix.ENOSYS}},
	"fstat": {"an error", []unix.Errno{unix.EIO, unix.ENOMEM, unix.EOVERFLOW}},
	"flock": {"a ring file: ErrInUse or an error; a snapshot: its leftovers stay",
		[]unix.Errno{unix.EWOULDBLOCK, unix.ENOLCK, unix.EINTR, unix.EINVAL, unix.EPERM,
			unix.ENOSYS}},
	"fallocate": {"no space: the cache is smaller; else zeros are written instead; a hole: kept",
		[]unix.Errno{unix.ENOSPC, unix.EPERM, unix.EINTR, unix.EDQUOT, unix.EFBIG, unix.ENOSYS,
			unix.EOPNOTSUPP, unix.EIO, unix.EINVAL, unix.ENODEV}},
	"ftruncate": {"an error, or the cache is smaller",
		[]unix.Errno{unix.EFBIG, unix.EIO, unix.EINTR, unix.EPERM, unix.EINVAL, unix.ENOSPC,
			unix.ETXTBSY}},
	"mmap": {"the cache is smaller; at construction, an error",
		[]unix.Errno{unix.ENOMEM, unix.EPERM, unix.EAGAIN, unix.EACCES, unix.ENODEV, unix.EINVAL}},
	"munmap": {"the addresses stay mapped", []unix.Errno{unix.ENOMEM, unix.EINVAL, unix.EPERM}},
	"madvise": {"memory is given back by mapping over it, a file is read by pread",
		[]unix.Errno{unix.EPERM, unix.ENOSYS, unix.EINVAL, unix.EAGAIN, unix.ENOMEM}},
	"pread": {"an error: of a head or a directory, the file is refused",
		[]unix.Errno{unix.EIO, unix.EINTR, unix.EAGAIN, unix.EISDIR}},
	"read":   {"an error", []unix.Errno{unix.EIO, unix.EINTR, unix.ENOMEM}},
	"pwrite": {"an error; the old snapshot stays", writeErrnos},
	"write":  {"an error; the old snapshot stays", writeErrnos},
	"fsync": {"an error; of a new ring file's directory: ignored",
		[]unix.Errno{unix.EIO, unix.ENOSPC, unix.EINTR, unix.EDQUOT, unix.EINVAL, unix.EROFS}},
	"fdatasync": {"an error", []unix.Errno{unix.EIO, unix.ENOSPC}},
	"msync":     {"an error of Close", []unix.Errno{unix.EIO, unix.EBUSY, unix.ENOMEM, unix.EINVAL}},
	"renameat": {"an error; the old snapshot stays",
		[]unix.Errno{unix.EACCES, unix.ENOSPC, unix.EBUSY, unix.EDQUOT, unix.EPERM, unix.EROFS,
			unix.EXDEV, unix.EIO}},
	"unlinkat": {"a leftover stays",
		[]unix.Errno{unix.EACCES, unix.EBUSY, unix.EPERM, unix.EROFS, unix.EIO}},
	"fchmod":  {"an error", []unix.Errno{unix.EPERM, unix.EROFS, unix.EIO}},
	"fstatfs": {"not asked", []unix.Errno{unix.EINTR, unix.EIO, unix.ENOSYS, unix.EOVERFLOW}},
	"statfs":  {"not asked", []unix.Errno{unix.EINTR, unix.EIO, unix.ENOSYS, unix.EACCES}},
	"ioctl": {"blocks are compared with the length; the flag is not set",
		[]unix.Errno{unix.ENOTTY, unix.EPERM, unix.EINVAL, unix.EOPNOTSUPP, unix.EINTR}},
	"getdents": {"leftovers stay", []unix.Errno{unix.EIO, unix.EINTR, unix.ENOENT}},
	"mkdirat": {"an error",
		[]unix.Errno{unix.EACCES, unix.EDQUOT, unix.ENOSPC, unix.EROFS}},
	"readlinkat": {"an error", []unix.Errno{unix.EACCES, unix.EIO, unix.EINVAL}},
	"lseek":      {"an error", []unix.Errno{unix.EINVAL, unix.EOVERFLOW}},
	"getcwd":     {"an error", []unix.Errno{unix.EACCES, unix.ENOENT}},
}

var writeErrnos = []unix.Errno{
	unix.ENOSPC, unix.EIO, unix.EINTR, unix.EDQUOT, unix.EFBIG, unix.EPERM,
}

// repeatedByOS are the calls that package os repeats as long as the answer is EINTR.
var repeatedByOS = []string{"openat", "read", "write", "pread", "pwrite", "fsync", "ftruncate",
	"fstat", "fchmod", "getdents"}

// outcome is what a child's run did.
type outcome struct {
	Errs   map[string]string // by step: each error that a call returned
	Is     map[string]bool   // the steps whose error is the errno that was answered
	Full   map[string]bool   // the steps whose error is ErrNoMemory
	Stored int               // entries of which Set returned nil
	Found  int               // of these, those that were found in the end
	Wrong  int               // values that nobody stored
	Kept   int               // bytes that are still resident after Close
}

// A service's life with a cache in memory, with a file, with one whose chunks become holes, with
// one that has dictionaries, and with a snapshot, in which each call of the system fails in turn
// with each answer, once and from then on.
func TestSystemCalls_EachFailsInTurn(t *testing.T) {
	if !chunk.OffHeap {
		t.Skip("this build has no memory of the system")
	}
	if ringtest.ServeAnswered(t, func(line string) string {
		var step struct {
			Life, Dir string
			Errno     unix.Errno
		}
		require.NoError(t, json.Unmarshal([]byte(line), &step))
		defer runtime.GC() // the child collects only here: between the calls that are answered
		b, err := json.Marshal(lives[step.Life](step.Dir, step.Errno))
		require.NoError(t, err)
		return string(b)
	}) {
		return
	}
	t.Parallel()
	for life := range lives {
		dir, err := os.MkdirTemp("/dev/shm", "ringcache") // where a sync is quick
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
		child := ringtest.StartAnswered(t, dir)
		n := 0
		run := func(rule ringtest.Answer) (outcome, map[string]int, error) {
			n++
			place := filepath.Join(dir, fmt.Sprint(n))
			require.NoError(t, os.Mkdir(place, 0o755))
			defer os.RemoveAll(place)
			other := filepath.Join(place, "cache-of-another")
			require.NoError(t, os.WriteFile(other, []byte("other"), 0o640))
			before, err := os.Stat(other)
			require.NoError(t, err)
			ask, err := json.Marshal(map[string]any{"Life": life, "Dir": place, "Errno": rule.Errno})
			require.NoError(t, err)
			child.Answer(rule)
			reply, err := child.Ask(string(ask), time.Minute)
			calls := child.Answer(ringtest.Answer{})
			var o outcome
			if err == nil {
				require.NoError(t, json.Unmarshal([]byte(reply), &o), reply)
				o.Wrong += resurrected(t, place)
			}
			after, statErr := os.Stat(other)
			require.NoError(t, statErr)
			require.Equal(t, before, after, "another file was changed")
			return o, calls, err
		}
		plain, calls, err := run(ringtest.Answer{})
		require.NoError(t, err)
		require.Empty(t, plain.Errs, "%s: without a fault", life)
		require.Equal(t, plain.Stored, plain.Found, "%s: without a fault", life)
		require.NotEmpty(t, calls, life)
		for call, times := range calls {
			require.NotEmpty(t, answers[call].errnos, "%s: the calls' table lacks one", call)
			for _, rule := range rulesOf(call, times) {
				o, _, err := run(rule)
				what := fmt.Sprintf("%s: %s %d-%d %v short=%v", life, call, rule.Nth, rule.Last,
					rule.Errno, rule.Short)
				if err != nil {
					t.Errorf("%s: %v", what, err)
					child = ringtest.StartAnswered(t, dir)
					continue
				}
				checkOutcome(t, what, life, rule, o)
				if call == "munmap" && (len(o.Errs) > 0 || o.Stored < plain.Stored) {
					t.Errorf("%s: addresses that stay mapped are no lack of memory: %d of %d, %v",
						what, o.Stored, plain.Stored, o.Errs)
				}
			}
		}
	}
}

// rulesOf returns the answers for a call that a life makes so many times. Those of a long run
// combine what the others have once.
func rulesOf(call string, times int) (rules []ringtest.Answer) {
	which, errnos, from, delayed := []int{1, times}, answers[call].errnos, []int{times/2 + 1}, 1
	if *ringtest.LongRun {
		for nth := 2; nth < min(times, 12); nth++ {
			which = append(which, nth)
		}
		from, delayed = append(from, 2, times-1), 3
	} else {
		errnos = errnos[:min(2, len(errnos))]
	}
	slices.Sort(which)
	isTransfer := slices.Contains([]string{"read", "write", "pread", "pwrite"}, call)
	for i, nth := range slices.Compact(which) {
		for j, errno := range errnos {
			if *ringtest.LongRun || j == i%len(errnos) {
				rules = append(rules, ringtest.Answer{Call: call, Nth: nth, Last: nth, Errno: errno})
			}
		}
		if isTransfer {
			rules = append(rules, ringtest.Answer{Call: call, Nth: nth, Last: nth, Short: true})
		}
	}
	for _, errno := range errnos {
		if errno != unix.EINTR || !slices.Contains(repeatedByOS, call) {
			rules = append(rules, ringtest.Answer{Call: call, Nth: 1, Errno: errno})
		}
	}
	for _, nth := range from { // a disk fails during the life
		if nth > 1 && nth < times {
			rules = append(rules, ringtest.Answer{Call: call, Nth: nth, Errno: errnos[0]})
		}
	}
	return append(rules,
		ringtest.Answer{Call: call, Nth: 1, Last: delayed, Delay: 20 * time.Millisecond})
}

// isNoSpace reports whether an answer says that there is no room.
func isNoSpace(e unix.Errno) bool {
	return slices.Contains([]unix.Errno{
		unix.ENOSPC, unix.EDQUOT, unix.EFBIG, unix.ENOMEM, unix.EAGAIN}, e)
}

// checkOutcome checks the contract.
func checkOutcome(t *testing.T, what, life string, rule ringtest.Answer, o outcome) {
	t.Helper()
	if o.Wrong > 0 {
		t.Errorf("%s: %d wrong values", what, o.Wrong)
	}
	if o.Kept > 8<<20 {
		t.Errorf("%s: %d KB were not given back", what, o.Kept>>10)
	}
	for step, text := range o.Errs {
		if !strings.HasPrefix(text, "ringcache: ") {
			t.Errorf("%s: %s: the error does not say whose it is: %s", what, step, text)
		}
		if life != "memory" && !strings.Contains(text, "/") {
			t.Errorf("%s: %s: the error names no path: %s", what, step, text)
		}
		if rule.Last == rule.Nth && !o.Is[step] { // else an error may follow from another
			t.Errorf("%s: %s: the error does not wrap the system's: %s", what, step, text)
		}
		if rule.Last == rule.Nth && o.Full[step] && !isNoSpace(rule.Errno) {
			t.Errorf("%s: %s: this is no lack of space: %s", what, step, text)
		}
	}
	if rule.Errno == 0 && len(o.Errs) > 0 {
		t.Errorf("%s: %v", what, o.Errs)
	}
	if len(o.Errs) == 0 && o.Found < o.Stored && !isNoSpace(rule.Errno) {
		t.Errorf("%s: no error, and %d of %d entries", what, o.Found, o.Stored)
	}
}

// lives are what a service does. errno is what the system answers, and each error is expected to be
// it.
var lives = map[string]func(dir string, errno unix.Errno) outcome{
	"memory":       liveInMemory,
	"snapshot":     liveWithSnapshot,
	"file":         inFile(2048, nil), // chunks smaller than a page, which cannot be holes
	"holes":        inFile(4096, nil),
	"dictionaries": inFile(4096, ringtest.FlateCompressor{}),
	"namespaces":   liveWithNamespaces,
}

const livingEntries = 500

func livingKey(i int) []byte { return binary.BigEndian.AppendUint32([]byte("key-"), uint32(i)) }

// livingValue returns the value of key i, some of which are large.
func livingValue(i int) []byte {
	n := 100 + i%700
	if i%250 == 0 {
		n = 100_000
	}
	return binary.BigEndian.AppendUint32(make([]byte, n), uint32(i))
}

func newOutcome() outcome {
	return outcome{Errs: map[string]string{}, Is: map[string]bool{}, Full: map[string]bool{}}
}

// note notes the error of a step.
func (o *outcome) note(step string, err error, errno unix.Errno) bool {
	if err != nil {
		o.Errs[step] = err.Error()
		o.Is[step] = errors.Is(err, errno)
		o.Full[step] = errors.Is(err, ringcache.ErrNoMemory)
	}
	return err == nil
}

// fill stores the entries.
func (o *outcome) fill(c *ringcache.Cache, errno unix.Errno) {
	o.Stored = 0
	for i := range livingEntries {
		err := c.Set(livingKey(i), livingValue(i))
		if err == nil {
			o.Stored++
		} else if !errors.Is(err, ringcache.ErrNoMemory) {
			o.note("Set", err, errno)
		}
	}
}

// count counts the entries that c has.
func (o *outcome) count(c *ringcache.Cache) {
	o.Found = 0
	for i := range livingEntries {
		v, ok := c.HasGet(nil, livingKey(i))
		if ok && string(v) != string(livingValue(i)) {
			o.Wrong++
		} else if ok {
			o.Found++
		}
	}
}

func liveInMemory(_ string, errno unix.Errno) outcome {
	o := newOutcome()
	before := resident()
	c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 32 << 20})
	if !o.note("NewWithOptions", err, errno) {
		return o
	}
	o.fill(c, errno)
	for i, v := uint32(0), make([]byte, 4096); i < 16<<20>>12; i++ {
		_ = c.Set(ringtest.TrafficKey(nil, i), v)
	}
	o.note("Resize down", c.Resize(8<<20), errno)
	o.note("Resize up", c.Resize(32<<20), errno)
	c.Reset()
	o.fill(c, errno)
	o.count(c)
	o.note("Close", c.Close(), errno)
	o.Kept = resident() - before
	return o
}

// resident returns the resident bytes of the process.
func resident() int {
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	var virtual, pages int
	if _, scanErr := fmt.Sscan(string(b), &virtual, &pages); err != nil || scanErr != nil {
		panic(errors.Join(err, scanErr))
	}
	return pages * os.Getpagesize()
}

// inFile returns the life of a cache in a file, with chunks of that size.
func inFile(chunk int, by ringcache.Compressor) func(dir string, errno unix.Errno) outcome {
	const least, most = 512 << 10, 2 << 20
	g := ringtest.Tiny(16, chunk, most/16/chunk)
	g.Compressor = by
	return func(dir string, errno unix.Errno) outcome {
		o := newOutcome()
		for range 2 {
			c, err := ringtest.Open(g, filepath.Join(dir, "cache"))
			if !o.note("NewWithOptions", err, errno) {
				continue
			}
			if o.Stored == 0 {
				for i, v := uint32(0), make([]byte, 4096); i < 1<<20>>12; i++ {
					_ = c.Set(ringtest.TrafficKey(nil, i), v)
				}
				o.note("Resize down", c.Resize(least), errno)
				c.Reset()
				o.note("Resize up", c.Resize(most), errno)
				o.fill(c, errno)
			}
			o.count(c)
			o.note("Close", c.Close(), errno)
		}
		return o
	}
}

func liveWithSnapshot(dir string, errno unix.Errno) outcome {
	o := newOutcome()
	c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 16 << 20})
	if !o.note("NewWithOptions", err, errno) {
		return o
	}
	o.fill(c, errno)
	path := filepath.Join(dir, "made", "snapshot")
	saved := false
	for range 2 {
		saved = o.note("SaveToFile", c.SaveToFile(path), errno) || saved
	}
	o.note("Close", c.Close(), errno)
	if !saved {
		return o
	}
	c, err = ringcache.LoadFromFile(path)
	if !o.note("LoadFromFile", err, errno) {
		return o
	}
	o.count(c)
	o.note("second Close", c.Close(), errno)
	return o
}

// liveWithNamespaces leaves its cache open, as a process that is killed does. Its first namespaces
// are made among many that are dropped, so that they take the place of those in their file.
func liveWithNamespaces(dir string, errno unix.Errno) outcome {
	o := newOutcome()
	c, err := ringtest.Open(ringtest.Tiny(16, 2048, 64), filepath.Join(dir, "cache"))
	if !o.note("NewWithOptions", err, errno) {
		return o
	}
	for round := range 3 {
		for i := range 20 * round {
			name := fmt.Sprint(i)
			c.Namespace(name)
			o.note("DropNamespace", c.DropNamespace(name), errno)
		}
		for _, name := range []string{"reset", "dropped"} {
			err := c.Namespace(name).Set(livingKey(0), []byte("old"))
			if !errors.Is(err, ringcache.ErrNoMemory) {
				o.note("Set", err, errno)
			}
		}
		c.Namespace("reset").Reset()
		o.note("DropNamespace", c.DropNamespace("dropped"), errno)
	}
	return o
}

// resurrected counts the values that a process finds though liveWithNamespaces had removed them. It
// opens copies of the files, for the child may have them open.
func resurrected(t *testing.T, dir string) (n int) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "cache.names")); err != nil {
		return 0
	}
	to := t.TempDir()
	for _, name := range []string{"cache", "cache.names"} {
		b := ringtest.ReadFile(t, filepath.Join(dir, name))
		require.NoError(t, os.WriteFile(filepath.Join(to, name), b, 0o600))
	}
	c, err := ringtest.Open(ringtest.Tiny(16, 2048, 64), filepath.Join(to, "cache"))
	require.NoError(t, err)
	for _, space := range c.Namespaces() {
		if space.Has(livingKey(0)) {
			n++
		}
	}
	require.NoError(t, c.Close())
	return n
}
