package drive

import (
	"fmt"
	"math/rand"
	"strings"
	"time"

	"github.com/ringcache/ringcache/bench/harness"
	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/suites/client"
)

// Quick is the scale of a smoke test.
var Quick = measure.Scale{Entries: 2000, Duration: 10 * time.Millisecond}

const ratioNote = `A million read-through requests on an empty cache, keys like key:123 with a Zipf
distribution: the probability of a number below 50,000,000 is proportional to
1/(10 + number)^1.0001.
Each round has its own requests, the same for all caches. Values are their keys, or their keys
lengthened to 1,000 bytes. ringcache is given the bytes at which it is full with as many entries of
the mean length as the others may have, but at least its minimum of 256 KB, which holds more of the
shortest entries than 5,000.`

// Names of figures.
const (
	hitShare = "hits, %"
	held     = "entries held at the end"
)

// longValue is the size of the long values.
const longValue = 1000

// ratioCase is a row.
type ratioCase struct{ capacity, valueSize int }

func (c ratioCase) String() string {
	if c.valueSize == 0 {
		return fmt.Sprintf("%d entries", c.capacity)
	}
	return fmt.Sprintf("%d entries of %d bytes", c.capacity, c.valueSize)
}

// Ratio returns the loads that measure hit ratios. If synchronous, otter's policy runs on the
// calling goroutine.
func Ratio(capacities []int, synchronous bool) harness.Group {
	cases := map[string]ratioCase{}
	var loads []string
	for _, valueSize := range []int{0, longValue} {
		for _, n := range capacities {
			c := ratioCase{n, valueSize}
			cases[c.String()] = c
			loads = append(loads, c.String())
		}
	}
	stores := []string{
		client.Ringcache, client.Otter, client.Theine, client.Ristretto, client.GolangLRU,
	}
	return harness.Group{
		Name: "ratio", Note: ratioNote, Metrics: []string{hitShare, held},
		Loads: harness.Rows(loads, stores, func(s harness.Spec) (harness.Metrics, error) {
			return cases[s.Load].replay(s, synchronous)
		}),
	}
}

func (c ratioCase) replay(s harness.Spec, synchronous bool) (harness.Metrics, error) {
	z := zipf{requests: 1_000_000, seed: int64(s.Round), valueSize: c.valueSize}
	if s.Scale.IsSmall() {
		z.requests = 10_000
	}
	cache, err := client.Open(s.Store, client.Options{
		Capacity: c.capacity, KeySize: keySize, ValueSize: max(keySize, c.valueSize),
		Synchronous: synchronous,
	})
	if err != nil {
		return nil, err
	}
	defer cache.Close()
	share, err := z.replay(cache)
	return harness.Metrics{hitShare: 100 * share, held: float64(cache.Len())}, err
}

// keySize is the usual length of a key.
const keySize = len("key:123456")

// zipf is a read-through replay.
type zipf struct {
	requests  int
	seed      int64
	valueSize int // 0: values are their keys; else keys with that many bytes in all
}

// replay returns the share of requests that were hits. A value that is not the one of its key is
// an error.
func (z zipf) replay(c client.Cache) (float64, error) {
	draws := rand.NewZipf(rand.New(rand.NewSource(z.seed)), 1.0001, 10, 50_000_000)
	padding := strings.Repeat("-", z.valueSize)
	var buf []byte
	hits := 0
	for range z.requests {
		key := fmt.Sprintf("key:%d", draws.Uint64())
		value, ok := c.Get(&buf, key)
		if !ok {
			c.Set(key, key+padding[min(len(key), len(padding)):])
			continue
		}
		if !strings.HasPrefix(value, key) || len(value) != max(len(key), z.valueSize) {
			return 0, fmt.Errorf("replay: value of %s is %.40q", key, value)
		}
		hits++
	}
	return float64(hits) / float64(z.requests), nil
}
