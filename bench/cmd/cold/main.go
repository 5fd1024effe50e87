// Command cold measures what a compressor costs and brings: how many entries are held within
// one bound, and how long Sets and Gets take, with the compressor and without, in turns.
//
//	go run ./cmd/cold
//	go run ./cmd/cold -payload html -rounds 3
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/payload"
	"github.com/ringcache/ringcache/compress/s2"
)

func main() { cli.Main("cold", run) }

// options is what the flags say.
type options struct {
	payload string
	maxMB   int
	sets    int
	rounds  int
}

func run(_ context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	fs := flag.NewFlagSet("cold", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.payload, "payload", "json", "`kind` of values: json, html, proto or random")
	fs.IntVar(&o.maxMB, "mb", 128, "`MB` of the caches")
	fs.IntVar(&o.sets, "sets", 400_000, "Sets of a round")
	fs.IntVar(&o.rounds, "rounds", 5, "rounds, of which the medians are shown")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if o.maxMB < 64 || o.sets < 1000 || o.rounds < 1 {
		return fmt.Errorf("check flags: -mb must be at least 64, -sets 1000, -rounds 1")
	}
	content, err := payload.New(o.payload)
	if err != nil {
		return err
	}
	for _, m := range measurements {
		if err := m.measure(&o, content, stdout); err != nil {
			return err
		}
	}
	return nil
}

// measurement is one pair of columns.
type measurement struct {
	name string
	size func(id uint64) int
	pace int // Sets between two pauses; 0: none
}

var measurements = []measurement{
	{"300 to 3,000 bytes, with pauses", payload.Size, 32},
	{"300 to 3,000 bytes, without a pause", payload.Size, 0},
	{"300 bytes, with pauses", func(uint64) int { return 300 }, 32},
	{"1,000 bytes, with pauses", func(uint64) int { return 1000 }, 32},
}

// pause is what a pause is asked to be; the system makes it longer.
const pause = 20 * time.Microsecond

// figures are what a round has found out, in nanoseconds but for entries.
type figures map[string]float64

// measure runs the rounds, and prints the medians.
func (m *measurement) measure(o *options, p *payload.Payload, out io.Writer) error {
	var all [2][]figures
	for range o.rounds {
		for on := range 2 {
			f, err := m.round(o, p, on == 1)
			if err != nil {
				return err
			}
			all[on] = append(all[on], f)
		}
	}
	fmt.Fprintf(out, "\n%s\n\n| | without | with | ratio |\n|---|--:|--:|--:|\n", m.name)
	for _, name := range rows {
		off, on := median(all[0], name), median(all[1], name)
		if on == 0 {
			continue
		}
		ratio := "" // there is no cold entry without a compressor
		if off > 0 {
			ratio = fmt.Sprintf("%.2f", on/off)
		}
		fmt.Fprintf(out, "| %s | %.0f | %.0f | %s |\n", name, off, on, ratio)
	}
	return nil
}

// rows are the figures in their order.
var rows = []string{"entries", "Set p50, ns", "Set p99, ns", "Set p99.9, ns", "hot Get p50, ns",
	"hot Get p99.9, ns", "cold Get p50, ns", "cold Get p99.9, ns"}

func median(all []figures, name string) float64 {
	var values []float64
	for _, f := range all {
		values = append(values, f[name])
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// round fills a cache several times over, and then reads it.
func (m *measurement) round(o *options, p *payload.Payload, on bool) (figures, error) {
	opts := ringcache.Options{MaxBytes: o.maxMB << 20}
	if on {
		opts.Compressor = s2.New()
	}
	c, err := ringcache.NewWithOptions(opts)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	f := figures{}
	h := histogram()
	var key [8]byte
	v := make([]byte, 1<<12)
	for id := range uint64(o.sets) {
		v = v[:m.size(id)]
		p.Fill(v, id)
		binary.LittleEndian.PutUint64(key[:], id)
		begin := time.Now()
		err := c.Set(key[:], v)
		if took := time.Since(begin); id > uint64(o.sets/2) { // the cache is full
			h.RecordValue(int64(took))
		}
		if err != nil {
			return nil, err
		}
		if m.pace > 0 && id%uint64(m.pace) == 0 {
			time.Sleep(pause)
		}
	}
	f["Set p50, ns"], f["Set p99, ns"] = float64(h.ValueAtQuantile(50)), float64(h.ValueAtQuantile(99))
	f["Set p99.9, ns"] = float64(h.ValueAtQuantile(99.9))
	f["entries"] = float64(c.Len())
	m.reads(c, o, f)
	return f, nil
}

func histogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(time.Second), 3) }

// reads reads all keys once, which tells what is cold, and then those that are hot once more.
func (m *measurement) reads(c *ringcache.Cache, o *options, f figures) {
	hot, cold := histogram(), histogram()
	dst := make([]byte, 0, 1<<12)
	var key [8]byte
	wasCold := c.Stats().ColdHits
	var hotKeys []uint64
	const step = 3 // not all: statistics cost much more than a Get
	for id := uint64(0); id < uint64(o.sets); id += step {
		binary.LittleEndian.PutUint64(key[:], id)
		if _, ok := c.Peek(dst, key[:]); !ok {
			continue
		}
		if isCold := coldHit(c, key[:], dst, cold, &wasCold); !isCold {
			hotKeys = append(hotKeys, id)
		}
		if cold.TotalCount() > coldReads && len(hotKeys) > coldReads {
			break
		}
	}
	for _, id := range hotKeys {
		binary.LittleEndian.PutUint64(key[:], id)
		begin := time.Now()
		c.Get(dst, key[:])
		hot.RecordValue(int64(time.Since(begin)))
	}
	f["hot Get p50, ns"], f["hot Get p99.9, ns"] = quantiles(hot)
	f["cold Get p50, ns"], f["cold Get p99.9, ns"] = quantiles(cold)
}

// coldReads is how many reads of a kind are enough.
const coldReads = 5000

// coldHit is a Get, and reports whether it was of a cold entry, whose time it notes.
func coldHit(
	c *ringcache.Cache, key, dst []byte, h *hdrhistogram.Histogram, before *uint64,
) bool {
	begin := time.Now()
	c.Get(dst, key)
	took := time.Since(begin)
	hits := c.Stats().ColdHits
	is := hits > *before
	if *before = hits; is {
		h.RecordValue(int64(took))
	}
	return is
}

func quantiles(h *hdrhistogram.Histogram) (p50, p999 float64) {
	return float64(h.ValueAtQuantile(50)), float64(h.ValueAtQuantile(99.9))
}
