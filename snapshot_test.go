package ringcache

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/index"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/snapshot"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/testhook"
)

func TestSnapshot_CellsHaveTheHashesOfSlots(t *testing.T) {
	require.Equal(t, index.HashBits, snapshot.HashBits)
}

func TestSnapshot_BringsEverythingBack(t *testing.T) {
	t.Parallel()
	for _, kind := range []Policy{PolicyS3FIFO, PolicyFIFO} {
		for _, workers := range []int{-1, 1, 2, 3} {
			t.Run(fmt.Sprintf("%v/%d", kind, workers), func(t *testing.T) {
				g := defaultGeometry(minMaxBytes)
				g.policy, g.ttl, g.ahead = kind, time.Hour, time.Second
				c := mixedCache(t, g)
				require.NotZero(t, c.shared.Arrivals.Held.Load(), "no large entries")
				path := filepath.Join(t.TempDir(), "new", "folder", "snapshot")
				o := SaveOptions{Concurrency: workers}
				require.NoError(t, c.Save(t.Context(), path, o))
				d := mustLoad(t, path)
				requireSame(t, contents(t, c), contents(t, d), true)
				require.Equal(t, kind, Policy(d.shared.Policy))
				s := statsOf(d)
				require.EqualValues(t, c.Len(), s.Snapshots.RestoredEntries)
				require.EqualValues(t, minMaxBytes, s.MaxBytesSize)
				require.Zero(t, s.SetCalls+s.GetCalls+s.EvictedEntries+s.Snapshots.DiscardedBlocks)
				require.Empty(t, litter(t, filepath.Dir(path)))
				h := headerOf(t, d)
				require.Equal(t, []time.Duration{g.ttl, g.ahead}, []time.Duration{h.TTL, h.RefreshAhead})
			})
		}
	}
}

// headerOf returns the header of a snapshot of the cache, which has its settings.
func headerOf(t testing.TB, c *Cache) snapshot.Header {
	t.Helper()
	b, _ := snapshotOf(t, c)
	h, err := snapshot.ParseHeader(b, 0)
	require.NoError(t, err)
	return h
}

// A stream says the same, to caches of other shapes too.
func TestSnapshot_StreamsIntoAnyShape(t *testing.T) {
	c := mixedCache(t, defaultGeometry(minMaxBytes))
	var b bytes.Buffer
	n, err := c.WriteSnapshot(&b)
	require.NoError(t, err)
	require.EqualValues(t, b.Len(), n)
	for _, g := range []geometry{
		tiny(1, 4096, 8000), tiny(2, 1024, 17_000), tiny(256, 4096, 40), defaultGeometry(128 << 20),
	} {
		d := mustCache(t, g)
		r := io.MultiReader(bytes.NewReader(b.Bytes()), bytes.NewReader([]byte("rest")))
		m, err := d.ReadSnapshot(r)
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
		m, err = e.ReadSnapshot(f)
		require.NoError(t, err)
		require.Equal(t, n, m)
		require.Equal(t, 6, f.Len(), "behind the snapshot")
		requireSame(t, contents(t, c), contents(t, e), false)
	}
}

// Age within a ring comes back, to a twelfth of the main one and a quarter of the small.
func TestSnapshot_OrderComesBack(t *testing.T) {
	t.Parallel()
	skipUnderRace(t)
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
		check("file", contents(t, mustLoad(t, path)), 0.1)
		var b bytes.Buffer
		_, err := c.WriteSnapshot(&b)
		require.NoError(t, err)
		d := mustCache(t, g)
		_, err = d.ReadSnapshot(&b)
		require.NoError(t, err)
		check("stream", contents(t, d), 0.15)
	}
}

// The hits of a trace that goes on with the loaded cache are those of one that goes on
// with the saved one.
func TestSnapshot_HitsGoOn(t *testing.T) {
	t.Parallel()
	skipUnderRace(t)
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
	t.Parallel()
	skipUnderRace(t)
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
	_, err := c.WriteSnapshot(&b)
	require.NoError(t, err)
	d, report := mustLoadInto(t, path, Options{MaxBytes: 32 << 20})
	require.NoError(t, report.Err)
	e := mustCache(t, defaultGeometry(32<<20))
	_, err = e.ReadSnapshot(&b)
	require.NoError(t, err)
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
}

// A snapshot that is much larger than the cache which reads it fills that: about as many entries
// come from a file as from a stream, and they are as new.
func TestSnapshot_FillsASmallerCache(t *testing.T) {
	skipUnderRace(t)
	large, small := tiny(16, 1024, 2048), tiny(16, 1024, 64)
	c := mustCache(t, large)
	const n = 120_000
	fillCache(t, c, 0, n, 200)
	_, path := snapshotOf(t, c)
	b := readFile(t, path)
	var lens, newest [2]int
	for i, r := range []io.Reader{bytes.NewReader(b), io.MultiReader(bytes.NewReader(b))} {
		d := mustCache(t, small)
		_, err := d.ReadSnapshot(r)
		require.NoError(t, err)
		require.NoError(t, d.validate())
		lens[i] = d.Len()
		for k := range d.Keys() {
			newest[i] = max(newest[i], int(binary.LittleEndian.Uint64(k)))
		}
	}
	t.Logf("%d entries of a file, %d of a stream", lens[0], lens[1])
	require.Greater(t, lens[0]*10, lens[1]*9)
	require.Greater(t, newest[0], n*9/10)
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
		func(context.Context, []byte) ([]byte, time.Duration, error) { return nil, 0, ErrAbsent })
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
		func(context.Context, []byte) ([]byte, time.Duration, error) {
			return nil, 0, errors.New("asked")
		})
	require.ErrorIs(t, err, ErrAbsent)

	// A cache that reads it an hour later.
	b := readFile(t, path)
	e := mustCache(t, defaultGeometry(minMaxBytes))
	late := testhook.RestoreAt(e, time.Now().Add(time.Hour))
	s, err := snapshot.Scan(bytes.NewReader(b), int64(len(b)), false)
	require.NoError(t, err)
	restore := func() func(*snapshot.Ref, []byte) error { return late }
	require.NoError(t, s.Load(1, 1<<30, 1<<30, restore))
	require.Equal(t, 3, e.Len(), "never, far, and the one that is none")
}

// A clock that was set back does not make lives longer.
func TestSnapshot_ClockSetBack(t *testing.T) {
	c := mustCache(t, defaultGeometry(minMaxBytes))
	require.NoError(t, c.SetWithTTL([]byte("k"), nil, time.Hour))
	s := testhook.Saver(t.Context(), c, snapshot.AtOnce)
	s.Header.Saved = time.Now().Add(100 * time.Hour) // the wall clock when it was saved
	clock := c.shared.Wall(s.Header.Saved)
	s.Step = func(out *snapshot.Worker) snapshot.Step {
		return testhook.WalkerOf(c, clock, out, nil).Part
	}
	var b bytes.Buffer
	s.Stream = &b
	require.NoError(t, s.Run(1))
	d := mustCache(t, defaultGeometry(minMaxBytes))
	_, err := d.ReadSnapshot(&b)
	require.NoError(t, err)
	left, ok := d.TTL([]byte("k"))
	require.True(t, ok)
	require.LessOrEqual(t, left, time.Hour)
}

// The random operations of the model test go on with a cache that was saved and loaded
// again, into the same shape and others.
func TestSnapshot_ModelGoesOn(t *testing.T) {
	for i, mc := range modelCases() {
		if raceEnabled && i%8 != 0 || i%3 != 0 && !*longRun {
			continue
		}
		if _, bad := mc.g.compressor.(*badCompressor); bad {
			continue // what it damages is there and not there
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
				_, err := r.c.WriteSnapshot(&b)
				require.NoError(t, err)
				d := mustCache(t, r.g)
				if r.bound != r.g.maxBytes {
					require.True(t, d.resize(r.bound))
				}
				_, err = d.ReadSnapshot(&b)
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

// A writer that takes no more ends WriteSnapshot with its error.
func TestSnapshot_WriterFails(t *testing.T) {
	c := mixedCache(t, defaultGeometry(minMaxBytes))
	full := errors.New("full")
	n, err := c.WriteSnapshot(&limitedWriter{left: 100_000, err: full})
	require.ErrorIs(t, err, full)
	require.EqualValues(t, 100_000, n)
	_, err = c.WriteSnapshot(&limitedWriter{left: 100_000})
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
				assert.NoError(t, c.Save(t.Context(), path, SaveOptions{Concurrency: 3}))
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

// A long record that is packed while it is copied in parts is saved as it was set.
func TestSnapshot_LongRecordIsPackedInBetween(t *testing.T) {
	skipUnderRace(t)
	g := withCold(tiny(1, 16<<10, 128), flateCompressor{})
	g.byHand = true
	p := &packedCache{Cache: mustCache(t, g), size: 1000}
	for range 3000 {
		p.fill(t)
		p.compressAll()
	}
	v := text(1, chunk.MaxSize) // as long as one that is copied in parts
	require.NoError(t, p.Set(packedKey, v))
	p.queue(t, packedKey)
	var b bytes.Buffer
	s, packed := testhook.Saver(t.Context(), p.Cache, snapshot.ColdestFirst), false
	s.Stream = &b
	s.Step = func(out *snapshot.Worker) snapshot.Step {
		return testhook.WalkerOf(p.Cache, p.shared.Wall(time.Now()), out, func() {
			p.compressAll()
			kind, _ := p.stored(packedKey)
			packed = kind == record.Packed
		}).Part
	}
	require.NoError(t, s.Run(1))
	require.True(t, packed, "the test proves nothing")
	e := entriesOf(t, b.Bytes())[string(packedKey)]
	require.Equal(t, 1, e.times)
	require.True(t, string(v) == e.value, "%d bytes instead of %d", len(e.value), len(v))
}
