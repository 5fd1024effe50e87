package nearcompare

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/ringcache/ringcache"
)

const (
	digits  = 8 // at the start of a value: the index of another key
	keySize = 16
	batch   = 1000
)

// filled is what a child says when its cache is full, round after each turn.
type filled struct {
	HeapBytes float64 `json:"heap_bytes"` // an entry
	GC        float64 `json:"gc_s"`       // median time of a runtime.GC
	EmptyGC   float64 `json:"empty_gc_s"` // before the cache was filled
}

type round map[string]float64 // ns of a hit, by load

// loads are the ways to read, in the order of the table.
var loads = []string{"uniform", "zipf", "dependent"}

// reader is a client with its cache, and the keys. It has no pointers but a few, so that
// the collector has nothing to do but for the cache.
type reader struct {
	client Client
	keys   string // all of them, one behind the other
	n      int
}

func (r *reader) key(i int) string { return r.keys[i*keySize : (i+1)*keySize] }

// batch returns some keys from the first one on.
func (r *reader) batch(first int) (keys []string) {
	for i := first; i < min(first+batch, r.n); i++ {
		keys = append(keys, r.key(i))
	}
	return keys
}

// allKeys returns n keys, one behind the other.
func allKeys(n int) string {
	b := make([]byte, 0, n*keySize)
	for i := range n {
		b = fmt.Appendf(b, "near:%0*d", keySize-len("near:"), i)
	}
	return string(b)
}

// runChild fills a cache, and then takes a turn for each line of in.
func runChild(t Target, cfg config, in io.Reader, out io.Writer) error {
	var cache *ringcache.Cache
	if cfg.child == names[1] {
		cache = ringcache.New(max(64<<20, cfg.entries*(cfg.valueSize+keySize+100)*3/2))
		defer cache.Close()
	}
	client, err := t.Connect(cfg.addr, cache)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", cfg.addr, err)
	}
	defer client.Close()
	r := &reader{client: client, keys: allKeys(cfg.entries), n: cfg.entries}
	result, err := r.fill()
	if err != nil {
		return err
	}
	enc := json.NewEncoder(out)
	if err := enc.Encode(result); err != nil {
		return err
	}
	for turn := bufio.NewScanner(in); turn.Scan(); {
		times, err := r.round(cfg.ops)
		if err != nil {
			return err
		}
		if err := enc.Encode(times); err != nil {
			return err
		}
	}
	return nil
}

// fill reads all keys once.
func (r *reader) fill() (filled, error) {
	f := filled{EmptyGC: gcTime()}
	before := heap()
	for i := 0; i < r.n; i += batch {
		if err := r.client.Fill(r.batch(i)); err != nil {
			return f, fmt.Errorf("fill the cache: %w", err)
		}
	}
	f.GC = gcTime()
	f.HeapBytes = (heap() - before) / float64(r.n)
	return f, nil
}

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func gcTime() float64 {
	runtime.GC() // what was garbage before is not counted
	var times []float64
	for range 5 {
		start := time.Now()
		runtime.GC()
		times = append(times, time.Since(start).Seconds())
	}
	return median(times)
}

func median(a []float64) float64 {
	slices.Sort(a)
	return (a[(len(a)-1)/2] + a[len(a)/2]) / 2
}

// round measures hits of each load.
func (r *reader) round(ops int) (round, error) {
	rnd := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rnd, 1.1, 1, uint64(r.n-1))
	next := map[string]func(value string) int{
		"uniform": func(string) int { return rnd.IntN(r.n) },
		"zipf":    func(string) int { return int(zipf.Uint64()) },
		"dependent": func(value string) int {
			i, _ := strconv.Atoi(value[:digits])
			return i
		},
	}
	times := round{}
	for _, load := range loads {
		t, err := r.measure(ops, next[load])
		if err != nil {
			return nil, fmt.Errorf("measure hits, %s: %w", load, err)
		}
		times[load] = t
	}
	return times, nil
}

// measure returns the ns of a hit, choosing the next key included.
func (r *reader) measure(ops int, next func(value string) int) (float64, error) {
	value := "00000000"
	misses := 0
	start := time.Now()
	for range ops {
		var hit bool
		var err error
		if value, hit, err = r.client.Get(r.key(next(value))); err != nil {
			return 0, err
		}
		if !hit {
			misses++
		}
	}
	t := float64(time.Since(start).Nanoseconds()) / float64(ops)
	if misses > 0 {
		return 0, fmt.Errorf("%d of %d reads were misses, so the time is not that of hits", misses, ops)
	}
	return t, nil
}
