package persist

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/store"
	"github.com/ringcache/ringcache/internal/testhook"
)

// saved is what a snapshot says of a key: its last value, and how often it is there.
type saved struct {
	value string
	times int
}

// entriesOf returns what a snapshot holds, by key.
func entriesOf(t testing.TB, b []byte) map[string]saved {
	t.Helper()
	s, err := snapshot.Scan(bytes.NewReader(b), int64(len(b)), false)
	require.NoError(t, err)
	all := map[string]saved{}
	err = s.Load(1, 1<<40, 1<<40, func() func(*snapshot.Ref, []byte) error {
		return func(ref *snapshot.Ref, body []byte) error {
			require.True(t, ref.Size <= snapshot.MaxBlock || ref.Records == 1, "a long block")
			return ref.Each(body, func(r *snapshot.Record) error {
				k, v := body[r.At+r.Size:][:r.KeyLen], body[r.At+r.Size+r.KeyLen:][:r.ValueLen]
				all[string(k)] = saved{string(v), all[string(k)].times + 1}
				return nil
			})
		}
	})
	require.NoError(t, err)
	return all
}

// blockingWriter calls fn before each write.
type blockingWriter struct {
	bytes.Buffer
	fn func()
}

func (w *blockingWriter) Write(b []byte) (int, error) {
	w.fn()
	return w.Buffer.Write(b)
}

// saveSteps saves by steps, and calls fn between any two of them.
func saveSteps(t testing.TB, c *ringcache.Cache, partial bool, fn func()) []byte {
	t.Helper()
	return saveStepsAt(t, c, time.Now(), partial, fn)
}

// saveStepsAt is saveSteps with a wall clock that shows at.
func saveStepsAt(
	t testing.TB, c *ringcache.Cache, at time.Time, partial bool, fn func(),
) []byte {
	t.Helper()
	s, end := testhook.Saver(t.Context(), c, nil)
	defer end()
	s.Header.Mark.At.Wall = at
	var b bytes.Buffer
	s.To, s.Partial = &b, partial
	walker := s.Walker
	s.Walker = func(w *snapshot.Worker) snapshot.Step {
		step := walker(w)
		return func(part, quarter int) (bool, error) {
			fn()
			return step(part, quarter)
		}
	}
	require.NoError(t, s.Run(1))
	return b.Bytes()
}

// An entry that is there all the time is saved, while others come and go, entries move from ring to
// ring, and indexes grow.
func TestSnapshot_Each(t *testing.T) {
	t.Parallel()
	for _, partial := range []bool{false, true} {
		for _, g := range ringtest.RoomyCases() {
			if g.Seed == ([2]uint64{}) {
				continue // the watched would be pushed out
			}
			t.Run(fmt.Sprintf("partial=%v/%s", partial, ringtest.Describe(g)), func(t *testing.T) {
				c := ringtest.MustCache(t, g)
				sets := 40 // in each step
				if g.Buckets == 1 {
					sets = 400
					ringtest.FillCache(t, c, 1<<28, 20_000, 100) // nothing comes any more without a move
				}
				w := ringtest.Watch(t, c, 700, ringtest.MixedSize)
				for id := range uint32(100) { // deleted before
					require.NoError(t, c.Set(ringtest.TrafficKey(nil, 1<<24|id), []byte("v")))
					require.True(t, c.Del(ringtest.TrafficKey(nil, 1<<24|id)))
				}
				before := ringtest.PolicyOf(c)
				other, n := uint32(1<<20), 0
				b := saveSteps(t, c, partial, func() {
					for range sets {
						if n++; n > 60_000 {
							return
						}
						k := ringtest.TrafficKey(nil, other+uint32(n)%20_000)
						require.NoError(t, c.Set(k, make([]byte, n%90)))
						for id := range w.Size { // a few at random
							if c.Has(ringtest.TrafficKey(nil, id)); id%4 == 0 {
								break
							}
						}
						if n%3 == 0 {
							c.Del(k)
						}
					}
				})
				got := entriesOf(t, b)
				there := 0
				for id, size := range w.Size {
					k := ringtest.TrafficKey(nil, id)
					e := got[string(k)]
					if !c.Has(k) {
						continue
					}
					there++
					require.NotZero(t, e.times, "the entry %d of %d bytes", id, size)
					require.True(t, ringtest.Stamp{ID: id, Version: 1, Size: size}.Wrote([]byte(e.value)))
				}
				require.Greater(t, there, 50, "too few are left: the test proves nothing")
				for id := range uint32(100) {
					require.Zero(t, got[string(ringtest.TrafficKey(nil, 1<<24|id))].times)
				}
				if g.Buckets == 1 {
					after := ringtest.PolicyOf(c)
					require.Greater(t, after.Promotions+after.Reinsertions,
						before.Promotions+before.Reinsertions, "nothing has moved")
				}
			})
		}
	}
}

// Real goroutines set, read and delete meanwhile. What they never touch is saved; what they
// overwrite is saved with one of its values, whole.
func TestSnapshot_UnderTraffic(t *testing.T) {
	t.Parallel()
	c := ringtest.MustCache(t, ringtest.Default(64<<20))
	fixed := ringtest.Watch(t, c, 20_000, func(id uint32) int {
		return int(id%200) + ringtest.SelfSize
	})
	const changing = 1 << 20
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range uint32(2) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := uint32(0); ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				id := changing + (n*7+i)%500
				size := int(n%100) + ringtest.SelfSize
				if id%50 == 0 {
					size = 100_000 + int(n%3) // overwritten in place now and then
				}
				v := ringtest.Stamp{ID: id, Version: uint64(n), Size: size}.Value(nil)
				assert.NoError(t, c.Set(ringtest.TrafficKey(nil, id), v))
				c.Has(ringtest.TrafficKey(nil, n%20_000))
			}
		}()
	}
	defer func() {
		close(stop)
		wg.Wait()
	}()
	for round := range 4 {
		path := filepath.Join(t.TempDir(), "snapshot")
		o := ringcache.SaveOptions{Concurrency: 2, Partial: round%2 == 1}
		require.NoError(t, c.Save(t.Context(), path, o))
		for k, e := range entriesOf(t, ringtest.ReadFile(t, path)) {
			id := binary.LittleEndian.Uint32([]byte(k))
			s, err := ringtest.ReadStamp([]byte(e.value))
			require.NoError(t, err)
			require.Equal(t, id, s.ID)
			if size, ok := fixed.Size[id]; ok {
				require.Equal(t, size, s.Size, "key %d", id)
				delete(fixed.Size, id)
			}
		}
		require.Empty(t, fixed.Size, "not saved")
		for id := range uint32(20_000) {
			fixed.Size[id] = int(id%200) + ringtest.SelfSize
		}
	}
}

// Entries of one hash are not all copied under one lock.
func TestSnapshot_StepsAreSmallWhereHashesAreEqual(t *testing.T) {
	g := ringtest.Tiny(1, 64<<10, 64)
	g.Seed = [2]uint64{}
	c := ringtest.MustCache(t, g)
	const n = 20
	for id := range uint32(n) {
		require.NoError(t, c.Set(ringtest.TrafficKey(nil, id), bytes.Repeat([]byte{byte(id)}, 20_000)))
	}
	most, _ := walkInSteps(t, c)
	require.LessOrEqual(t, most, store.StepBytes)
	_, path := ringtest.SnapshotOf(t, c)
	ringtest.RequireSame(t, ringtest.Contents(t, c), ringtest.Contents(t, ringtest.MustLoad(t, path)),
		false)
}

// A long record is copied in parts. If it is overwritten in between, moved, or deleted,
// what is saved is one value or none.
func TestSnapshot_LongRecordsAreWhole(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(64<<20))
	k := []byte("a long one")
	const size = 1 << 20
	require.NoError(t, c.Set(k, ringtest.Stamp{ID: 1, Version: 0, Size: size}.Value(nil)))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for n := uint64(1); ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			switch n % 50 {
			case 0:
				c.Del(k)
			case 1:
				assert.NoError(t, c.Set(k, ringtest.Stamp{ID: 1, Version: n, Size: size + 1}.Value(nil)))
			default: // in place
				assert.NoError(t, c.Set(k, ringtest.Stamp{ID: 1, Version: n, Size: size}.Value(nil)))
			}
		}
	}()
	defer func() {
		close(stop)
		wg.Wait()
	}()
	found := 0 // on one processor, the value may be overwritten during most snapshots
	for n := 0; n < 30 || found == 0; n++ {
		var b bytes.Buffer
		_, err := c.WriteSnapshot(&b)
		require.NoError(t, err)
		for key, e := range entriesOf(t, b.Bytes()) {
			require.Equal(t, string(k), key)
			_, err := ringtest.ReadStamp([]byte(e.value))
			require.NoError(t, err)
			found++
		}
	}
}

// Progress goes on to the end where records are packed.
func TestSnapshot_ProgressOfPackedRecords(t *testing.T) {
	ringtest.SkipUnderRace(t)
	g := ringtest.WithCold(ringtest.Tiny(1, 1024, 2048), ringtest.FlateCompressor{})
	g.ByHand = true
	p := &ringtest.PackedCache{Cache: ringtest.MustCache(t, g), Size: 1000}
	p.FillPacked(t, 10_000)
	require.Greater(t, ringtest.CountPacked(p.Cache), uint64(p.Len()/2))
	last, before := 0.0, 0.0
	o := ringcache.SaveOptions{Progress: func(done, total int64) {
		last, before = float64(done)/float64(total), last
	}}
	require.NoError(t, p.Save(t.Context(), filepath.Join(t.TempDir(), "s"), o))
	require.Equal(t, 1.0, last)
	require.Greater(t, before, 0.8)
}

// Cancelled saves leave the old file as it was, and nothing beside it.
func TestSnapshot_Cancel(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	ringtest.FillCache(t, c, 0, 50_000, 100)
	old, path := ringtest.SnapshotOf(t, c)
	for _, workers := range []int{1, 2} {
		o := ringcache.SaveOptions{Concurrency: workers}
		err := c.Save(ringtest.EndsAfter(t, c, o, 0.3), path, o)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, path)
		require.True(t, bytes.Equal(old, ringtest.ReadFile(t, path)))
		require.Empty(t, ringtest.Litter(t, filepath.Dir(path)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := c.Save(ctx, path, ringcache.SaveOptions{Progress: func(done, total int64) { cancel() }})
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, bytes.Equal(old, ringtest.ReadFile(t, path)))
	panics := ringcache.SaveOptions{Concurrency: 2, Progress: func(done, total int64) {
		panic("mine")
	}}
	require.PanicsWithValue(t, "mine", func() { c.Save(t.Context(), path, panics) })
	require.True(t, bytes.Equal(old, ringtest.ReadFile(t, path)))
	require.Empty(t, ringtest.Litter(t, filepath.Dir(path)))
	require.NoError(t, c.SaveToFile(path), "it goes on")

	// A partial save of nothing but names would throw a good file away.
	require.NoError(t, c.Namespace("n").Set([]byte("k"), nil))
	old = ringtest.ReadFile(t, path)
	for _, end := range []func() error{func() error { return nil }, c.Close} {
		require.NoError(t, end())
		err = c.Save(ctx, path, ringcache.SaveOptions{Partial: true})
		require.ErrorIs(t, err, context.Canceled)
		require.True(t, bytes.Equal(old, ringtest.ReadFile(t, path)))
	}
}

// A partial save has the hottest entries first.
func TestSnapshot_PartialHasTheHottest(t *testing.T) {
	t.Parallel()
	g := ringtest.Default(64 << 20)
	// With one seed of 85, the slots of two keys have equal bits of the hash, and a lookup of one may
	// raise the frequency of the other.
	g.Seed = [2]uint64{1, 2}
	for _, workers := range []int{1, 2} {
		c := ringtest.MustCache(t, g)
		const n, hot = 200_000, 20_000
		ringtest.FillCache(t, c, 0, n, 100)
		key := make([]byte, 8)
		for id := range uint64(hot) {
			binary.LittleEndian.PutUint64(key, id*10)
			require.True(t, c.Has(key))
			require.True(t, c.Has(key))
		}
		path := filepath.Join(t.TempDir(), "snapshot")
		o := ringcache.SaveOptions{Concurrency: workers, Partial: true}
		require.NoError(t, c.Save(ringtest.EndsAfter(t, c, o, 0.6), path, o))
		d := ringtest.MustLoad(t, path)
		require.Less(t, d.Len(), n*3/4)
		found := 0
		for id := range uint64(hot) {
			binary.LittleEndian.PutUint64(key, id*10)
			if d.Has(key) {
				found++
			}
		}
		require.Equal(t, hot, found, "hot entries of %d that were saved", d.Len())

		last := [2]int64{}
		o.Progress = func(done, total int64) { last = [2]int64{done, total} }
		require.NoError(t, c.Save(t.Context(), path, o), "it may take its time")
		require.Equal(t, n, ringtest.MustLoad(t, path).Len())
		require.Equal(t, last[0], last[1], "progress ends with all")
	}
}

// Close in the middle is an error, and no empty file.
func TestSnapshot_CloseMeanwhile(t *testing.T) {
	c := ringtest.NewCache(ringtest.Default(ringtest.MinBytes))
	ringtest.FillCache(t, c, 0, 50_000, 100)
	path := filepath.Join(t.TempDir(), "snapshot")
	err := c.Save(t.Context(), path, ringcache.SaveOptions{Progress: func(int64, int64) {
		ringtest.CloseCache(t, c)
	}})
	require.ErrorIs(t, err, ringcache.ErrClosed)
	_, err = os.Stat(path)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// So is Close between two parts of the last long record, which would be missing.
func TestSnapshot_CloseWhileTheLastLongRecordIsCopied(t *testing.T) {
	save := func(closeAt int) (parts int, err error) {
		c := ringtest.NewCache(ringtest.Default(64 << 20))
		for i := range 40 {
			require.NoError(t, c.Set(ringtest.IDKey(i), make([]byte, 200_000)))
		}
		s, end := testhook.Saver(t.Context(), c, func() {
			if parts++; parts == closeAt {
				ringtest.CloseCache(t, c)
			}
		})
		defer end()
		s.To = new(bytes.Buffer)
		err = s.Run(1)
		return parts, err
	}
	parts, err := save(-1)
	require.NoError(t, err)
	require.Positive(t, parts)
	for at := parts; at > parts-8; at-- {
		_, err = save(at)
		require.ErrorIs(t, err, ringcache.ErrClosed, "part %d of %d", at, parts)
	}
}

// A pipe joins two caches.
func TestSnapshot_Pipe(t *testing.T) {
	c, d := ringtest.MixedCache(t, ringtest.Default(ringtest.MinBytes)),
		ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	r, w := io.Pipe()
	go func() {
		_, err := c.WriteSnapshot(w)
		w.CloseWithError(err)
	}()
	_, err := d.ReadSnapshot(r)
	require.NoError(t, err)
	ringtest.RequireSame(t, ringtest.Contents(t, c), ringtest.Contents(t, d), false)

	broken := errors.New("broken")
	n, err := d.ReadSnapshot(io.MultiReader(bytes.NewReader(make([]byte, 0)), errReader{broken}))
	require.ErrorIs(t, err, broken)
	require.Zero(t, n)
	fr, fw, err := os.Pipe() // seekable by its type alone
	require.NoError(t, err)
	go func() {
		_, err := c.WriteSnapshot(fw)
		assert.NoError(t, errors.Join(err, fw.Close()))
	}()
	e := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	_, err = e.ReadSnapshot(fr)
	require.NoError(t, errors.Join(err, fr.Close()))
	require.Equal(t, c.Len(), e.Len(), fmt.Sprint(e.Len()))
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }
