// Nearcache shows how many requests a near cache in front of Redis saves. Two processes read
// the same keys, and one of them also writes: first without a near cache, then with one in each
// process.
//
//	go run . [flags]
//
// It starts its own redis-server (or valkey-server), or uses the server given by -redis. The
// near cache is created by the function connect in process.go; the rest is the demonstration.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// config is what the command line sets.
type config struct {
	redis     string // address; empty: start one
	keys      int
	valueSize int
	writes    int // per second
	span      time.Duration

	// Of a process that the first one has started:
	role string
	near bool
}

func main() {
	err := run(os.Args[1:], os.Stdin, os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "nearcache: %v\n", err)
		os.Exit(1)
	}
}

// run is main with its arguments, input and output passed in.
func run(args []string, in io.Reader, out io.Writer) error {
	cfg, err := parse(args, out)
	if err != nil {
		return err
	}
	if cfg.role != "" {
		return runProcess(cfg, in, out)
	}
	return show(cfg, out)
}

// parse reads the command line.
func parse(args []string, out io.Writer) (config, error) {
	var cfg config
	fs := flag.NewFlagSet("nearcache", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the error comes back, and main prints it
	fs.StringVar(&cfg.redis, "redis", "", "host:port of a running server (default: start one)")
	fs.IntVar(&cfg.keys, "keys", 10_000, "keys that are read, some more often than others")
	fs.IntVar(&cfg.valueSize, "value", 500, "bytes in a value")
	fs.IntVar(&cfg.writes, "writes", 500, "writes a second")
	fs.DurationVar(&cfg.span, "for", 2*time.Second, "how long to read, each way")
	fs.StringVar(&cfg.role, "role", "", "for the program's own use")
	fs.BoolVar(&cfg.near, "near", false, "for the program's own use")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(out, "usage: nearcache [flags]")
			fs.SetOutput(out)
			fs.PrintDefaults()
		}
		return cfg, err
	}
	switch {
	case fs.NArg() > 0:
		return cfg, fmt.Errorf("check arguments: want none, got %d", fs.NArg())
	case cfg.keys < 1 || cfg.writes < 1 || cfg.span <= 0:
		return cfg, errors.New("check flags: -keys, -writes and -for must be above 0")
	case cfg.valueSize < versionSize:
		return cfg, fmt.Errorf("check flags: -value is %d, must be at least %d",
			cfg.valueSize, versionSize)
	}
	return cfg, nil
}
