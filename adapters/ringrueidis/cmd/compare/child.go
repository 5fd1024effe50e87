package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringrueidis"
)

const (
	digits  = 8 // at the start of a value: the index of another key
	keySize = 16
	batch   = 1000
	ttl     = 24 * time.Hour
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
	client rueidis.Client
	keys   string // all of them, one behind the other
	n      int
}

func (r *reader) key(i int) string { return r.keys[i*keySize : (i+1)*keySize] }

// allKeys returns n keys, one behind the other.
func allKeys(n int) string {
	b := make([]byte, 0, n*keySize)
	for i := range n {
		b = fmt.Appendf(b, "near:%0*d", keySize-len("near:"), i)
	}
	return string(b)
}

// runChild fills a cache, and then takes a turn for each line of in.
func runChild(cfg config, in io.Reader, out io.Writer) error {
	o := rueidis.ClientOption{
		InitAddress:       []string{cfg.addr},
		ForceSingleClient: true,
		PipelineMultiplex: -1, // one connection
		CacheSizeEachConn: 64 << 30,
	}
	if cfg.child == "ringcache" {
		cache := ringcache.New(max(64<<20, cfg.entries*(cfg.valueSize+keySize+100)*3/2))
		defer cache.Close()
		o.NewCacheStoreFn = ringrueidis.NewStore(cache)
	}
	client, err := rueidis.NewClient(o)
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
	multi := make([]rueidis.CacheableTTL, 0, batch)
	for i := 0; i < r.n; i += len(multi) {
		multi = multi[:0]
		for j := i; j < min(i+batch, r.n); j++ {
			multi = append(multi, rueidis.CT(r.client.B().Get().Key(r.key(j)).Cache(), ttl))
		}
		for _, res := range r.client.DoMultiCache(context.Background(), multi...) {
			if err := res.Error(); err != nil {
				return f, fmt.Errorf("fill the cache: %w", err)
			}
		}
	}
	multi = nil
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
	ctx := context.Background()
	value := "00000000"
	misses := 0
	start := time.Now()
	for range ops {
		cmd := r.client.B().Get().Key(r.key(next(value))).Cache()
		res := r.client.DoCache(ctx, cmd, ttl)
		if !res.IsCacheHit() {
			misses++
		}
		var err error
		if value, err = res.ToString(); err != nil {
			return 0, err
		}
	}
	t := float64(time.Since(start).Nanoseconds()) / float64(ops)
	if misses > 0 {
		return 0, fmt.Errorf("%d of %d reads were misses, so the time is not that of hits", misses, ops)
	}
	return t, nil
}
