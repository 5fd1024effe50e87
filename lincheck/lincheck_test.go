package lincheck

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/compress/s2"
)

var (
	runTime = flag.Duration("lincheck.time", 6*time.Second,
		"how long random histories are made and checked")
	runSeed = flag.Uint64("lincheck.seed", 1, "seed of the first history")
)

// store is the part of a cache that is checked.
type store interface {
	Set(k, v []byte) error
	Get(dst, k []byte) []byte
	HasGet(dst, k []byte) ([]byte, bool)
	Has(k []byte) bool
	GetWithTTL(dst, k []byte) ([]byte, time.Duration, bool)
	GetBatch(dst []byte, keys, vals [][]byte) ([]byte, int)
	Del(k []byte) bool
	SetIfAbsent(dst, k, v []byte, ttl time.Duration) ([]byte, bool, error)
	SetIfChanged(k, v []byte) (bool, error)
	CompareAndSwap(k, old, new []byte) (bool, error)
	update(k []byte, fn func(old []byte, ok bool) []byte) error
	GetAndDel(dst, k []byte) ([]byte, bool)
	GetOrLoad(ctx context.Context, dst, k []byte,
		load ringcache.LoadFunc[[]byte, []byte]) ([]byte, error)
	GetOrLoadBatch(ctx context.Context, dst []byte, keys, vals [][]byte,
		load ringcache.BatchLoadFunc[[]byte, []byte]) ([]byte, int, error)
}

// real is a cache as a store.
type real struct{ *ringcache.Cache }

func (r real) update(k []byte, fn func(old []byte, ok bool) []byte) error {
	return r.Update(k, func(e *ringcache.Entry[[]byte]) {
		if v := fn(e.Value, e.Present); rand.IntN(2) == 0 {
			e.Set(v)
		} else {
			e.SetWithTTL(v, time.Hour)
		}
	})
}

const (
	clients      = 4
	keysAtOnce   = 3
	opsPerClient = 24
)

// A cache with values of all sizes: some reads look into two places, by the lock.
func TestRingcache_AllSizes(t *testing.T) {
	check := checked{large: true}
	check.run(t, ringcache.New(32<<20))
}

// The same for a cache whose entries lie in a file.
func TestRingcache_InFile(t *testing.T) {
	c, err := ringcache.NewWithOptions(ringcache.Options{
		MaxBytes: 32 << 20, File: filepath.Join(t.TempDir(), "cache"),
	})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	check := checked{large: true}
	check.run(t, c)
}

// A cache of small values, whose index has many groups and is full: all reads go by the
// reader that takes no lock. Statistics do not tell, so the runtime has to: a lookup
// that takes a bucket's lock is met by others who want it, and shows in the profile of
// mutexes. (TestConcurrent_HistoriesWhereNothingIsDropped of the library counts them.)
func TestRingcache_SmallValues(t *testing.T) {
	c, err := ringcache.NewWithOptions(ringcache.Options{
		MaxBytes: 32 << 20, ExpectedEntries: entries,
	})
	if err != nil {
		t.Fatal(err)
	}
	value := make([]byte, 60)
	for n := range uint64(2 * entries) { // until it is full
		_ = c.Set(binary.LittleEndian.AppendUint64([]byte("fill"), n), value)
	}
	defer runtime.SetMutexProfileFraction(runtime.SetMutexProfileFraction(1))
	lookups, sets := contended("lookup"), contended("set")
	var check checked
	check.run(t, c)
	lookups, sets = contended("lookup")-lookups, contended("set")-sets
	t.Logf("%d waits for lookups with the lock, %d for writes", lookups, sets)
	// Were all lookups to take it, others would wait for them half as often as for the
	// writes, or more. Otherwise it is a sixth.
	if lookups > sets/3 && lookups > 100 {
		t.Errorf("others waited %d times for lookups, and %d times for writes", lookups, sets)
	}
	var s ringcache.Stats
	c.UpdateStats(&s)
	if s.EntriesCount < entries*3/4 {
		t.Errorf("%d entries: the index is small", s.EntriesCount)
	}
}

const entries = 300_000

// A cache with a cold part, to which the keys of many histories come: at times, others are set
// until the policy has dropped them. What a Compressor has damaged that fails at times is a miss.
func TestRingcache_ColdPart(t *testing.T) {
	for name, by := range map[string]*watched{
		"good": {Compressor: s2.New()}, "fails at times": {Compressor: s2.New(), one: 4},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 32 << 20, Compressor: by})
			if err != nil {
				t.Fatal(err)
			}
			others := pusher(c)
			for c.Stats().Compression.Compressed == 0 {
				others()
			}
			check := checked{pause: others}
			check.run(t, c)
			s := c.Stats()
			t.Logf("%d values came back, %d did not", by.unpacked.Load(), s.Compression.Errors)
			if by.unpacked.Load() < 30 || s.Compression.ColdHits == 0 {
				t.Error("too few values came back from the cold part")
			}
			if fails := s.Compression.Errors > 0; fails != (by.one > 0) {
				t.Errorf("some could not be unpacked: %v", fails)
			}
		})
	}
}

// pusher returns a function that sets so many other keys that many entries leave for the cold
// part.
func pusher(c *ringcache.Cache) func() {
	n, value := uint64(0), make([]byte, 1000)
	return func() {
		for range 3000 {
			n++
			_ = c.Set(binary.LittleEndian.AppendUint64([]byte("push"), n), value)
			if n%32 == 0 {
				time.Sleep(time.Microsecond) // the compressor is to keep up
			}
		}
	}
}

// contended returns how often somebody waited for a mutex that was given back by a
// function of the library whose name begins so.
func contended(name string) (n int64) {
	records := make([]runtime.BlockProfileRecord, 10_000)
	found, _ := runtime.MutexProfile(records)
	for _, r := range records[:min(found, len(records))] {
		for frames, more := runtime.CallersFrames(r.Stack()), true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			if strings.Contains(f.Function, "ringcache.(*Cache)."+name) {
				n += r.Count
				break
			}
		}
	}
	return n
}

// checked is a run of many histories.
type checked struct {
	large  bool
	pause  func() // if not nil, it is called now and then, while no client is in a call
	rounds uint32
	sum    seen
}

// run makes and checks histories of c, and closes it.
func (r *checked) run(t *testing.T, c *ringcache.Cache) {
	t.Helper()
	t.Cleanup(func() { _ = c.Close() })
	stop := make(chan struct{})
	var aside sync.WaitGroup
	aside.Add(1)
	go func() {
		defer aside.Done()
		press(c, r.large, stop)
	}()
	for from := time.Now(); time.Since(from) < *runTime/2; {
		r.some(t, c)
	}
	close(stop)
	aside.Wait()
	var s ringcache.Stats
	c.UpdateStats(&s)
	t.Logf("%d histories, %+v, %d entries evicted", r.rounds, r.sum, s.EvictedEntries)
	if r.sum.hits < 1000 || r.sum.misses < 1000 || r.sum.overlaps < 1000 || s.EvictedEntries == 0 {
		t.Error("the run proves too little")
	}
}

// some makes and checks a history, or many that share their pauses.
func (r *checked) some(t *testing.T, c *ringcache.Cache) {
	t.Helper()
	all, parts := make([]*recorder, 1), 1
	if r.pause != nil {
		all, parts = make([]*recorder, 100), opsPerClient/6
	}
	for i := range all {
		all[i] = newRecorder(real{c}, *runSeed+uint64(r.rounds), r.rounds, r.large)
		r.rounds++
	}
	for part := range parts {
		if part > 0 {
			r.pause()
		}
		for _, one := range all {
			if err := one.run(opsPerClient / parts); err != nil {
				t.Fatalf("seed %d: %v", *runSeed+uint64(one.round), err)
			}
		}
	}
	for _, one := range all {
		history := one.history()
		r.sum.add(history)
		if !check(t, history) {
			t.Fatalf("seed %d: the history is not linearizable", *runSeed+uint64(one.round))
		}
	}
}

// seen is what histories went through.
type seen struct{ hits, misses, overlaps int }

// add counts a history: its reads, and its calls that ran beside a change of
// the same key by another client.
func (s *seen) add(history []porcupine.Operation) {
	for _, op := range history {
		if op.Input.(input).kind == read {
			if op.Output.(output).found {
				s.hits++
			} else {
				s.misses++
			}
		}
		for _, other := range history {
			in := other.Input.(input)
			changes := in.kind != read && in.kind != has
			if changes && other.ClientId != op.ClientId && in.key == op.Input.(input).key &&
				other.Call < op.Return && op.Call < other.Return {
				s.overlaps++
				break
			}
		}
	}
}

// check reports whether the history is linearizable, and writes a picture of it
// if it is not.
func check(t *testing.T, history []porcupine.Operation) bool {
	t.Helper()
	result, info := porcupine.CheckOperationsVerbose(cacheModel, history, 20*time.Second)
	if result == porcupine.Ok {
		return true
	}
	t.Logf("the checker says %s", result)
	name := strings.ReplaceAll(t.Name(), "/", "_") + ".html"
	path := filepath.Join(os.TempDir(), "ringcache-lincheck-"+name)
	if err := porcupine.VisualizePath(cacheModel, info, path); err != nil {
		t.Logf("draw the history: %v", err)
	} else {
		t.Logf("the history is drawn in %s", path)
	}
	return false
}
