package persist

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/testhook"
)

// A step copies no more than 64 KB under the lock, and so much of a long record at a time.
func TestSnapshot_StepsAreSmall(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(1<<30))
	sizes := []int{20, 1000, 30_000, 65_000, 65_600, 300_000}
	pauses := 0
	for id := range uint32(3000) {
		size := sizes[id%6]
		require.NoError(t, c.Set(ringtest.TrafficKey(nil, id), make([]byte, size)))
		if size > store.LongRecord {
			pauses += size / store.StepBytes
		}
	}
	most, paused := walkInSteps(t, c)
	require.LessOrEqual(t, most, store.StepBytes)
	require.Greater(t, most, store.StepBytes/2)
	require.Equal(t, pauses, paused)
}

// walkInSteps saves a cache, and returns how many bytes a step without long records copies at most,
// and the number of pauses between the parts of long ones.
func walkInSteps(t *testing.T, c *ringcache.Cache) (most, paused int) {
	t.Helper()
	pause := func() { paused++ }
	saveObserved(t, c, pause, func(step snapshot.Step, w *snapshot.Worker) snapshot.Step {
		return func(part, quarter int) (bool, error) {
			before := paused
			done, err := step(part, quarter)
			if paused == before { // else there were long ones, which are copied after it
				most = max(most, w.Saved)
			}
			return done, err
		}
	})
	return most, paused
}

// saveObserved saves a cache with the steps that observe returns, calls between between two parts
// of a long record, and returns the snapshot.
func saveObserved(
	t testing.TB, c *ringcache.Cache, between func(),
	observe func(step snapshot.Step, w *snapshot.Worker) snapshot.Step,
) []byte {
	t.Helper()
	s, end := testhook.Saver(t.Context(), c, between)
	defer end()
	var b bytes.Buffer
	s.To = &b
	walker := s.Walker
	s.Walker = func(w *snapshot.Worker) snapshot.Step { return observe(walker(w), w) }
	require.NoError(t, s.Run(1))
	return b.Bytes()
}

// Each write that comes between two parts is noticed: the record is copied anew, or left out.
func TestSnapshot_LongRecordIsRewrittenInBetween(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(64<<20))
	k := []byte("a long one")
	value := func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, 300_000) }
	for name, change := range map[string]func(){
		"overwritten":    func() { require.NoError(t, c.Set(k, value(2))) },
		"another length": func() { require.NoError(t, c.Set(k, value(2)[1:])) },
		"deleted":        func() { require.True(t, c.Del(k)) },
		"reset":          func() { c.Reset() },
	} {
		require.NoError(t, c.Set(k, value(1)))
		parts := 0
		between := func() {
			if parts++; parts == 3 {
				change()
			}
		}
		same := func(step snapshot.Step, _ *snapshot.Worker) snapshot.Step { return step }
		saved := entriesOf(t, saveObserved(t, c, between, same))
		want, there := c.Peek(nil, k)
		got := saved[string(k)]
		require.Equal(t, there, got.times > 0, name)
		require.True(t, got.value == string(want), name)
		require.GreaterOrEqual(t, parts, 3, name)
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

// If two values of a key are saved, and the newer one has expired, the older one stays away.
func TestSnapshot_ReplacedValueStaysAway(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Tiny(1, 64<<10, 256))
	const n = 20_000
	var key [8]byte
	for i := range uint64(n / 2) { // ErrAbsent is an older value too
		binary.LittleEndian.PutUint64(key[:], i)
		_, err := c.GetOrLoad(t.Context(), nil, key[:], ringtest.FindsNothing)
		require.ErrorIs(t, err, ringcache.ErrAbsent)
	}
	ringtest.FillCache(t, c, n/2, n/2, 100)
	steps := 0
	b := saveStepsAt(t, c, time.Now().Add(-time.Hour), false, func() {
		steps++
		for i := uint64(0); i < n && steps == 20; i++ {
			binary.LittleEndian.PutUint64(key[:], i)
			require.NoError(t, c.SetWithTTL(key[:], []byte("revoked"), time.Minute))
		}
	})
	saved, d := entriesOf(t, b), ringtest.MustLoad(t, ringtest.WriteFile(t, b))
	twice := 0
	for i := range uint64(n) {
		binary.LittleEndian.PutUint64(key[:], i)
		if saved[string(key[:])].times == 2 {
			twice++
			require.False(t, d.Has(key[:]))
		}
	}
	require.Greater(t, twice, n/100, "the test proves nothing")
	require.EqualValues(t, d.Len(), d.Stats().RestoredEntries)
}
