// Service is a typical HTTP API backed by a database: products in SQLite, returned as JSON, with a
// cache in between. Without -serve it starts three services in turn (without a cache, with a cache,
// and with a compressed cache), generates load with clients, and prints what they measured.
//
//	go run . [flags]                                  # the comparison
//	go run . -serve localhost:8080 -dir /tmp          # the service, until it is interrupted
//
// By default all products fit in the cache, so nothing is compressed. To compare caches that are
// too small for all products and full before the clients start (takes minutes):
//
//	go run . -products 120000 -skew 0.8 -warm 1200000 -for 10s
//
// With -serve, http://localhost:8080/products/7 returns a product and /categories/3 a list. With
// a cache, /metrics has metrics for Prometheus, and /debug/statsviz/ shows live plots. The file
// shop.go contains all code that reads or writes entries.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// leastMB is the size of the smallest cache that this program accepts.
const leastMB = 32

// config is what the command line sets.
type config struct {
	serve    string // address; empty: compare
	dir      string // of the database and of the cache's file
	file     string // of the cache; empty: one in dir
	products int
	clients  int
	warm     int // requests before they ask
	span     time.Duration
	skew     float64 // of what they ask for
	cached   bool
	cacheMB  int
	compress bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "service: %v\n", err)
		os.Exit(1)
	}
}

// run is main with its context, arguments and output passed in.
func run(ctx context.Context, args []string, out io.Writer) error {
	cfg, err := parse(args, out)
	if err != nil {
		return err
	}
	if cfg.serve != "" {
		return serve(ctx, cfg, out)
	}
	return compare(ctx, cfg, out)
}

// parse reads the command line.
func parse(args []string, out io.Writer) (config, error) {
	var cfg config
	fs := flag.NewFlagSet("service", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the error comes back, and main prints it
	fs.StringVar(&cfg.serve, "serve", "", "host:port to serve at, until interrupted")
	fs.StringVar(&cfg.dir, "dir", "", "directory of the database and of the cache's file "+
		"(default: a new one that is removed)")
	fs.IntVar(&cfg.products, "products", 20_000, "products in a new database")
	fs.IntVar(&cfg.clients, "clients", 8, "clients that ask at once, in the comparison")
	fs.DurationVar(&cfg.span, "for", 3*time.Second, "how long they ask, each way")
	fs.IntVar(&cfg.warm, "warm", 0, "products that are asked for before, uncounted, where "+
		"there is a cache")
	fs.Float64Var(&cfg.skew, "skew", 1.1, "exponent of Zipf's law by which they choose "+
		"products: the lower, the more products")
	fs.BoolVar(&cfg.cached, "cache", true, "with -serve: use the cache")
	fs.IntVar(&cfg.cacheMB, "cache-mb", 64, "size of the cache, in MB")
	fs.BoolVar(&cfg.compress, "compress", false, "with -serve: keep what leaves the cache "+
		"compressed, with S2")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(out, "usage: service [flags]")
			fs.SetOutput(out)
			fs.PrintDefaults()
		}
		return cfg, err
	}
	return cfg, check(cfg, fs.NArg())
}

// check returns an error if the service cannot have the settings of the command line.
func check(cfg config, args int) error {
	switch {
	case args > 0:
		return fmt.Errorf("check arguments: want none, got %d", args)
	case cfg.products < categories || cfg.clients < 1 || cfg.warm < 0 || cfg.span <= 0:
		return fmt.Errorf("check flags: -products must be at least %d, -clients 1, -warm 0, "+
			"and -for above 0", categories)
	case !(cfg.skew >= 0 && cfg.skew <= 10): // nor NaN
		return fmt.Errorf("check flags: -skew must be 0 to 10, got %v", cfg.skew)
	case cfg.cacheMB < leastMB || cfg.cacheMB > math.MaxInt>>20:
		return fmt.Errorf("check flags: -cache-mb must be %d to %d, got %d", leastMB,
			math.MaxInt>>20, cfg.cacheMB)
	case cfg.serve != "" && cfg.compress && !cfg.cached:
		return errors.New("check flags: -compress is of no use with -cache=false")
	}
	return nil
}
