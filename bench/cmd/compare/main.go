// Command compare runs every load on every store and prints one Markdown
// document. Each run has a process of its own, so that no store inherits
// another's heap; the stores take turns, in another order every round; and the
// tables show medians of the rounds.
//
//	go run ./cmd/compare -quick
//	go run ./cmd/compare -cpu 1,2 -o result.md -json result.json
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/ringcache/ringcache/bench/machine"
	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/store"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		stop()
		os.Exit(1)
	}
}

// childFlag makes the process perform the one run that its value describes.
const childFlag = "-child"

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 2 && args[0] == childFlag {
		return child(args[1], stdout)
	}
	o, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	doc := document{Machine: machine.This(), Command: commandLine(args), Options: *o}
	doc.Results, err = o.runAll(ctx, stderr)
	if err != nil {
		return err
	}
	if err := doc.write(o.markdown, o.json, stdout); err != nil {
		return err
	}
	if failed := doc.failures(); len(failed) > 0 {
		return fmt.Errorf("%d of %d runs failed, the first: %s", len(failed), len(doc.Results), failed[0])
	}
	return nil
}

// options is what the flags say.
type options struct {
	Scale  measure.Scale
	Rounds int
	Stores []string
	Loads  []string
	CPUs   []int

	markdown, json string // files, "" for none
}

func parseOptions(args []string, stderr io.Writer) (*options, error) {
	fs := flag.NewFlagSet("compare", flag.ContinueOnError)
	fs.SetOutput(stderr)
	quick := fs.Bool("quick", false, "small sizes and one round: all loads in under two minutes")
	rounds := fs.Int("rounds", 5, "how often every run is repeated")
	stores := fs.String("stores", strings.Join(store.Names(store.All), ","), "`names` of the stores")
	loads := fs.String("loads", strings.Join(measure.LoadNames(), ","), "`names` or groups of the loads")
	cpus := fs.String("cpu", strconv.Itoa(runtime.GOMAXPROCS(0)), "`list` of GOMAXPROCS for the throughput loads; the last is for the others")
	entries := fs.Int("entries", measure.Default.Entries, "entries of 16+100 bytes; other loads scale with it")
	duration := fs.Duration("duration", measure.Default.Duration, "timed part of a throughput run")
	markdown := fs.String("o", "", "write the Markdown to this `file` instead of standard output")
	jsonFile := fs.String("json", "", "write every single result to this `file`")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}

	o := &options{Scale: measure.Default, Rounds: *rounds, markdown: *markdown, json: *jsonFile}
	isSet := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { isSet[f.Name] = true })
	if *quick {
		o.Scale = measure.Quick
		if !isSet["rounds"] {
			o.Rounds = 1
		}
	}
	if isSet["entries"] {
		o.Scale.Entries = *entries
	}
	if isSet["duration"] {
		o.Scale.Duration = *duration
	}
	if o.Rounds < 1 || o.Scale.Entries < 1000 || o.Scale.Duration <= 0 {
		return nil, errors.New("-rounds must be at least 1, -entries at least 1000, -duration more than 0")
	}
	return o, o.parseLists(*stores, *loads, *cpus)
}

func (o *options) parseLists(stores, loads, cpus string) error {
	o.Stores = strings.Split(stores, ",")
	for _, name := range o.Stores {
		if _, err := store.Find(name); err != nil {
			return err
		}
	}
	found, err := measure.FindLoads(strings.Split(loads, ","))
	if err != nil {
		return err
	}
	for _, l := range found {
		o.Loads = append(o.Loads, l.Name)
	}
	for _, s := range strings.Split(cpus, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return fmt.Errorf("-cpu: %q is not a positive number", s)
		}
		o.CPUs = append(o.CPUs, n)
	}
	return nil
}

// child performs one run and prints its metrics as one line.
func child(arg string, stdout io.Writer) error {
	var spec measure.Spec
	if err := json.Unmarshal([]byte(arg), &spec); err != nil {
		return fmt.Errorf("read run: %w", err)
	}
	m, err := measure.Run(spec)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(m)
}

func commandLine(args []string) string {
	return strings.TrimSpace("go run ./cmd/compare " + strings.Join(args, " "))
}

// result is one run of one round.
type result struct {
	Round   int
	Load    string
	Store   string
	CPU     int
	Metrics measure.Metrics `json:",omitempty"`
	Error   string          `json:",omitempty"`
	Seconds float64
}

func (r result) String() string {
	if r.Error != "" {
		return "failed: " + r.Error
	}
	if ns, ok := r.Metrics[measure.NsPerOp]; ok {
		return fmt.Sprintf("%.1f ns/op", ns)
	}
	return fmt.Sprintf("done in %v", time.Duration(r.Seconds*float64(time.Second)).Round(time.Millisecond))
}
