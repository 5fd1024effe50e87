//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package persist

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/ringtest"
)

// Both deadlines come back from a file, whatever ended the process, also where the next one has
// another idle time or none; and what was idle for too long meanwhile does not.
func TestFile_IdleTime(t *testing.T) {
	for idle, test := range map[time.Duration]struct{ k, withTTL, read, readWithTTL time.Duration }{
		10 * time.Second: {3 * time.Second, 9 * time.Second, 10 * time.Second, 9 * time.Second},
		time.Minute:      {3 * time.Second, 9 * time.Second, time.Minute, 10 * time.Second},
		5 * time.Second:  {3 * time.Second, 5 * time.Second, 3 * time.Second, 5 * time.Second},
		0:                {3 * time.Second, 9 * time.Second, 3 * time.Second, 9 * time.Second},
	} {
		for _, closed := range []bool{true, false} {
			f := newClockedFile(t)
			f.g.ExpireAfterAccess = 10 * time.Second
			f.open()
			require.NoError(t, f.Set([]byte("k"), nil))
			f.set("with TTL", 17*time.Second)
			f.Pass(6 * time.Second)
			require.True(t, f.Has([]byte("with TTL")))
			f.leave(closed)
			f.Pass(time.Second)
			f.g.ExpireAfterAccess = idle
			f.open()
			require.NoError(t, ringtest.Validate(f.Cache))
			requireLeft(t, f.Cache, "k", test.k)
			requireLeft(t, f.Cache, "with TTL", test.withTTL)
			require.True(t, f.Has([]byte("k")))
			require.True(t, f.Has([]byte("with TTL")))
			requireLeft(t, f.Cache, "k", test.read)
			requireLeft(t, f.Cache, "with TTL", test.readWithTTL)
			require.NoError(t, ringtest.Validate(f.Cache))
			f.leave(closed)
			f.Pass(time.Minute)
			f.open()
			requireLeft(t, f.Cache, "k", 0)
			require.NoError(t, f.Close())
		}
	}
}

// An entry that a cache without an idle time has left in a file has none until it is written again,
// and keeps its TTL; what one with an idle time has left expires when it would have.
func TestFile_IdleTimeComesAndGoes(t *testing.T) {
	f := newClockedFile(t)
	f.open()
	f.set("for ever", 0)
	f.set("TTL", time.Minute)
	f.leave(true)
	f.g.ExpireAfterAccess = 10 * time.Second
	f.open()
	left, ok := f.TTL([]byte("for ever"))
	require.True(t, ok)
	require.Zero(t, left)
	f.Pass(55 * time.Second)
	require.True(t, f.Has([]byte("TTL")))
	requireLeft(t, f.Cache, "TTL", 5*time.Second)
	require.NoError(t, f.Set([]byte("for ever"), []byte("for ever")))
	requireLeft(t, f.Cache, "for ever", 10*time.Second)
	require.True(t, f.Touch([]byte("TTL"), time.Minute))
	requireLeft(t, f.Cache, "TTL", 10*time.Second)
	require.NoError(t, ringtest.Validate(f.Cache))
	f.leave(true)

	f.g.ExpireAfterAccess = 0
	f.open()
	f.set("for ever", 0)
	require.True(t, f.Touch([]byte("TTL"), time.Minute))
	requireLeft(t, f.Cache, "TTL", time.Minute)
	f.Pass(30 * time.Second)
	require.True(t, f.Has([]byte("for ever")))
	require.NoError(t, ringtest.Validate(f.Cache))
	f.leave(false)
	f.g.ExpireAfterAccess = 10 * time.Second
	f.open()
	requireLeft(t, f.Cache, "for ever", 10*time.Second)
	requireLeft(t, f.Cache, "TTL", 10*time.Second)
	require.NoError(t, f.Close())
}
