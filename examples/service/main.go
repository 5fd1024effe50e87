// Service is an HTTP API in front of a database, as many services are: products in SQLite,
// answered as JSON, with a cache between. Without -serve it starts itself twice, without and
// with the cache, lets clients loose on it, and prints what they saw.
//
//	go run . [flags]                                  # the comparison
//	go run . -serve localhost:8080 -dir /tmp/shop     # the service, until it is interrupted
//
// Then http://localhost:8080/products/7 is a product, /categories/3 a list, /metrics is for
// Prometheus, and /debug/statsviz/ a page for people. How the cache is used is in shop.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// config is what the command line sets.
type config struct {
	serve    string // address; empty: compare
	dir      string // of the database and of the cache's file
	products int
	clients  int
	span     time.Duration
	cached   bool
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

// run is main with its surroundings passed in.
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
	fs.BoolVar(&cfg.cached, "cache", true, "with -serve: use the cache")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(out, "usage: service [flags]")
			fs.SetOutput(out)
			fs.PrintDefaults()
		}
		return cfg, err
	}
	switch {
	case fs.NArg() > 0:
		return cfg, fmt.Errorf("check arguments: want none, got %d", fs.NArg())
	case cfg.products < categories || cfg.clients < 1 || cfg.span <= 0:
		return cfg, fmt.Errorf("check flags: -products must be at least %d, -clients 1, "+
			"and -for above 0", categories)
	}
	return cfg, nil
}
