// Compare measures the near cache beside rueidis' own LRU cache: the time of a hit, the
// bytes of Go heap that an entry takes, and the time of a runtime.GC.
//
//	go run ./cmd/compare                     # needs redis-server or valkey-server
//	go run ./cmd/compare -entries 100000 -rounds 3
//
// Each cache has its own process, so that none pays for the garbage of the other.
// Both are filled with the same keys from one server, and then take turns. A hit is a whole
// DoCache, with the command that is built for it, as a user would see it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// config is what the command line sets.
type config struct {
	entries   int
	valueSize int
	rounds    int
	ops       int
	child     string // the cache of this process; empty: the one that starts the others
	addr      string // of the server, for a child
}

func main() {
	err := run(os.Args[1:], os.Stdin, os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "compare: %v\n", err)
		os.Exit(1)
	}
}

// run is main with its surroundings passed in.
func run(args []string, in io.Reader, out io.Writer) error {
	cfg, err := parse(args, out)
	if err != nil {
		return err
	}
	if cfg.child != "" {
		return runChild(cfg, in, out)
	}
	return compare(cfg, out)
}

// parse reads the command line.
func parse(args []string, out io.Writer) (config, error) {
	var cfg config
	fs := flag.NewFlagSet("compare", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the error comes back, and main prints it
	fs.IntVar(&cfg.entries, "entries", 1_000_000, "entries in each cache")
	fs.IntVar(&cfg.valueSize, "value", 100, "bytes in a value; a key has 16")
	fs.IntVar(&cfg.rounds, "rounds", 5, "turns that each cache takes")
	fs.IntVar(&cfg.ops, "ops", 500_000, "reads in a turn, of each kind")
	fs.StringVar(&cfg.child, "child", "", "for the program's own use")
	fs.StringVar(&cfg.addr, "addr", "", "for the program's own use")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(out, "usage: compare [flags]")
			fs.SetOutput(out)
			fs.PrintDefaults()
		}
		return cfg, err
	}
	switch {
	case fs.NArg() > 0:
		return cfg, fmt.Errorf("check arguments: want flags only, got %q", fs.Args())
	case cfg.entries < 1 || cfg.rounds < 1 || cfg.ops < 1:
		return cfg, errors.New("check flags: -entries, -rounds and -ops must be at least 1")
	case cfg.valueSize < digits:
		return cfg, fmt.Errorf("check flags: -value is %d, must be at least %d", cfg.valueSize, digits)
	}
	return cfg, nil
}
