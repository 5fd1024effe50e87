package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/bench/payload"
	"github.com/ringcache/ringcache/compress/s2"
)

// What a round does beside its Sets.
const (
	pause    = 200 * time.Microsecond // after measurement.pace Sets
	hotKeys  = 4096                   // are read in turn,
	hotEvery = 4                      // one after so many Sets
	oldEvery = 32                     // Sets between two Gets of a key that was set long ago
	leastOld = 100                    // such Gets are figures, and fewer are none
	hotID    = 1 << 40                // the first hot key
)

// Names of figures.
const (
	entries = "entries"
	packed  = "values packed"
	coldOld = "cold hits, % of old Gets" // a hot key may be found cold too
)

// operations are what is timed: old Gets are of keys that nobody has read, and that are cold if
// there is a compressor.
var operations = []string{"Set", "hot Get", "old Get"}

var quantiles = []float64{50, 99, 99.9}

// rows are the figures in their order.
var rows = func() []string {
	all := []string{entries, packed, coldOld}
	for _, op := range operations {
		for _, q := range quantiles {
			all = append(all, figure(op, q))
		}
	}
	return all
}()

func figure(op string, quantile float64) string { return fmt.Sprintf("%s p%v, ns", op, quantile) }

// filling is a cache that is filled and read, by one goroutine.
type filling struct {
	*measurement
	c       *ringcache.Cache
	content *payload.Payload
	key     [8]byte
	val     []byte
	dst     []byte
	age     uint64 // of old keys, in Sets; 0: there are none yet
	next    uint64 // hot key
	times   map[string]*hdrhistogram.Histogram
}

// round fills a cache several times over, and times what happens in the second half.
func (m *measurement) round(
	ctx context.Context, o *options, p *payload.Payload, on bool,
) (figures, error) {
	runtime.GC() // of the round before
	opts := ringcache.Options{MaxBytes: o.maxMB << 20}
	if on {
		opts.Compressor = slowed{s2.New(), m.slow}
	}
	c, err := ringcache.NewWithOptions(opts)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	f := &filling{measurement: m, c: c, content: p, val: make([]byte, 1<<12),
		dst: make([]byte, 0, 1<<12)}
	f.restart()
	sets := m.sets(o)
	half := sets / 2
	if err := f.run(ctx, 0, half); err != nil {
		return nil, err
	}
	f.restart()
	f.age = min(uint64(c.Len())*5/8, half)
	before := c.Stats()
	if err := f.run(ctx, half, sets); err != nil {
		return nil, err
	}
	return f.figures(&before), nil
}

// restart forgets the times so far.
func (f *filling) restart() {
	f.times = map[string]*hdrhistogram.Histogram{}
	for _, op := range operations {
		f.times[op] = hdrhistogram.New(1, int64(time.Minute), 3)
	}
}

// run sets the keys from first on, and reads others.
func (f *filling) run(ctx context.Context, first, end uint64) error {
	for id := first; id < end; id++ {
		if err := f.set(id); err != nil {
			return err
		}
		if id%hotEvery == 0 {
			if err := f.getHot(); err != nil {
				return err
			}
		}
		if id%oldEvery == 0 && f.age > 0 {
			f.get("old Get", id-f.age)
		}
		if f.pace > 0 && id%uint64(f.pace) == 0 {
			work(pause)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// work computes for a while, as a program does between its Sets. A sleep would be of another
// length and leave a processor in another state when nobody compresses meanwhile.
func work(d time.Duration) {
	for begin := time.Now(); time.Since(begin) < d; {
		continue
	}
}

func (f *filling) set(id uint64) error {
	v := f.val[:f.size(id)]
	f.content.Fill(v, id)
	binary.LittleEndian.PutUint64(f.key[:], id)
	begin := time.Now()
	err := f.c.Set(f.key[:], v)
	took := time.Since(begin)
	if err != nil {
		return err
	}
	return f.times["Set"].RecordValue(int64(took))
}

// get reads a key, and notes the time of a hit.
func (f *filling) get(op string, id uint64) (hit bool) {
	binary.LittleEndian.PutUint64(f.key[:], id)
	begin := time.Now()
	_, hit = f.c.HasGet(f.dst, f.key[:])
	took := time.Since(begin)
	if hit {
		_ = f.times[op].RecordValue(int64(took)) // more than a minute shows elsewhere
	}
	return hit
}

// getHot reads the next hot key, and sets it if it is not there.
func (f *filling) getHot() error {
	id := hotID + f.next
	f.next = (f.next + 1) % hotKeys
	if f.get("hot Get", id) {
		return nil
	}
	return f.set(id)
}

// figures returns what there is to tell.
func (f *filling) figures(before *ringcache.Stats) figures {
	since := f.c.Stats().Sub(*before)
	all := figures{entries: float64(f.c.Len()), packed: float64(since.Compression.Compressed)}
	for _, op := range operations {
		h := f.times[op]
		if h.TotalCount() < leastOld {
			continue
		}
		for _, q := range quantiles {
			all[figure(op, q)] = float64(h.ValueAtQuantile(q))
		}
	}
	if old := f.times["old Get"].TotalCount(); old > 0 {
		all[coldOld] = 100 * float64(since.Compression.ColdHits) / float64(old)
	}
	return all
}
