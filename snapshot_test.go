package ringcache

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/snapshot"
)

func TestSnapshot_BringsEverythingBack(t *testing.T) {
	for _, kind := range []Policy{PolicyS3FIFO, PolicyFIFO} {
		for _, workers := range []int{-1, 1, 2, 3} {
			t.Run(fmt.Sprintf("%v/%d", kind, workers), func(t *testing.T) {
				g := defaultGeometry(minMaxBytes)
				g.policy, g.ttl, g.ahead = kind, time.Hour, time.Second
				c := mixedCache(t, g)
				require.NotZero(t, c.shared.arrivals.held.Load(), "no large entries")
				path := filepath.Join(t.TempDir(), "new", "folder", "snapshot")
				require.NoError(t, c.SaveToFileConcurrent(path, workers))
				d := mustLoad(t, path)
				requireSame(t, contents(t, c), contents(t, d), true)
				require.Equal(t, kind, Policy(d.shared.policy))
				require.Equal(t, []time.Duration{g.ttl, g.ahead}, []time.Duration{d.ttl, d.ahead})
				s := statsOf(d)
				require.EqualValues(t, c.Len(), s.LoadedEntries)
				require.EqualValues(t, minMaxBytes, s.MaxBytesSize)
				require.Zero(t, s.SetCalls+s.GetCalls+s.EvictedEntries+s.DiscardedBlocks)
				require.Empty(t, litter(t, filepath.Dir(path)))
			})
		}
	}
}

// A stream says the same, to caches of other shapes too.
func TestSnapshot_StreamsIntoAnyShape(t *testing.T) {
	c := mixedCache(t, defaultGeometry(minMaxBytes))
	var b bytes.Buffer
	n, err := c.WriteTo(&b)
	require.NoError(t, err)
	require.EqualValues(t, b.Len(), n)
	for _, g := range []geometry{
		tiny(1, 4096, 8000), tiny(2, 1024, 17_000), tiny(256, 4096, 40), defaultGeometry(128 << 20),
	} {
		d := mustCache(t, g)
		r := io.MultiReader(bytes.NewReader(b.Bytes()), bytes.NewReader([]byte("rest")))
		m, err := d.ReadFrom(r)
		require.NoError(t, err)
		require.Equal(t, n, m)
		rest, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, "rest", string(rest), "it read on behind the end")
		requireSame(t, contents(t, c), contents(t, d), false)

		e := mustCache(t, g)
		f := bytes.NewReader(append([]byte("before"), append(b.Bytes(), "behind"...)...))
		_, err = f.Seek(6, io.SeekStart)
		require.NoError(t, err)
		m, err = e.ReadFrom(f)
		require.NoError(t, err)
		require.Equal(t, n, m)
		require.Equal(t, 6, f.Len(), "behind the snapshot")
		requireSame(t, contents(t, c), contents(t, e), false)
	}
}

// Age within a ring comes back, to a twelfth of the main one and a quarter of the small.
func TestSnapshot_OrderComesBack(t *testing.T) {
	if raceEnabled {
		t.Skip("one goroutine: the detector only makes it slow")
	}
	for _, kind := range []Policy{PolicyS3FIFO, PolicyFIFO} {
		g := defaultGeometry(minMaxBytes)
		g.policy = kind
		c := mustCache(t, g)
		fillCache(t, c, 0, 40_000, 1000)
		before := contents(t, c)
		_, path := snapshotOf(t, c)
		check := func(name string, after map[string]kept, most float64) {
			apart, n := 0.0, 0
			for k, e := range after {
				require.Equal(t, before[k].ring, e.ring)
				if e.ring == policy.Main {
					apart += max(before[k].age-e.age, e.age-before[k].age)
					n++
				}
			}
			require.Greater(t, n, 10_000)
			t.Logf("%v, %s: %.3f apart", kind, name, apart/float64(n))
			require.Less(t, apart/float64(n), most, "%s: at random it is 0.33", name)
		}
		check("file", contents(t, mustLoad(t, path)), 0.05)
		var b bytes.Buffer
		_, err := c.WriteTo(&b)
		require.NoError(t, err)
		d := mustCache(t, g)
		_, err = d.ReadFrom(&b)
		require.NoError(t, err)
		check("stream", contents(t, d), 0.15)
	}
}

// The hits of a trace that goes on with the loaded cache are those of one that goes on
// with the saved one.
func TestSnapshot_HitsGoOn(t *testing.T) {
	if raceEnabled {
		t.Skip("one goroutine: the detector only makes it slow")
	}
	for _, kind := range []Policy{PolicyS3FIFO, PolicyFIFO} {
		g := defaultGeometry(minMaxBytes)
		g.policy = kind
		c := mustCache(t, g)
		ids := rand.NewZipf(newRand(7), 1.01, 10, 3_000_000)
		replay := func(c *Cache, keys []uint64) (hits int) {
			key, value := make([]byte, 8), make([]byte, 100)
			for _, id := range keys {
				binary.LittleEndian.PutUint64(key, id)
				if c.Has(key) {
					hits++
				} else if err := c.Set(key, value); err != nil {
					require.NoError(t, err)
				}
			}
			return hits
		}
		trace := make([]uint64, 1_500_000)
		for i := range trace {
			trace[i] = ids.Uint64()
		}
		warm, rest := trace[:1_300_000], trace[1_300_000:]
		replay(c, warm)
		_, path := snapshotOf(t, c)
		loaded, cold := replay(mustLoad(t, path), rest), replay(mustCache(t, g), rest)
		went := replay(c, rest)
		t.Logf("%v: %d hits went on, %d loaded, %d cold", kind, went, loaded, cold)
		require.Greater(t, float64(loaded), 0.99*float64(went))
		require.Less(t, float64(cold), 0.97*float64(went), "the test proves nothing")
	}
}

// Into a smaller cache the hottest come: what was read twice, of what was read never.
func TestSnapshot_TheHottestFit(t *testing.T) {
	if raceEnabled {
		t.Skip("one goroutine: the detector only makes it slow")
	}
	c := mustCache(t, defaultGeometry(128<<20))
	fillCache(t, c, 0, 700_000, 100)
	key := make([]byte, 8)
	for id := range uint64(100_000) {
		binary.LittleEndian.PutUint64(key, id*7)
		c.Has(key)
		c.Has(key)
	}
	require.Equal(t, 700_000, c.Len())
	_, path := snapshotOf(t, c)
	var b bytes.Buffer
	_, err := c.WriteTo(&b)
	require.NoError(t, err)
	d, err := LoadFromFileMaxBytes(path, 32<<20)
	require.NoError(t, err)
	e := mustCache(t, defaultGeometry(32<<20))
	_, err = e.ReadFrom(&b)
	require.NoError(t, err)
	defer closeCache(t, d)
	for i, d := range []*Cache{d, e} {
		require.NoError(t, d.validate())
		require.Greater(t, d.Len(), 150_000)
		hot := 0
		for id := range uint64(100_000) {
			binary.LittleEndian.PutUint64(key, id*7)
			if d.Has(key) {
				hot++
			}
		}
		t.Logf("%d of 100,000 that were read are there", hot)
		require.Greater(t, hot, []int{98_000, 75_000}[i])
	}
	_, err = LoadFromFileMaxBytes(path, 0)
	require.ErrorIs(t, err, ErrInvalidOptions)
}

// The rest of the time to live comes back, by the wall clock.
func TestSnapshot_LivesGoOn(t *testing.T) {
	var at time.Duration
	g := defaultGeometry(minMaxBytes)
	g.now = func() time.Duration { return at }
	at = 1000 * time.Hour // how old the cache is does not matter
	c := mustCache(t, g)
	for _, s := range []int{1, 60, 3600} {
		ttl := time.Duration(s) * time.Second
		require.NoError(t, c.SetWithTTL([]byte(ttl.String()), nil, ttl))
	}
	require.NoError(t, c.SetWithTTL([]byte("never"), nil, 0))
	require.NoError(t, c.SetWithTTL([]byte("far"), nil, 12*365*24*time.Hour))
	_, err := c.GetOrLoad(t.Context(), nil, []byte("none"),
		func(context.Context, []byte) (Loaded, error) { return Loaded{Absent: true}, nil })
	require.ErrorIs(t, err, ErrAbsent)
	at += 2 * time.Second
	_, path := snapshotOf(t, c)
	d := mustLoad(t, path)
	require.Equal(t, 5, d.Len(), "one had expired")
	for k, want := range map[string]time.Duration{
		"1m0s": 58 * time.Second, "1h0m0s": 3598 * time.Second, "never": 0,
	} {
		left, ok := d.TTL([]byte(k))
		require.True(t, ok, k)
		require.LessOrEqual(t, left, want, k)
		require.Greater(t, left, want-10*time.Second, k)
	}
	_, ok := d.TTL([]byte("far"))
	require.True(t, ok)
	_, err = d.GetOrLoad(t.Context(), nil, []byte("none"),
		func(context.Context, []byte) (Loaded, error) { return Loaded{}, errors.New("asked") })
	require.ErrorIs(t, err, ErrAbsent)

	// A cache that reads it an hour later.
	b := readFile(t, path)
	h, err := snapshot.ParseHeader(b, 0)
	require.NoError(t, err)
	e := mustCache(t, defaultGeometry(minMaxBytes))
	late := e.newBatch(&h)
	late.clock = e.shared.Wall(time.Now().Add(time.Hour))
	s, err := snapshot.Scan(bytes.NewReader(b), int64(len(b)), false)
	require.NoError(t, err)
	restore := func() func(*snapshot.Ref, []byte) error { return late.restore }
	require.NoError(t, s.Load(1, 1<<30, 1<<30, restore))
	require.Equal(t, 3, e.Len(), "never, far, and the one that is none")
}

// A clock that was set back does not make lives longer.
func TestSnapshot_ClockSetBack(t *testing.T) {
	c := mustCache(t, defaultGeometry(minMaxBytes))
	require.NoError(t, c.SetWithTTL([]byte("k"), nil, time.Hour))
	s := c.newSaver(t.Context(), snapshot.AtOnce)
	s.Header.Saved = time.Now().Add(100 * time.Hour) // the wall clock when it was saved
	clock := c.shared.Wall(s.Header.Saved)
	s.Step = func(out *snapshot.Worker) snapshot.Step {
		return (&walker{c: c, clock: clock, Worker: out}).part
	}
	var b bytes.Buffer
	s.Stream = &b
	require.NoError(t, s.Run(1))
	d := mustCache(t, defaultGeometry(minMaxBytes))
	_, err := d.ReadFrom(&b)
	require.NoError(t, err)
	left, ok := d.TTL([]byte("k"))
	require.True(t, ok)
	require.LessOrEqual(t, left, time.Hour)
}

// ReadFrom adds: keys that are there stay as they are, the absent ones among them.
func TestSnapshot_ReadFromAdds(t *testing.T) {
	c := mixedCache(t, defaultGeometry(minMaxBytes))
	b, path := snapshotOf(t, c)
	g := defaultGeometry(minMaxBytes)
	var now time.Duration
	g.now = func() time.Duration { return now }
	d := mustCache(t, g)
	for id := range uint32(700) {
		v := stamp{id: id, version: 2, size: mixedSize(id + 7)}.value(nil)
		require.NoError(t, d.Set(trafficKey(nil, id), v))
	}
	require.NoError(t, d.SetWithTTL([]byte("an hour"), nil, time.Second))
	now = time.Second
	was := contents(t, d)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	n, err := d.ReadFrom(f)
	require.NoError(t, err)
	require.EqualValues(t, len(b), n)
	want := contents(t, c)
	for k, e := range was {
		if k != "an hour" {
			want[k] = e
		}
	}
	requireSame(t, want, contents(t, d), false)
	n, err = d.ReadFrom(f) // which is at its end
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, path)
	require.Zero(t, n)
}

// What loading pushes out is told, with no lock held.
func TestSnapshot_LoadingTellsOnEvict(t *testing.T) {
	big := mustCache(t, defaultGeometry(128<<20))
	fillCache(t, big, 0, 400_000, 100)
	_, path := snapshotOf(t, big)
	var c *Cache
	var told atomic.Int64
	g := defaultGeometry(minMaxBytes)
	g.onEvict = func(k, v []byte, reason Reason) {
		told.Add(1)
		c.Has(k)
		assert.Equal(t, EvictCapacity, reason)
	}
	c = mustCache(t, g)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	_, err = c.ReadFrom(f)
	require.NoError(t, err)
	s := statsOf(c)
	require.EqualValues(t, s.EvictedEntries, told.Load())
	require.Equal(t, s.LoadedEntries, s.EvictedEntries+s.EntriesCount)
	require.NotZero(t, told.Load())
}

// A typed view works on a loaded cache, and a loaded one is saved like any other.
func TestSnapshot_TypedViewOfALoadedCache(t *testing.T) {
	c := mustCache(t, defaultGeometry(minMaxBytes))
	type user struct{ Name string }
	view := func(c *Cache) *Typed[uint64, user] {
		return NewTyped[uint64](c, JSONCodec[user](), TypedOptions{Prefix: "user:"})
	}
	require.NoError(t, view(c).Set(7, user{"Ada"}))
	_, path := snapshotOf(t, c)
	for range 3 {
		d := mustLoad(t, path)
		u, ok, err := view(d).Get(7)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "Ada", u.Name)
		_, path = snapshotOf(t, d)
	}
}

// The random operations of the model test go on with a cache that was saved and loaded
// again, into the same shape and others.
func TestSnapshot_ModelGoesOn(t *testing.T) {
	for i, mc := range modelCases() {
		if raceEnabled && i%8 != 0 || i%3 != 0 && !*longRun {
			continue
		}
		t.Run(describe(mc.g), func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, mc.g, false)
			rnd := newRand(uint64(i))
			data := make([]byte, opSize*400)
			for range min(6*rounds(), 24) {
				fillRandom(rnd, data)
				if err := r.run(data); err != nil {
					require.NoError(t, err, r.trail())
				}
				var b bytes.Buffer
				_, err := r.c.WriteTo(&b)
				require.NoError(t, err)
				d := mustCache(t, r.g)
				if r.bound != r.g.maxBytes {
					require.True(t, d.resize(r.bound))
				}
				_, err = d.ReadFrom(&b)
				require.NoError(t, err)
				require.NoError(t, d.validate())
				was, is := contents(t, r.c), contents(t, d)
				for k, e := range is {
					require.True(t, was[k].value == e.value, "the value of key %x", k)
					require.Equal(t, was[k].negative, e.negative)
				}
				for id, at := range r.deadlines { // real time goes on meanwhile
					if e, ok := is[string(r.keyOf(id))]; ok && e.expiry != 0 && !e.negative {
						now := time.Duration(e.expiry-1) * clock.Tick
						require.LessOrEqual(t, now, at)
						require.Greater(t, now, at-10*time.Second)
						r.deadlines[id] = now
					}
				}
				r.c = d
			}
		})
	}
}

// Errors of files name what was asked for, and leave nothing.
func TestSnapshot_FilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none")
	c, err := LoadFromFile(none)
	require.Nil(t, c)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "ringcache: load snapshot: "+none)
	_, err = LoadFromFile(dir)
	require.ErrorContains(t, err, "is a folder")

	c = LoadFromFileOrNew(none, 1)
	require.Zero(t, statsOf(c).DiscardedBlocks, "nothing was lost")
	require.Zero(t, c.Len())
	require.ErrorContains(t, c.SaveToFile(dir), dir, "a folder is not replaced")
	require.Empty(t, litter(t, filepath.Dir(dir)))
	file := filepath.Join(dir, "file")
	require.NoError(t, c.SaveToFile(file))
	require.Error(t, c.SaveToFile(filepath.Join(file, "below a file")))
	info, err := os.Stat(file)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, fs.FileMode(0o600), info.Mode())
	}
	require.Zero(t, mustLoad(t, file).Len(), "an empty cache is a snapshot too")

	require.NoError(t, c.Close())
	require.ErrorIs(t, c.SaveToFile(file), ErrClosed, "or it would replace a full one")
	_, err = c.WriteTo(io.Discard)
	require.ErrorIs(t, err, ErrClosed)
	_, err = c.ReadFrom(bytes.NewReader(readFile(t, file)))
	require.NoError(t, err, "there is nothing to restore")
	require.Panics(t, func() { LoadFromFileOrNew(file, 0) })
	full := mixedCache(t, defaultGeometry(minMaxBytes))
	b, _ := snapshotOf(t, full)
	_, err = c.ReadFrom(bytes.NewReader(b))
	require.ErrorIs(t, err, ErrClosed)
}

// A writer that takes no more ends WriteTo with its error.
func TestSnapshot_WriterFails(t *testing.T) {
	c := mixedCache(t, defaultGeometry(minMaxBytes))
	full := errors.New("full")
	n, err := c.WriteTo(&limitedWriter{left: 100_000, err: full})
	require.ErrorIs(t, err, full)
	require.EqualValues(t, 100_000, n)
	_, err = c.WriteTo(&limitedWriter{left: 100_000})
	require.ErrorIs(t, err, io.ErrShortWrite)
}

type limitedWriter struct {
	left int
	err  error
}

func (w *limitedWriter) Write(b []byte) (int, error) {
	n := min(len(b), w.left)
	w.left -= n
	if n < len(b) {
		return n, w.err
	}
	return n, nil
}

// Saves of one cache to one path, loads of it, and Sets, all at once.
func TestSnapshot_ManyAtOnce(t *testing.T) {
	c := mustCache(t, defaultGeometry(minMaxBytes))
	fillCache(t, c, 0, 20_000, 100)
	path := filepath.Join(t.TempDir(), "snapshot")
	require.NoError(t, c.SaveToFile(path))
	stop := make(chan struct{})
	var wg, setters sync.WaitGroup
	for i := range 2 {
		setters.Add(1)
		go func() {
			defer setters.Done()
			for id := uint32(0); ; id++ {
				select {
				case <-stop:
					return
				default:
				}
				k := trafficKey(nil, id%5000|uint32(i)<<20)
				if assert.NoError(t, c.Set(k, k)) && !assert.True(t, c.Has(k)) {
					return
				}
			}
		}()
	}
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 3 {
				assert.NoError(t, c.SaveToFileConcurrent(path, 3))
				d, err := LoadFromFile(path)
				if assert.NoError(t, err) {
					assert.GreaterOrEqual(t, d.Len(), 20_000)
					closeCache(t, d)
				}
			}
		}()
	}
	wg.Wait()
	close(stop)
	setters.Wait()
	require.Empty(t, litter(t, filepath.Dir(path)))
}

// Who calls ReadFrom is who OnEvict is called by, and who its panic reaches.
func TestSnapshot_PanicInOnEvictReachesTheCaller(t *testing.T) {
	c := mustCache(t, defaultGeometry(64<<20))
	fillCache(t, c, 0, 60_000, 1000)
	_, path := snapshotOf(t, c)
	g := defaultGeometry(minMaxBytes)
	g.onEvict = func([]byte, []byte, Reason) { panic("of the user") }
	d := mustCache(t, g)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.PanicsWithValue(t, "of the user", func() { _, _ = d.ReadFrom(f) })
	require.NoError(t, d.validate())
}

func TestLoadFromFileOrNew_TakesWhatNewTakes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	c := New(1)
	require.NoError(t, c.Set([]byte("k"), []byte("v")))
	require.NoError(t, c.SaveToFile(path))
	closeCache(t, c)
	c = LoadFromFileOrNew(path, 1)
	defer closeCache(t, c)
	require.True(t, c.Has([]byte("k")))
}
