package persist

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/testhook"
)

// A step copies no more than 64 KB under the lock.
func TestSnapshot_StepsAreSmall(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(1<<30))
	for id := range uint32(3000) {
		size := []int{20, 1000, 30_000, 65_000, 65_600, 300_000}[id%6]
		require.NoError(t, c.Set(ringtest.TrafficKey(nil, id), make([]byte, size)))
	}
	most, later := walkInSteps(t, c)
	require.LessOrEqual(t, most, store.StepBytes)
	require.Greater(t, most, store.StepBytes/2)
	require.Equal(t, 1000, later, "long ones")
}

// walkInSteps goes over a cache, and returns how many bytes a step copies at most, and how many
// records are left for later.
func walkInSteps(t *testing.T, c *ringcache.Cache) (most, later int) {
	t.Helper()
	out := &snapshot.Worker{}
	w := testhook.WalkerOf(c, out, nil)
	defer w.End()
	for i := range ringtest.Shared(c).Buckets + store.LargeBuckets {
		for done := false; !done; {
			out.Reset()
			out.Saved = 0
			n, err := 0, error(nil)
			done, n, err = w.Copy(i, snapshot.Quarters)
			require.NoError(t, err)
			most, later = max(most, out.Saved), later+n
		}
	}
	return most, later
}

// Each write that comes between two parts is noticed.
func TestSnapshot_LongRecordIsRewrittenInBetween(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(64<<20))
	k := []byte("a long one")
	value := func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, 300_000) }
	lb := int(ringtest.LargeBucketOf(c, ringtest.Shared(c).Hash(k)).Number)
	for name, change := range map[string]func(){
		"overwritten":    func() { require.NoError(t, c.Set(k, value(2))) },
		"another length": func() { require.NoError(t, c.Set(k, value(2)[1:])) },
		"deleted":        func() { require.True(t, c.Del(k)) },
		"reset":          func() { c.Reset() },
	} {
		require.NoError(t, c.Set(k, value(1)))
		parts := 0
		w := testhook.WalkerOf(c, &snapshot.Worker{}, func() {
			if parts++; parts == 3 {
				change()
			}
		})
		require.False(t, w.CopyLong(lb, k), name)
		require.Equal(t, 3, parts, name)
	}
}

// While somebody waits for the disk or the network, no lock is held.
func TestSnapshot_NoLockIsHeldWhileItWrites(t *testing.T) {
	c := ringtest.MixedCache(t, ringtest.Default(ringtest.MinBytes))
	writes := 0
	w := &blockingWriter{fn: func() {
		writes++
		ringtest.EachBucket(c, func(b ringtest.Bucket) {
			require.True(t, b.Mu.TryLock(), "a bucket is locked")
			b.Mu.Unlock()
		})
		require.True(t, ringtest.Arena(c).TryLock())
		ringtest.Arena(c).Unlock()
		require.NoError(t, c.Set([]byte("an hour"), []byte("w")))
	}}
	_, err := c.WriteSnapshot(w)
	require.NoError(t, err)
	require.Greater(t, writes, 5)
	progress := 0
	o := ringcache.SaveOptions{Concurrency: 1, Progress: func(done, total int64) {
		progress++
		require.LessOrEqual(t, done, total)
		ringtest.EachBucket(c, func(b ringtest.Bucket) {
			require.True(t, b.Mu.TryLock(), "a bucket is locked")
			b.Mu.Unlock()
		})
	}}
	require.NoError(t, c.Save(t.Context(), filepath.Join(t.TempDir(), "s"), o))
	require.Greater(t, progress, 100)
}
