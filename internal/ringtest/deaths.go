//go:build linux

package ringtest

import (
	"flag"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// DeathCounts are the calls that each worker has finished, in its own file.
func DeathCounts(t testing.TB, path string) []atomic.Uint64 {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Truncate(4096))
	b, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Munmap(b) })
	return wordsOf(b)
}

// DeathRuns is how often the process dies under each policy.
var DeathRuns = flag.Int("ringcache.deaths", 12, "how often TestDeath kills a process")

// LockedBuffer is what a child says.
type LockedBuffer struct {
	mu sync.Mutex
	b  []byte
}

// Write adds to what was written.
func (l *LockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, p...)
	return len(p), nil
}

// String returns what was written.
func (l *LockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b)
}

// wordsOf returns b as words, which outlive the process where b does.
func wordsOf(b []byte) []atomic.Uint64 {
	// Sound: b is a mapping, and so aligned.
	return unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}
