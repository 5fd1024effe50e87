// Command objects compares typed views of ringcache, with and without codec.Memo, with otter,
// which holds the decoded objects: the time of a hit, resident memory, the time of a collection,
// and the hit ratio within equal resident memory. Each run is a separate process, and stores
// alternate; tables show medians.
//
//	go run ./cmd/objects
//	go run ./cmd/objects -loads json:1000:1000000 -rounds 3
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/machine"
	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/objects"
)

func main() { cli.Main("objects", run) }

const defaultLoads = "json:1000:1000000,json:300:1000000,json:3000:100000," +
	"proto:300:1000000,proto:3000:100000"

// parse reads a list like defaultLoads.
func parse(list string) (all []objects.Values, err error) {
	for load := range strings.SplitSeq(list, ",") {
		text := strings.ReplaceAll(load, ":", " ")
		var v objects.Values
		if _, err := fmt.Sscan(text, &v.Kind, &v.Bytes, &v.Entries); err != nil {
			return nil, fmt.Errorf("-loads %q: want kind:bytes:entries: %w", load, err)
		}
		if v.Kind != "json" && v.Kind != "proto" || v.Bytes < 200 || v.Entries < objects.HotKeys {
			return nil, fmt.Errorf("-loads %q: want json or proto, 200 bytes, %d entries at least",
				load, objects.HotKeys)
		}
		all = append(all, v)
	}
	return all, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if is, err := cli.Part(args, stdout, objects.Task.Do); is {
		return err
	}
	fs := flag.NewFlagSet("objects", flag.ContinueOnError)
	fs.SetOutput(stderr)
	list := fs.String("loads", defaultLoads, "what is stored, as a list of `kind:bytes:entries`")
	rounds := fs.Int("rounds", 5, "how often every run is repeated")
	duration := fs.Duration("duration", time.Second, "time of each measurement of Gets")
	file := fs.String("o", "", "write the Markdown to this `file` instead of standard output")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 || *rounds < 1 || *duration <= 0 {
		return errors.New("-rounds and -duration must be above 0, and no argument may follow")
	}
	loads, err := parse(*list)
	if err != nil {
		return err
	}
	b := bytes.NewBufferString("# Encoded values and objects\n\n")
	b.WriteString(machine.This().Header("go run ./cmd/objects "+strings.Join(args, " "),
		[]string{objects.OtterStore}))
	for _, v := range loads {
		t := task{objects.Task{Values: v, Duration: *duration}}
		results, err := t.measure(ctx, stderr, *rounds)
		if err != nil {
			return err
		}
		table(b, v, results)
	}
	return cli.Write(*file, stdout, b.Bytes())
}

// task is measured in other processes.
type task struct{ objects.Task }

// results has the objects.Figures of each round by store and name.
type results map[string]map[string][]float64

// measure runs all stores in turns: first with all entries, then within equal memory.
func (t task) measure(ctx context.Context, stderr io.Writer, rounds int) (results, error) {
	all := results{}
	for _, name := range objects.StoreNames {
		all[name] = map[string][]float64{}
	}
	for i := range rounds * len(objects.StoreNames) {
		round, n := i/len(objects.StoreNames), i%len(objects.StoreNames)
		t.Store = objects.StoreNames[(n+round)%len(objects.StoreNames)]
		fmt.Fprintf(stderr, "%v: round %d of %d: %s\n", t.Values, round+1, rounds, t.Store)
		if err := t.add(ctx, all); err != nil {
			return nil, err
		}
	}
	resident := func(store string) int {
		return int(measure.Summarize(all[store][objects.ResidentBytes]).Median)
	}
	full := resident(objects.TypedStore) * t.Entries
	for _, name := range objects.StoreNames {
		t.Replay, t.Store = true, name
		t.MaxObjects = full / objects.BudgetPart / max(resident(objects.OtterStore), 1)
		t.MaxBytes = full / objects.BudgetPart
		if name == objects.MemoStore {
			memo := resident(objects.MemoStore)*t.Entries - full
			t.MaxBytes -= memo / objects.BudgetPart
		}
		fmt.Fprintf(stderr, "%v: equal memory: %s\n", t.Values, t.Store)
		if err := t.add(ctx, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// add performs t in another process and adds its objects.Figures.
func (t task) add(ctx context.Context, all results) error {
	var f objects.Figures
	if err := cli.Again(ctx, t.Task, &f); err != nil {
		return fmt.Errorf("measure %s: %w", t.Store, err)
	}
	for name, value := range f {
		all[t.Store][name] = append(all[t.Store][name], value)
	}
	return nil
}

// table shows medians, with the lowest and the highest, and the ratios of medians to those of
// otter.
func table(b *bytes.Buffer, v objects.Values, all results) {
	fmt.Fprintf(b, "\n## %v\n\n| | %s |\n|---|%s\n", v, strings.Join(objects.StoreNames, " | "),
		strings.Repeat("--:|", len(objects.StoreNames)))
	for _, name := range objects.Rows {
		base := measure.Summarize(all[objects.OtterStore][name])
		fmt.Fprintf(b, "| %s |", name)
		for _, store := range objects.StoreNames {
			switch s := measure.Summarize(all[store][name]); {
			case s.N == 0:
				b.WriteString(" |")
			case store == objects.OtterStore || base.N == 0:
				fmt.Fprintf(b, " %.4g (%.4g-%.4g) |", s.Median, s.Min, s.Max)
			default:
				fmt.Fprintf(b, " %.4g (%.4g-%.4g) **%.3g** |", s.Median, s.Min, s.Max,
					s.Median/base.Median)
			}
		}
		b.WriteByte('\n')
	}
}
