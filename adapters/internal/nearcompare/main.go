// Package nearcompare compares a near cache with the LRU cache that its client keeps on the
// Go heap: the time of a hit, the Go heap per entry in bytes, and the time of a runtime.GC.
//
// Each cache has its own process, so that the garbage of one does not affect the other. Both
// are filled with the same keys from one server, and then measured in turns. A hit is a
// complete DoCache, including building its command, as a user would see it.
package nearcompare

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/ringcache/ringcache"
)

// Target is a near cache and the client that it is for.
type Target struct {
	Client   string   // its name
	Programs []string // servers that it is for; the first one installed is started
	// Connect returns a client with one connection, and with its own LRU cache of any size
	// if cache is nil.
	Connect func(addr string, cache *ringcache.Cache) (Client, error)
}

// Client is a client of Redis or Valkey.
type Client interface {
	// Set writes keys to the server.
	Set(keys, values []string) error
	// Fill reads keys into the near cache.
	Fill(keys []string) error
	// Get reads a key, and tells whether it was in the near cache.
	Get(key string) (value string, hit bool, err error)
	Close()
}

// config is what the command line sets.
type config struct {
	entries   int
	valueSize int
	rounds    int
	ops       int
	child     string // the cache of this process; empty: the one that starts the others
	addr      string // of the server, for a child
}

// Main is the program.
func Main(t Target) {
	err := Run(t, os.Args[1:], os.Stdin, os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "compare: %v\n", err)
		os.Exit(1)
	}
}

// Run is Main with its surroundings passed in.
func Run(t Target, args []string, in io.Reader, out io.Writer) error {
	cfg, err := parse(args, out)
	if err != nil {
		return err
	}
	if cfg.child != "" {
		return runChild(t, cfg, in, out)
	}
	return compare(t, cfg, out)
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
