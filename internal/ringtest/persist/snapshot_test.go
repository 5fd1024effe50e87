package persist

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

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/policy"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringtest"
	"github.com/ringcache/ringcache/internal/snapshot"
	"github.com/ringcache/ringcache/internal/testhook"
)

func TestSnapshot_BringsEverythingBack(t *testing.T) {
	t.Parallel()
	for _, kind := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		for _, workers := range []int{-1, 1, 2, 3} {
			t.Run(fmt.Sprintf("%v/%d", kind, workers), func(t *testing.T) {
				g := ringtest.Default(ringtest.MinBytes)
				g.Policy, g.TTL, g.RefreshAhead = kind, time.Hour, time.Second
				c := ringtest.MixedCache(t, g)
				require.NotZero(t, ringtest.Shared(c).Arrivals.Held.Load(), "no large entries")
				path := filepath.Join(ringtest.DirInMemory(t), "new", "folder", "snapshot")
				o := ringcache.SaveOptions{Concurrency: workers}
				require.NoError(t, c.Save(t.Context(), path, o))
				d := ringtest.MustLoad(t, path)
				ringtest.RequireSame(t, ringtest.Contents(t, c), ringtest.Contents(t, d), true)
				require.Equal(t, kind, ringcache.Policy(ringtest.Shared(d).Policy))
				s := ringtest.StatsOf(d)
				require.EqualValues(t, c.Len(), s.RestoredEntries)
				require.EqualValues(t, ringtest.MinBytes, s.MaxBytesSize)
				require.Zero(t, s.SetCalls+s.GetCalls+s.EvictedEntries)
				require.Empty(t, ringtest.Litter(t, filepath.Dir(path)))
				h := headerOf(t, d)
				require.Equal(t, []time.Duration{g.TTL, g.RefreshAhead}, []time.Duration{h.TTL, h.RefreshAhead})
			})
		}
	}
}

// headerOf returns the header of a snapshot of the cache, which has its settings.
func headerOf(t testing.TB, c *ringcache.Cache) snapshot.Header {
	t.Helper()
	b, _ := ringtest.SnapshotOf(t, c)
	h, err := snapshot.ParseHeader(b, 0)
	require.NoError(t, err)
	return h
}

// A stream says the same, to caches of other shapes too.
func TestSnapshot_StreamsIntoAnyShape(t *testing.T) {
	c := ringtest.MixedCache(t, ringtest.Default(ringtest.MinBytes))
	var b bytes.Buffer
	n, err := c.WriteSnapshot(&b)
	require.NoError(t, err)
	require.EqualValues(t, b.Len(), n)
	for _, g := range []ringtest.Shape{
		ringtest.Tiny(1, 4096, 8000), ringtest.Tiny(2, 1024, 17_000), ringtest.Tiny(256, 4096, 40),
		ringtest.Default(128 << 20),
	} {
		d := ringtest.MustCache(t, g)
		r := io.MultiReader(bytes.NewReader(b.Bytes()), bytes.NewReader([]byte("rest")))
		m, err := d.ReadSnapshot(r)
		require.NoError(t, err)
		require.Equal(t, n, m)
		rest, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, "rest", string(rest), "it read on behind the end")
		ringtest.RequireSame(t, ringtest.Contents(t, c), ringtest.Contents(t, d), false)

		e := ringtest.MustCache(t, g)
		f := bytes.NewReader(append([]byte("before"), append(b.Bytes(), "behind"...)...))
		_, err = f.Seek(6, io.SeekStart)
		require.NoError(t, err)
		m, err = e.ReadSnapshot(f)
		require.NoError(t, err)
		require.Equal(t, n, m)
		require.Equal(t, 6, f.Len(), "behind the snapshot")
		ringtest.RequireSame(t, ringtest.Contents(t, c), ringtest.Contents(t, e), false)
	}
}

// Age within a ring comes back.
func TestSnapshot_OrderComesBack(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	for _, kind := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		g := ringtest.Default(ringtest.MinBytes / 2)
		g.Policy = kind
		c := ringtest.MustCache(t, g)
		ringtest.FillCache(t, c, 0, 40_000, 500)
		before := ringtest.Contents(t, c)
		_, path := ringtest.SnapshotOf(t, c)
		check := func(name string, after map[string]ringtest.Kept, most float64) {
			apart, n := 0.0, 0
			for k, e := range after {
				require.Equal(t, before[k].Ring, e.Ring)
				if e.Ring == policy.Main {
					apart += max(before[k].Age-e.Age, e.Age-before[k].Age)
					n++
				}
			}
			require.Greater(t, n, 10_000)
			t.Logf("%v, %s: %.3f apart", kind, name, apart/float64(n))
			require.Less(t, apart/float64(n), most, "%s: at random it is 0.33", name)
		}
		check("file", ringtest.Contents(t, ringtest.MustLoad(t, path)), 0.1)
		var b bytes.Buffer
		_, err := c.WriteSnapshot(&b)
		require.NoError(t, err)
		d := ringtest.MustCache(t, g)
		_, err = d.ReadSnapshot(&b)
		require.NoError(t, err)
		check("stream", ringtest.Contents(t, d), 0.15)
	}
}

// The hits of a trace that goes on with the loaded cache are those of one that goes on
// with the saved one.
func TestSnapshot_HitsGoOn(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	for _, kind := range []ringcache.Policy{ringcache.PolicyS3FIFO, ringcache.PolicyFIFO} {
		g := ringtest.Default(ringtest.MinBytes / 2)
		g.Policy = kind
		c := ringtest.MustCache(t, g)
		ids := rand.NewZipf(ringtest.NewRand(7), 1.01, 10, 3_000_000/2)
		replay := func(c *ringcache.Cache, keys []uint64) (hits int) {
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
		trace := make([]uint64, 1_500_000/2)
		for i := range trace {
			trace[i] = ids.Uint64()
		}
		warm, rest := trace[:1_300_000/2], trace[1_300_000/2:]
		replay(c, warm)
		_, path := ringtest.SnapshotOf(t, c)
		loaded, cold := replay(ringtest.MustLoad(t, path), rest), replay(ringtest.MustCache(t, g), rest)
		went := replay(c, rest)
		t.Logf("%v: %d hits went on, %d loaded, %d cold", kind, went, loaded, cold)
		require.Greater(t, float64(loaded), 0.99*float64(went))
		require.Less(t, float64(cold), 0.97*float64(went), "the test proves nothing")
	}
}

// Into a smaller cache the hottest come: what was read twice, of what was read never.
func TestSnapshot_TheHottestFit(t *testing.T) {
	t.Parallel()
	ringtest.SkipUnderRace(t)
	const entries, reads, smaller = 175_000, 25_000, 8 << 20
	c := ringtest.MustCache(t, ringtest.Default(4*smaller))
	ringtest.FillCache(t, c, 0, entries, 100)
	key := make([]byte, 8)
	for id := range uint64(reads) {
		binary.LittleEndian.PutUint64(key, id*7)
		c.Has(key)
		c.Has(key)
	}
	require.Equal(t, entries, c.Len())
	_, path := ringtest.SnapshotOf(t, c)
	var b bytes.Buffer
	_, err := c.WriteSnapshot(&b)
	require.NoError(t, err)
	d, report := ringtest.MustLoadInto(t, path, ringcache.Options{MaxBytes: smaller})
	require.NoError(t, report.Err)
	e := ringtest.MustCache(t, ringtest.Default(smaller))
	_, err = e.ReadSnapshot(&b)
	require.NoError(t, err)
	for i, d := range []*ringcache.Cache{d, e} {
		require.NoError(t, ringtest.Validate(d))
		require.Greater(t, d.Len(), entries*3/14)
		hot := 0
		for id := range uint64(reads) {
			binary.LittleEndian.PutUint64(key, id*7)
			if d.Has(key) {
				hot++
			}
		}
		t.Logf("%d of %d that were read are there", hot, reads)
		require.Greater(t, hot, []int{reads * 98 / 100, reads * 75 / 100}[i])
	}
}

// A snapshot that is much larger than the cache which reads it fills that: about as many entries
// come from a file as from a stream, and they are as new.
func TestSnapshot_FillsASmallerCache(t *testing.T) {
	ringtest.SkipUnderRace(t)
	large, small := ringtest.Tiny(16, 1024, 2048), ringtest.Tiny(16, 1024, 64)
	c := ringtest.MustCache(t, large)
	const n = 120_000
	ringtest.FillCache(t, c, 0, n, 200)
	_, path := ringtest.SnapshotOf(t, c)
	b := ringtest.ReadFile(t, path)
	var lens, newest [2]int
	for i, r := range []io.Reader{bytes.NewReader(b), io.MultiReader(bytes.NewReader(b))} {
		d := ringtest.MustCache(t, small)
		_, err := d.ReadSnapshot(r)
		require.NoError(t, err)
		require.NoError(t, ringtest.Validate(d))
		lens[i] = d.Len()
		for k := range d.Keys() {
			newest[i] = max(newest[i], int(binary.LittleEndian.Uint64(k)))
		}
	}
	t.Logf("%d entries of a file, %d of a stream", lens[0], lens[1])
	require.Greater(t, lens[0]*10, lens[1]*9)
	require.Greater(t, newest[0], n*9/10)
}

// A deadline that goes from one cache to another, and back, stays where it is.
func TestSnapshot_DeadlineStays(t *testing.T) {
	const ways, ttl = 40, time.Hour
	m := ringtest.NewFakeMachine()
	var caches [2]*ringcache.Cache
	for i := range caches {
		g := ringtest.Default(ringtest.MinBytes)
		born := clock.Born(m.Wall)
		g.Machine, g.Elapsed = m.Machine(), func() time.Duration { return m.Wall.Sub(born) }
		caches[i] = ringtest.MustCache(t, g)
		m.Pass(clock.Tick / 3) // else the clocks begin at the same moment
	}
	k, start := []byte("k"), m.RealTime
	require.NoError(t, caches[0].SetWithTTL(k, nil, ttl))
	for i := range ways {
		from, to := caches[i%2], caches[1-i%2]
		b, _ := ringtest.SnapshotOf(t, from)
		require.True(t, from.Del(k))
		m.Pass(clock.Tick / 7)
		_, err := to.ReadSnapshot(bytes.NewReader(b))
		require.NoError(t, err)
	}
	left, ok := caches[ways%2].TTL(k)
	require.True(t, ok)
	passed := m.RealTime - start
	require.LessOrEqual(t, left+passed, ttl)
	require.Greater(t, left+passed, ttl-2*clock.Tick)
}

// The rest of the time to live comes back, by the wall clock.
func TestSnapshot_LivesGoOn(t *testing.T) {
	var at time.Duration
	g := ringtest.Default(ringtest.MinBytes)
	g.Elapsed = func() time.Duration { return at }
	at = 1000 * time.Hour // how old the cache is does not matter
	c := ringtest.MustCache(t, g)
	for _, s := range []int{1, 60, 3600} {
		ttl := time.Duration(s) * time.Second
		require.NoError(t, c.SetWithTTL([]byte(ttl.String()), nil, ttl))
	}
	require.NoError(t, c.SetWithTTL([]byte("never"), nil, 0))
	require.NoError(t, c.SetWithTTL([]byte("far"), nil, 12*365*24*time.Hour))
	_, err := c.GetOrLoad(t.Context(), nil, []byte("none"),
		func(context.Context, []byte) ([]byte, time.Duration, error) {
			return nil, 0, ringcache.ErrAbsent
		})
	require.ErrorIs(t, err, ringcache.ErrAbsent)
	at += 2 * time.Second
	_, path := ringtest.SnapshotOf(t, c)
	d := ringtest.MustLoad(t, path)
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
	require.ErrorIs(t, err, ringcache.ErrAbsent)

	// A cache that reads it an hour later, on another machine.
	later := ringtest.NewFakeMachine()
	later.Wall = time.Now().Add(time.Hour)
	g = ringtest.Default(ringtest.MinBytes)
	g.Machine = later.Machine()
	e := ringtest.MustCache(t, g)
	_, err = e.ReadSnapshot(bytes.NewReader(ringtest.ReadFile(t, path)))
	require.NoError(t, err)
	require.Equal(t, 3, e.Len(), "never, far, and the one that is none")
}

// A clock that was set back does not make lives longer.
func TestSnapshot_ClockSetBack(t *testing.T) {
	c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	require.NoError(t, c.SetWithTTL([]byte("k"), nil, time.Hour))
	s, end := testhook.Saver(t.Context(), c, nil)
	defer end()
	s.Header.Mark.At.Wall = time.Now().Add(100 * time.Hour) // the wall clock when it was saved
	var b bytes.Buffer
	s.To = &b
	require.NoError(t, s.Run(1))
	d := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	_, err := d.ReadSnapshot(&b)
	require.NoError(t, err)
	require.False(t, d.Has([]byte("k")))
}

// The random operations of the model test go on with a cache that was saved and loaded
// again, into the same shape and others.
func TestSnapshot_ModelGoesOn(t *testing.T) {
	for i, mc := range ringtest.ModelCases() {
		if ringtest.RaceEnabled && i%8 != 0 || i%3 != 0 && !*ringtest.LongRun {
			continue
		}
		if _, bad := mc.G.Compressor.(*ringtest.BadCompressor); bad {
			continue // what it damages is there and not there
		}
		t.Run(ringtest.Describe(mc.G), func(t *testing.T) {
			t.Parallel()
			r := ringtest.NewRunner(t, mc.G, false)
			rnd := ringtest.NewRand(uint64(i))
			data := make([]byte, ringtest.OpSize*400)
			for range min(6*ringtest.Rounds(), 24) {
				ringtest.FillRandom(rnd, data)
				if err := r.Run(data); err != nil {
					require.NoError(t, err, r.Trail())
				}
				var b bytes.Buffer
				_, err := r.C.WriteSnapshot(&b)
				require.NoError(t, err)
				d := ringtest.MustCache(t, r.G)
				if r.Bound != r.G.MaxBytes {
					require.True(t, ringtest.Resize(d, r.Bound))
				}
				_, err = d.ReadSnapshot(&b)
				require.NoError(t, err)
				require.NoError(t, ringtest.Validate(d))
				was, is := ringtest.Contents(t, r.C), ringtest.Contents(t, d)
				for k, e := range is {
					require.True(t, was[k].Value == e.Value, "the value of key %x", k)
					require.Equal(t, was[k].Negative, e.Negative)
				}
				for id, at := range r.Deadlines { // real time goes on meanwhile
					if e, ok := is[string(r.KeyOf(id))]; ok && e.Expiry != 0 && !e.Negative {
						now := time.Duration(e.Expiry-1) * clock.Tick
						require.LessOrEqual(t, now, at)
						require.Greater(t, now, at-10*time.Second)
						r.Deadlines[id], r.Lasts[id] = now, now
						if mc.G.ExpireAfterAccess != 0 {
							r.Lasts[id] = time.Duration(max(int64(e.Last)-1, 0)) * clock.Tick
						}
					}
				}
				r.C = d
			}
		})
	}
}

// A writer that takes no more ends WriteSnapshot with its error.
func TestSnapshot_WriterFails(t *testing.T) {
	c := ringtest.MixedCache(t, ringtest.Default(ringtest.MinBytes))
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
	c := ringtest.MustCache(t, ringtest.Default(ringtest.MinBytes))
	ringtest.FillCache(t, c, 0, 20_000, 100)
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
				k := ringtest.TrafficKey(nil, id%5000|uint32(i)<<20)
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
				assert.NoError(t, c.Save(t.Context(), path, ringcache.SaveOptions{Concurrency: 3}))
				d, err := ringcache.LoadFromFile(path)
				if assert.NoError(t, err) {
					assert.GreaterOrEqual(t, d.Len(), 20_000)
					ringtest.CloseCache(t, d)
				}
			}
		}()
	}
	wg.Wait()
	close(stop)
	setters.Wait()
	require.Empty(t, ringtest.Litter(t, filepath.Dir(path)))
}

// A long record that is packed while it is copied in parts is saved as it was set.
func TestSnapshot_LongRecordIsPackedInBetween(t *testing.T) {
	ringtest.SkipUnderRace(t)
	g := ringtest.WithCold(ringtest.Tiny(1, 16<<10, 128), ringtest.FlateCompressor{})
	g.ByHand = true
	p := &ringtest.PackedCache{Cache: ringtest.MustCache(t, g), Size: 1000}
	p.FillPacked(t, 3000)
	v := ringtest.Text(1, chunk.MaxSize+1) // as long as one that is copied in parts
	require.NoError(t, p.Set(ringtest.PackedKey, v))
	p.Queue(t, ringtest.PackedKey)
	var b bytes.Buffer
	packed := false
	s, end := testhook.Saver(t.Context(), p.Cache, func() {
		ringtest.CompressAll(p.Cache)
		kind, _ := ringtest.Stored(p.Cache, ringtest.PackedKey)
		packed = kind == record.Packed
	})
	defer end()
	s.To = &b
	require.NoError(t, s.Run(1))
	require.True(t, packed, "the test proves nothing")
	e := entriesOf(t, b.Bytes())[string(ringtest.PackedKey)]
	require.NotZero(t, e.times)
	require.True(t, string(v) == e.value, "%d bytes instead of %d", len(e.value), len(v))
}
