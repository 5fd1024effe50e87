// Command hugepages measures what each setting of Options.HugePages costs and brings:
// filling a cache, the slowest Sets meanwhile, resident memory, and random Gets at once and
// after the kernel had time. Each run is a separate process, and settings alternate; tables
// show medians. Only Linux has such pages.
//
//	go run ./cmd/hugepages
//	go run ./cmd/hugepages -after 1m,10m -rounds 3
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/load"
	"github.com/ringcache/ringcache/bench/machine"
	"github.com/ringcache/ringcache/bench/measure"
)

func main() { cli.Main("hugepages", run) }

const (
	keyBytes   = 16
	valueBytes = 100
)

// task is one run.
type task struct {
	Huge     ringcache.HugePages
	Timed    bool            // each Set by itself, and nothing else
	After    []time.Duration // since filling, when Gets are timed once more
	Entries  int
	Duration time.Duration // of timed Gets
}

// settings are what is compared; the first is what ratios are to.
var settings = []struct {
	name string
	task
}{
	{"off", task{Huge: ringcache.HugePagesOff}},
	{"when full", task{Huge: ringcache.HugePagesWhenFull}},
	{"at once", task{Huge: ringcache.HugePagesAtOnce}},
}

// figures are what a run has measured, by name, and the names in their order.
type figures struct {
	Names  []string
	Values map[string]float64
}

func (f *figures) add(name string, value float64) {
	if f.Values == nil {
		f.Values = map[string]float64{}
	}
	f.Names = append(f.Names, name)
	f.Values[name] = value
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if is, err := cli.Part(args, stdout, task.do); is {
		return err
	}
	fs := flag.NewFlagSet("hugepages", flag.ContinueOnError)
	fs.SetOutput(stderr)
	rounds := fs.Int("rounds", 5, "how often every run is repeated")
	entries := fs.Int("entries", 4_000_000, "entries of 16+100 bytes")
	duration := fs.Duration("duration", 2*time.Second, "time of each measurement of Gets")
	after := fs.String("after", "1m",
		"`times` after filling when Gets are timed once more where the kernel gathers pages by itself")
	file := fs.String("o", "", "write the Markdown to this `file` instead of standard output")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 || *rounds < 1 || *entries < 4000 || *duration <= 0 {
		return errors.New(
			"-rounds and -duration must be above 0, -entries at least 4000, and no argument may follow")
	}
	var waits []time.Duration
	for text := range strings.SplitSeq(*after, ",") {
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("-after: %w", err)
		}
		waits = append(waits, d)
	}
	t := task{Entries: *entries, Duration: *duration}
	results, err := measureAll(ctx, stderr, t, *rounds, waits)
	if err != nil {
		return err
	}
	return cli.Write(*file, stdout,
		document("go run ./cmd/hugepages "+strings.Join(args, " "), results))
}

// measureAll returns the figures of each setting, a list with an element for each run.
func measureAll(
	ctx context.Context, stderr io.Writer, t task, rounds int, waits []time.Duration,
) ([][]figures, error) {
	results := make([][]figures, len(settings))
	for round := range rounds {
		for i := range settings {
			i = (i + round) % len(settings)
			s := settings[i]
			fmt.Fprintf(stderr, "round %d of %d: %s\n", round+1, rounds, s.name)
			for _, timed := range []bool{false, true} {
				one := t
				one.Huge, one.Timed = s.Huge, timed
				if s.Huge == ringcache.HugePagesWhenFull {
					one.After = waits
				}
				var f figures
				if err := cli.Again(ctx, one, &f); err != nil {
					return nil, fmt.Errorf("measure %s: %w", s.name, err)
				}
				results[i] = append(results[i], f)
			}
		}
	}
	return results, nil
}

// do performs the run in this process.
func (t task) do() (f figures, err error) {
	most := 2 * t.Entries * (keyBytes + valueBytes + 32) // as in cmd/compare: nothing is evicted
	c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: most, HugePages: t.Huge})
	if err != nil {
		return f, err
	}
	defer c.Close()
	if t.Timed {
		return f, t.timeSets(c, &f)
	}
	start := time.Now()
	if err := t.fill(func(k, v []byte) error { return c.Set(k, v) }); err != nil {
		return f, err
	}
	filled := time.Now()
	f.add("fill, ns an entry", float64(filled.Sub(start).Nanoseconds())/float64(t.Entries))
	if err := t.timeGets(c, &f, ""); err != nil {
		return f, err
	}
	for _, after := range t.After {
		time.Sleep(time.Until(filled.Add(after)))
		if err := t.timeGets(c, &f, fmt.Sprintf(" after %v", after)); err != nil {
			return f, err
		}
	}
	return f, nil
}

// fill stores all entries, in an order that is the same for all.
func (t task) fill(set func(k, v []byte) error) error {
	key, value := make([]byte, keyBytes), make([]byte, valueBytes)
	for id := range uint64(t.Entries) {
		binary.LittleEndian.PutUint64(key, id)
		binary.LittleEndian.PutUint64(value, id*0x9e3779b97f4a7c15)
		if err := set(key, value); err != nil {
			return err
		}
	}
	return nil
}

// timeSets fills the cache, and times each Set by itself.
func (t task) timeSets(c *ringcache.Cache, f *figures) error {
	hist := hdrhistogram.New(1, int64(time.Minute), 3)
	err := t.fill(func(k, v []byte) error {
		start := time.Now()
		err := c.Set(k, v)
		return errors.Join(err, hist.RecordValue(time.Since(start).Nanoseconds()))
	})
	f.add("Set while filling, p99.9 ns", float64(hist.ValueAtQuantile(99.9)))
	f.add("p99.99 ns", float64(hist.ValueAtQuantile(99.99)))
	f.add("longest, µs", float64(hist.Max()/1000))
	return err
}

// timeGets times random Gets, and reads the process's memory.
func (t task) timeGets(c *ringcache.Cache, f *figures, when string) error {
	runtime.GC()
	key, buf := make([]byte, keyBytes), make([]byte, 0, valueBytes)
	rnd := load.NewRand(1)
	for _, dependent := range []bool{false, true} {
		n, last := 0, uint64(0)
		start := time.Now()
		for ; n%1024 > 0 || time.Since(start) < t.Duration; n++ {
			id := rnd.Below(uint64(t.Entries))
			if dependent {
				id = (id + last) % uint64(t.Entries)
			}
			binary.LittleEndian.PutUint64(key, id)
			v, ok := c.HasGet(buf, key)
			if !ok || binary.LittleEndian.Uint64(v) != id*0x9e3779b97f4a7c15 {
				return fmt.Errorf("entry %d of %d is not there, or wrong", id, t.Entries)
			}
			last = binary.LittleEndian.Uint64(v)
		}
		name := "Get, ns"
		if dependent {
			name = "dependent Get, ns"
		}
		f.add(name+when, float64(time.Since(start).Nanoseconds())/float64(n))
	}
	resident, err := machine.Resident()
	large, err2 := machine.LargePages()
	f.add("resident, MB"+when, float64(resident)/(1<<20))
	f.add("on large pages, MB"+when, float64(large)/(1<<20))
	return errors.Join(err, err2)
}

// document is a table of medians, with ratios to the first setting.
func document(command string, results [][]figures) []byte {
	var names []string
	values := make([]map[string][]float64, len(results))
	for i, runs := range results {
		values[i] = map[string][]float64{}
		for _, f := range runs {
			for _, name := range f.Names {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
				values[i][name] = append(values[i][name], f.Values[name])
			}
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# What large pages cost and bring\n\n%s\n",
		machine.This().Header(strings.TrimSpace(command), nil))
	b.WriteString(
		"Medians, with the lowest and the highest in brackets, and the ratio of medians to the first " +
			"column. What was measured\n" +
			"after a time is compared with what the first column had at once.\n\n|")
	for _, s := range settings {
		fmt.Fprintf(&b, " | %s", s.name)
	}
	b.WriteString(" |\n|---" + strings.Repeat("|--:", len(settings)) + "|\n")
	for _, name := range names {
		fmt.Fprintf(&b, "| %s", name)
		first, _, _ := strings.Cut(name, " after ")
		base := measure.Summarize(values[0][first]).Median
		for i := range values {
			s := measure.Summarize(values[i][name])
			switch {
			case s.N == 0:
				b.WriteString(" | ")
			case i == 0 || base == 0:
				fmt.Fprintf(&b, " | %.4g (%.4g-%.4g)", s.Median, s.Min, s.Max)
			default:
				fmt.Fprintf(&b, " | %.4g (%.4g-%.4g) **%.2f**", s.Median, s.Min, s.Max, s.Median/base)
			}
		}
		b.WriteString(" |\n")
	}
	return b.Bytes()
}
