package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringrueidis"
)

const (
	versionSize = 12 // digits at the start of a value
	ttl         = time.Minute
	skew        = 1.2 // of the Zipf distribution of reads and writes
	doneMark    = "done"
)

// connect returns a client with a near cache in cache; with none if cache is nil.
func connect(addr string, cache *ringcache.Cache) (rueidis.Client, error) {
	o := rueidis.ClientOption{
		InitAddress:       []string{addr},
		ForceSingleClient: true,
		PipelineMultiplex: -1, // one connection, so one PING is enough in lookForStale
	}
	if cache == nil {
		o.DisableCache = true
	} else {
		o.NewCacheStoreFn = ringrueidis.NewStore(cache)
	}
	return rueidis.NewClient(o)
}

// result is the output of a process at the end of its run.
type result struct {
	Reads  int           `json:"reads"`
	Hits   int           `json:"hits"` // reads that needed no round trip
	Writes int           `json:"writes"`
	P50    time.Duration `json:"p50"`
	P99    time.Duration `json:"p99"`
	Stale  int           `json:"stale"` // keys that still had an old value at the end
}

// process reads keys, and optionally writes some, until its time is up.
type process struct {
	config
	client rueidis.Client
	result result
	times  []time.Duration
}

// runProcess runs, reports that it has finished, waits for an answer, and then looks for stale
// values and prints its result.
func runProcess(cfg config, in io.Reader, out io.Writer) error {
	var cache *ringcache.Cache
	if cfg.near {
		cache = ringcache.New(32 << 20)
		defer cache.Close()
	}
	client, err := connect(cfg.redis, cache)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", cfg.redis, err)
	}
	defer client.Close()
	p := &process{config: cfg, client: client}
	if err := p.work(); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, doneMark); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	if err := p.lookForStale(); err != nil {
		return fmt.Errorf("look for stale values: %w", err)
	}
	return json.NewEncoder(out).Encode(p.result)
}

func (p *process) work() error {
	ctx, cancel := context.WithTimeout(context.Background(), p.span)
	defer cancel()
	var wg sync.WaitGroup
	var writeErr error
	if p.role == "writer" {
		wg.Go(func() { writeErr = p.write(ctx) })
	}
	err := p.read(ctx)
	wg.Wait()
	if err == nil {
		err = writeErr
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.role, err)
	}
	slices.Sort(p.times)
	p.result.P50 = p.times[len(p.times)/2]
	p.result.P99 = p.times[len(p.times)*99/100]
	return nil
}

func (p *process) zipf() *rand.Zipf {
	rnd := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	return rand.NewZipf(rnd, skew, 1, uint64(p.keys-1))
}

func key(i int) string { return "nearcache:" + strconv.Itoa(i) }

func (p *process) get(i int) rueidis.RedisResult {
	get := p.client.B().Get().Key(key(i)).Cache()
	return p.client.DoCache(context.Background(), get, ttl)
}

func (p *process) read(ctx context.Context) error {
	keys := p.zipf()
	for ctx.Err() == nil {
		i := int(keys.Uint64())
		start := time.Now()
		res := p.get(i)
		p.times = append(p.times, time.Since(start))
		if err := res.Error(); err != nil {
			return fmt.Errorf("read: %w", err)
		}
		p.result.Reads++
		if res.IsCacheHit() {
			p.result.Hits++
		}
	}
	return nil
}

func (p *process) write(ctx context.Context) error {
	keys := p.zipf()
	tick := time.NewTicker(time.Second / time.Duration(p.writes))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		p.result.Writes++
		v := value(p.result.Writes, p.valueSize)
		set := p.client.B().Set().Key(key(int(keys.Uint64()))).Value(v).Build()
		if err := p.client.Do(context.Background(), set).Error(); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
}

// value returns the value of a version.
func value(version, size int) string {
	return fmt.Sprintf("%0*d", versionSize, version) + strings.Repeat("v", size-versionSize)
}

// lookForStale reads every key both through the near cache and directly. All writes have been
// acknowledged, so after one round trip on the connection no old value may be returned.
func (p *process) lookForStale() error {
	ctx := context.Background()
	if err := p.client.Do(ctx, p.client.B().Ping().Build()).Error(); err != nil {
		return err
	}
	for i := range p.keys {
		near, err := p.get(i).ToString()
		if err != nil {
			return err
		}
		now, err := p.client.Do(ctx, p.client.B().Get().Key(key(i)).Build()).ToString()
		if err != nil {
			return err
		}
		if near != now {
			p.result.Stale++
		}
	}
	return nil
}
