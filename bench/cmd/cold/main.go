// Command cold measures what a compressor costs and brings: how many entries are held within
// one bound, and how long Sets and Gets take, with the compressor and without, in turns.
//
//	go run ./cmd/cold
//	go run ./cmd/cold -payload html -rounds 3
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/payload"
)

func main() { cli.Main("cold", run) }

// options is what the flags say.
type options struct {
	payload string
	maxMB   int
	turns   int
	rounds  int
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	fs := flag.NewFlagSet("cold", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.payload, "payload", "json", "`kind` of values: json, html, proto or random")
	fs.IntVar(&o.maxMB, "mb", 128, "`MB` of the caches")
	fs.IntVar(&o.turns, "turns", 5,
		"how often a round sets as many bytes as a cache has; its second half is timed")
	fs.IntVar(&o.rounds, "rounds", 5, "rounds, of which the medians are shown")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if o.maxMB < 64 || o.turns < 1 || o.rounds < 1 {
		return fmt.Errorf("check flags: -mb must be at least 64, -turns and -rounds 1")
	}
	content, err := payload.New(o.payload)
	if err != nil {
		return err
	}
	for _, m := range measurements {
		if err := m.measure(ctx, &o, content, stdout); err != nil {
			return err
		}
	}
	return nil
}

// measurement is one table.
type measurement struct {
	name  string
	bytes int           // of a value; 0: of different sizes, from 300 to 3,000
	pace  int           // Sets between two pauses; 0: none
	slow  time.Duration // that the compressor takes longer for each value
}

var measurements = []measurement{
	{"300 to 3,000 bytes, with pauses", 0, 32, 0},
	{"300 to 3,000 bytes, without a pause", 0, 0, 0},
	{"300 to 3,000 bytes, with pauses, 1 ms more to compress a value", 0, 32, time.Millisecond},
	{"300 bytes, with pauses", 300, 32, 0},
	{"1,000 bytes, with pauses", 1000, 32, 0},
}

// size returns the bytes of the value of id.
func (m *measurement) size(id uint64) int {
	if m.bytes == 0 {
		return payload.Size(id)
	}
	return m.bytes
}

// sets returns how many Sets a round has.
func (m *measurement) sets(o *options) uint64 {
	mean := m.bytes
	if mean == 0 {
		mean = 1650
	}
	return uint64(o.turns * o.maxMB << 20 / mean)
}

// figures are what a round has found out.
type figures map[string]float64

// measure runs the rounds, without and with a compressor in turns, and prints the medians.
func (m *measurement) measure(
	ctx context.Context, o *options, p *payload.Payload, out io.Writer,
) error {
	var off, on []figures
	for i := range o.rounds {
		for j := range 2 {
			with := (i+j)%2 == 1 // each is the first one in every second round
			f, err := m.round(ctx, o, p, with)
			if err != nil {
				return err
			}
			if with {
				on = append(on, f)
			} else {
				off = append(off, f)
			}
		}
	}
	fmt.Fprintf(out, "\n%s\n\n| | without | with | ratio |\n|---|--:|--:|--:|\n", m.name)
	for _, name := range rows {
		without, with := median(off, name), median(on, name)
		if without == 0 && with == 0 {
			continue
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", name, shown("%.0f", without),
			shown("%.0f", with), shown("%.2f", median(ratios(on, off, name), name)))
	}
	return nil
}

func shown(format string, v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf(format, v)
}

// ratios are those of the rounds; 0 where there is none.
func ratios(on, off []figures, name string) []figures {
	all := make([]figures, len(on))
	for i := range on {
		if off[i][name] > 0 {
			all[i] = figures{name: on[i][name] / off[i][name]}
		}
	}
	return all
}

func median(all []figures, name string) float64 {
	var values []float64
	for _, f := range all {
		values = append(values, f[name])
	}
	slices.Sort(values)
	return values[len(values)/2]
}
