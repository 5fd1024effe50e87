package ringcache

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

	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/store"
)

// saved is what a snapshot says of a key.
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
			require.True(t, ref.Size <= snapshot.MaxBlock || ref.Entries == 1, "a long block")
			return ref.Each(body, func(key int, e snapshot.Entry) {
				k, v := body[key:key+e.KeyLen], body[key+e.KeyLen:][:e.ValueLen]
				all[string(k)] = saved{string(v), all[string(k)].times + 1}
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

// saveSteps saves by steps, and calls fn between any two of them. With coarse cells there
// are 64 of them in a bucket, each with entries of several homes.
func saveSteps(t testing.TB, c *Cache, passes []snapshot.Pass, coarse bool, fn func()) []byte {
	t.Helper()
	s := c.newSaver(t.Context(), passes)
	if coarse {
		s.Size = func(int) int { return 0 }
	}
	var b bytes.Buffer
	s.Stream = &b
	clock := c.shared.Wall(time.Now())
	s.Step = func(out *snapshot.Worker) snapshot.Step {
		w := &walker{c: c, clock: clock, Worker: out}
		return func(i int, at uint64, p snapshot.Pass, done *snapshot.Cells) (uint64, error) {
			fn()
			next, err := w.part(i, at, p, done)
			return next, err
		}
	}
	require.NoError(t, s.Run(1))
	return b.Bytes()
}

// An entry that is there all the time is saved exactly once, in whatever passes, while
// others come and go, entries move from ring to ring, and indexes grow.
func TestSnapshot_EachExactlyOnce(t *testing.T) {
	t.Parallel()
	all := map[string][]snapshot.Pass{"at once": snapshot.AtOnce,
		"hottest": snapshot.HottestFirst, "coldest": snapshot.ColdestFirst}
	for name, passes := range all {
		for _, g := range roomyCases() {
			if g.seed == ([2]uint64{}) {
				continue // the watched would be pushed out
			}
			t.Run(name+"/"+describe(g), func(t *testing.T) {
				c := mustCache(t, g)
				sets := 40 // in each step
				if g.buckets == 1 {
					sets = 400
					fillCache(t, c, 1<<28, 20_000, 100) // nothing comes any more without a move
				}
				w := watch(t, c, 700, mixedSize)
				for id := range uint32(100) { // deleted before
					require.NoError(t, c.Set(trafficKey(nil, 1<<24|id), []byte("v")))
					require.True(t, c.Del(trafficKey(nil, 1<<24|id)))
				}
				before := statsOf(c)
				other, n := uint32(1<<20), 0
				b := saveSteps(t, c, passes, false, func() {
					for range sets {
						if n++; n > 60_000 {
							return
						}
						k := trafficKey(nil, other+uint32(n)%20_000)
						require.NoError(t, c.Set(k, make([]byte, n%90)))
						for id := range w.size { // a few at random
							if c.Has(trafficKey(nil, id)); id%4 == 0 {
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
				for id, size := range w.size {
					k := trafficKey(nil, id)
					e := got[string(k)]
					if !c.Has(k) {
						continue
					}
					there++
					require.Equal(t, 1, e.times, "the entry %d of %d bytes", id, size)
					require.True(t, stamp{id: id, version: 1, size: size}.wrote([]byte(e.value)))
				}
				require.Greater(t, there, 50, "too few are left: the test proves nothing")
				for id := range uint32(100) {
					require.Zero(t, got[string(trafficKey(nil, 1<<24|id))].times)
				}
				if g.buckets == 1 {
					after := statsOf(c)
					since := after.Sub(before).Policy
					moves := since.Promotions + since.Reinsertions
					require.NotZero(t, moves, "nothing has moved")
				}
			})
		}
	}
}

// A cell that a step sees a part of waits for the next step.
func TestSnapshot_CellsAreWhole(t *testing.T) {
	c := mustCache(t, tiny(1, 4096, 2000))
	w := watch(t, c, 3000, func(uint32) int { return selfSize })
	for id := uint32(0); id < 3000; id += 50 {
		c.Has(trafficKey(nil, id))
	}
	got := entriesOf(t, saveSteps(t, c, snapshot.HottestFirst, true, func() {}))
	for id := range w.size {
		require.Equal(t, 1, got[string(trafficKey(nil, id))].times)
	}
}

// Real goroutines set, read and delete meanwhile. What they never touch is saved once;
// what they overwrite is saved with one of its values, whole.
func TestSnapshot_UnderTraffic(t *testing.T) {
	t.Parallel()
	c := mustCache(t, defaultGeometry(64<<20))
	fixed := watch(t, c, 20_000, func(id uint32) int { return int(id%200) + selfSize })
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
				size := int(n%100) + selfSize
				if id%50 == 0 {
					size = 100_000 + int(n%3) // overwritten in place now and then
				}
				v := stamp{id: id, version: uint64(n), size: size}.value(nil)
				assert.NoError(t, c.Set(trafficKey(nil, id), v))
				c.Has(trafficKey(nil, n%20_000))
			}
		}()
	}
	defer func() {
		close(stop)
		wg.Wait()
	}()
	for round := range 6 {
		path := filepath.Join(t.TempDir(), "snapshot")
		o := SaveOptions{Concurrency: 2, Partial: round%2 == 1}
		require.NoError(t, c.Save(t.Context(), path, o))
		for k, e := range entriesOf(t, readFile(t, path)) {
			id := binary.LittleEndian.Uint32([]byte(k))
			s, err := readStamp([]byte(e.value))
			require.NoError(t, err)
			require.Equal(t, id, s.id)
			if size, ok := fixed.size[id]; ok {
				require.Equal(t, []int{1, size}, []int{e.times, s.size}, "key %d", id)
				delete(fixed.size, id)
			}
		}
		require.Empty(t, fixed.size, "not saved")
		for id := range uint32(20_000) {
			fixed.size[id] = int(id%200) + selfSize
		}
	}
}

// While somebody waits for the disk or the network, no lock is held.
func TestSnapshot_NoLockIsHeldWhileItWrites(t *testing.T) {
	c := mixedCache(t, defaultGeometry(minMaxBytes))
	writes := 0
	w := &blockingWriter{fn: func() {
		writes++
		c.each(func(b *bucket) {
			require.True(t, b.mu.TryLock(), "a bucket is locked")
			b.mu.Unlock()
		})
		require.True(t, c.arena.mu.TryLock())
		c.arena.mu.Unlock()
		require.NoError(t, c.Set([]byte("an hour"), []byte("w")))
	}}
	_, err := c.WriteSnapshot(w)
	require.NoError(t, err)
	require.Greater(t, writes, 5)
	progress := 0
	o := SaveOptions{Concurrency: 1, Progress: func(done, total int64) {
		progress++
		require.LessOrEqual(t, done, total)
		c.each(func(b *bucket) {
			require.True(t, b.mu.TryLock(), "a bucket is locked")
			b.mu.Unlock()
		})
	}}
	require.NoError(t, c.Save(t.Context(), filepath.Join(t.TempDir(), "s"), o))
	require.Greater(t, progress, 100)
}

// walkInSteps goes over a cache, and returns how many bytes a step copies at most, and
// those of the keys that are left for later.
func walkInSteps(t *testing.T, c *Cache) (most, keys int) {
	t.Helper()
	w := &walker{c: c, clock: c.shared.Wall(time.Now()), Worker: &snapshot.Worker{}}
	for rank := range w.Blocks {
		w.Blocks[rank].Reset()
	}
	c.each(func(b *bucket) {
		for at := uint64(0); at < store.HashesEnd; {
			w.Bytes, w.long = 0, w.long[:0]
			next, err := w.step(b, at, snapshot.AtOnce[0], &snapshot.Cells{})
			require.NoError(t, err)
			require.Greater(t, next, at)
			at, most = next, max(most, w.Bytes)
			for _, k := range w.long {
				keys += len(k.key)
			}
		}
	})
	return most, keys
}

// A step copies no more than 64 KB under the lock.
func TestSnapshot_StepsAreSmall(t *testing.T) {
	c := mustCache(t, defaultGeometry(1<<30))
	for id := range uint32(3000) {
		size := []int{20, 1000, 30_000, 65_000, 65_600, 300_000}[id%6]
		require.NoError(t, c.Set(trafficKey(nil, id), make([]byte, size)))
	}
	most, _ := walkInSteps(t, c)
	require.LessOrEqual(t, most, store.StepBytes)
	require.Greater(t, most, store.StepBytes/2)
}

// Entries of one hash are in one cell, and not all copied under one lock for that.
func TestSnapshot_StepsAreSmallWhereHashesAreEqual(t *testing.T) {
	g := tiny(1, 64<<10, 64)
	g.seed = [2]uint64{}
	c := mustCache(t, g)
	const n = 20
	for id := range uint32(n) {
		require.NoError(t, c.Set(trafficKey(nil, id), bytes.Repeat([]byte{byte(id)}, 20_000)))
	}
	most, keys := walkInSteps(t, c)
	require.LessOrEqual(t, most, store.StepBytes+keys)
	require.Greater(t, keys, (n-4)*len(trafficKey(nil, 0))-1)
	_, path := snapshotOf(t, c)
	requireSame(t, contents(t, c), contents(t, mustLoad(t, path)), false)
}

// A long record is copied in parts. If it is overwritten in between, moved, or deleted,
// what is saved is one value or none.
func TestSnapshot_LongRecordsAreWhole(t *testing.T) {
	c := mustCache(t, defaultGeometry(64<<20))
	k := []byte("a long one")
	const size = 1 << 20
	require.NoError(t, c.Set(k, stamp{id: 1, version: 0, size: size}.value(nil)))
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
				assert.NoError(t, c.Set(k, stamp{id: 1, version: n, size: size + 1}.value(nil)))
			default: // in place
				assert.NoError(t, c.Set(k, stamp{id: 1, version: n, size: size}.value(nil)))
			}
		}
	}()
	defer func() {
		close(stop)
		wg.Wait()
	}()
	found := 0
	for range 30 {
		var b bytes.Buffer
		_, err := c.WriteSnapshot(&b)
		require.NoError(t, err)
		for key, e := range entriesOf(t, b.Bytes()) {
			require.Equal(t, string(k), key)
			require.Equal(t, 1, e.times)
			_, err := readStamp([]byte(e.value))
			require.NoError(t, err)
			found++
		}
	}
	require.NotZero(t, found)
}

// Each write that comes between two parts is noticed.
func TestSnapshot_LongRecordIsRewrittenInBetween(t *testing.T) {
	c := mustCache(t, defaultGeometry(64<<20))
	k := []byte("a long one")
	value := func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, 300_000) }
	lb := c.largeBucket(c.shared.Hash(k))
	for name, change := range map[string]func(){
		"overwritten":    func() { require.NoError(t, c.Set(k, value(2))) },
		"another length": func() { require.NoError(t, c.Set(k, value(2)[1:])) },
		"deleted":        func() { require.True(t, c.Del(k)) },
		"reset":          func() { c.Reset() },
	} {
		require.NoError(t, c.Set(k, value(1)))
		w := &walker{c: c, clock: c.shared.Wall(time.Now()), Worker: &snapshot.Worker{}}
		w.longer.Bytes = make([]byte, 0, 400_000)
		parts := 0
		w.between = func() {
			if parts++; parts == 3 {
				change()
			}
		}
		_, _, whole := w.copyLong(lb, longKey{key: k}, c.shared.Hash(k), store.StepBytes)
		require.False(t, whole, name)
		require.Equal(t, 3, parts, name)
	}
}

// Progress goes on to the end where records are packed.
func TestSnapshot_ProgressOfPackedRecords(t *testing.T) {
	skipUnderRace(t)
	g := withCold(tiny(1, 1024, 2048), flateCompressor{})
	g.byHand = true
	p := &packedCache{Cache: mustCache(t, g), size: 1000}
	for range 10_000 {
		p.fill(t)
		p.compressAll()
	}
	require.Greater(t, p.countPacked(), uint64(p.Len()/2))
	steps, told := &endsLater{Context: t.Context()}, int64(0)
	steps.looks.Store(1 << 40)
	o := SaveOptions{Progress: func(done, total int64) { told++ }}
	require.NoError(t, p.Save(steps, filepath.Join(t.TempDir(), "s"), o))
	require.Greater(t, told, (1<<40-steps.looks.Load())*8/10)
}

// Cancelled saves leave the old file as it was, and nothing beside it.
func TestSnapshot_Cancel(t *testing.T) {
	c := mustCache(t, defaultGeometry(minMaxBytes))
	fillCache(t, c, 0, 50_000, 100)
	old, path := snapshotOf(t, c)
	for _, workers := range []int{1, 2} {
		o := SaveOptions{Concurrency: workers}
		err := c.Save(endsAfter(t, c, o, 0.3), path, o)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, path)
		require.True(t, bytes.Equal(old, readFile(t, path)))
		require.Empty(t, litter(t, filepath.Dir(path)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := c.Save(ctx, path, SaveOptions{Progress: func(done, total int64) { cancel() }})
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, bytes.Equal(old, readFile(t, path)))
	panics := SaveOptions{Concurrency: 2, Progress: func(done, total int64) { panic("mine") }}
	require.PanicsWithValue(t, "mine", func() { c.Save(t.Context(), path, panics) })
	require.True(t, bytes.Equal(old, readFile(t, path)))
	require.Empty(t, litter(t, filepath.Dir(path)))
	require.NoError(t, c.SaveToFile(path), "it goes on")

	// A partial save of nothing would throw a good file away.
	old = readFile(t, path)
	err = c.Save(ctx, path, SaveOptions{Partial: true})
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, bytes.Equal(old, readFile(t, path)))
}

// A partial save has the hottest entries first.
func TestSnapshot_PartialHasTheHottest(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 2} {
		c := mustCache(t, defaultGeometry(64<<20))
		const n, hot = 200_000, 20_000
		fillCache(t, c, 0, n, 100)
		key := make([]byte, 8)
		for id := range uint64(hot) {
			binary.LittleEndian.PutUint64(key, id*10)
			require.True(t, c.Has(key))
			require.True(t, c.Has(key))
		}
		path := filepath.Join(t.TempDir(), "snapshot")
		o := SaveOptions{Concurrency: workers, Partial: true}
		require.NoError(t, c.Save(endsAfter(t, c, o, 0.6), path, o))
		d := mustLoad(t, path)
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
		require.Equal(t, n, mustLoad(t, path).Len())
		require.Equal(t, last[0], last[1], "progress ends with all")
	}
}

// Close in the middle is an error, and no empty file.
func TestSnapshot_CloseMeanwhile(t *testing.T) {
	c := newCache(defaultGeometry(minMaxBytes))
	fillCache(t, c, 0, 50_000, 100)
	path := filepath.Join(t.TempDir(), "snapshot")
	err := c.Save(t.Context(), path, SaveOptions{Progress: func(int64, int64) { closeCache(t, c) }})
	require.ErrorIs(t, err, ErrClosed)
	_, err = os.Stat(path)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A pipe joins two caches.
func TestSnapshot_Pipe(t *testing.T) {
	c, d := mixedCache(t, defaultGeometry(minMaxBytes)), mustCache(t, defaultGeometry(minMaxBytes))
	r, w := io.Pipe()
	go func() {
		_, err := c.WriteSnapshot(w)
		w.CloseWithError(err)
	}()
	_, err := d.ReadSnapshot(r)
	require.NoError(t, err)
	requireSame(t, contents(t, c), contents(t, d), false)

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
	e := mustCache(t, defaultGeometry(minMaxBytes))
	_, err = e.ReadSnapshot(fr)
	require.NoError(t, errors.Join(err, fr.Close()))
	require.Equal(t, c.Len(), e.Len(), fmt.Sprint(e.Len()))
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }
