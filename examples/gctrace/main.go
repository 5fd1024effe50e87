// Gctrace shows what a cache full of small entries costs the garbage collector.
// It fills a store, forces collections, and prints the size of the heap and how
// long they took.
//
//	go run . -store=map -entries 1000000    # one store
//	go run .                                # every store, each in its own process
//
// With GODEBUG=gctrace=1 the runtime writes its trace to standard error, and the
// table goes to standard output. Build the program first, because the go command
// would also print its own collections.
//
//	go build -o /tmp/gctrace . && GODEBUG=gctrace=1 /tmp/gctrace -store=map
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// config is what the command line sets.
type config struct {
	store     string // empty: all of them
	entries   int
	valueSize int
	json      bool
}

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "gctrace: %v\n", err)
		os.Exit(1)
	}
}

// run is main with its arguments and outputs passed in.
func run(args []string, stdout, stderr io.Writer) error {
	cfg, err := parse(args, stdout)
	if err != nil {
		return err
	}
	var results []result
	if cfg.store == "" {
		results, err = runAll(cfg, stderr)
	} else {
		results = make([]result, 1)
		results[0], err = measure(cfg)
	}
	if err != nil {
		return err
	}
	if cfg.json {
		return json.NewEncoder(stdout).Encode(results)
	}
	return writeTable(stdout, cfg, results)
}

// parse reads the command line.
func parse(args []string, stdout io.Writer) (config, error) {
	var cfg config
	names := strings.Join(storeNames(), ", ")
	fs := flag.NewFlagSet("gctrace", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the error comes back, and main prints it
	fs.StringVar(&cfg.store, "store", "",
		"one of "+names+" (default every one, each in its own process)")
	fs.IntVar(&cfg.entries, "entries", 1_000_000, "entries to fill in")
	fs.IntVar(&cfg.valueSize, "value", 100, "bytes in a value; a key has 16")
	fs.BoolVar(&cfg.json, "json", false, "print JSON instead of a table")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(stdout, "usage: gctrace [flags]")
			fs.SetOutput(stdout)
			fs.PrintDefaults()
		}
		return cfg, err
	}
	switch {
	case fs.NArg() > 0:
		return cfg, fmt.Errorf("check arguments: want flags only, got %q", fs.Args())
	case cfg.store != "" && !slices.Contains(storeNames(), cfg.store):
		return cfg, fmt.Errorf("check flags: -store=%s: want one of %s", cfg.store, names)
	case cfg.entries < 1:
		return cfg, errors.New("check flags: -entries must be at least 1")
	case cfg.valueSize < 0:
		return cfg, errors.New("check flags: -value must not be negative")
	}
	return cfg, nil
}

// runAll measures every store in its own process, so that none pays for
// the garbage of another.
func runAll(cfg config, stderr io.Writer) ([]result, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	var results []result
	names := storeNames()
	for i, name := range names {
		fmt.Fprintf(stderr, "%d/%d: filling %s with %d entries\n", i+1, len(names), name, cfg.entries)
		one := cfg
		one.store = name
		r, err := runChild(self, one, stderr)
		if err != nil {
			return nil, fmt.Errorf("measure %s: %w", name, err)
		}
		results = append(results, r)
	}
	return results, nil
}

// runChild measures one store in a new process of this program.
func runChild(self string, cfg config, stderr io.Writer) (result, error) {
	cmd := exec.Command(self, "-json", "-store="+cfg.store,
		"-entries="+strconv.Itoa(cfg.entries), "-value="+strconv.Itoa(cfg.valueSize))
	cmd.Stderr = stderr
	out, err := cmd.Output()
	if err != nil {
		return result{}, err
	}
	var results []result
	if err := json.Unmarshal(out, &results); err != nil {
		return result{}, fmt.Errorf("read its result: %w", err)
	}
	if len(results) != 1 {
		return result{}, fmt.Errorf("read its result: %d stores instead of one", len(results))
	}
	return results[0], nil
}
