// Httpcache is a web server that caches its pages in a ringcache with adapters/ringmiddleware.
//
//	go run -C examples/httpcache . [flags]
//
// It serves a few hundred pages on localhost, requests them from several clients, checks every
// response, and prints how much work the cache saved the handler and the network. The function
// serve is the code that a service needs; the pages are in origin.go and the clients in clients.go.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringmiddleware"
)

const mb = 1 << 20

// config is what the command line sets.
type config struct {
	maxBytes int
	pages    int
	clients  int
	requests int // of each client
	maxAge   time.Duration
}

func main() {
	err := run(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "httpcache: %v\n", err)
		os.Exit(1)
	}
}

// run is main with its arguments and output passed in.
func run(args []string, out io.Writer) error {
	cfg, err := parse(args, out)
	if err != nil {
		return err
	}
	origin := newOrigin(cfg.pages, cfg.maxAge)
	cache := ringcache.New(cfg.maxBytes)
	defer cache.Close()
	server, err := serve(cache, origin)
	if err != nil {
		return err
	}
	defer server.Close()

	c := &clients{cfg: cfg, origin: origin, url: server.URL, http: server.Client()}
	if err := c.browse(); err != nil {
		return err
	}
	if err := c.report(out, cache); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	if n := c.wrong.Load(); n > 0 {
		return fmt.Errorf("verify responses: %d were not what the server would have said", n)
	}
	return nil
}

// serve puts the cache before a handler, and that on the network.
func serve(cache *ringcache.Cache, next http.Handler) (*httptest.Server, error) {
	pages, err := ringmiddleware.New(cache, ringmiddleware.Options{Status: "ringcache"})
	if err != nil {
		return nil, err
	}
	return httptest.NewServer(pages.Handler(next)), nil
}

// parse reads the command line.
func parse(args []string, out io.Writer) (config, error) {
	var cfg config
	fs := flag.NewFlagSet("httpcache", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the error comes back, and main prints it
	maxMB := fs.Int("max", 64, "bound of the cache's memory in MB (2^20 bytes)")
	fs.IntVar(&cfg.pages, "pages", 400, "pages that the server has")
	fs.IntVar(&cfg.clients, "clients", 8, "clients that ask at the same time")
	fs.IntVar(&cfg.requests, "requests", 1000, "requests of each client")
	fs.DurationVar(&cfg.maxAge, "max-age", time.Minute,
		"how long pages may be cached, in whole seconds")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(out, "usage: httpcache [flags]")
			fs.SetOutput(out)
			fs.PrintDefaults()
		}
		return cfg, err
	}
	switch {
	case fs.NArg() > 0:
		return cfg, fmt.Errorf("check arguments: want none, got %d", fs.NArg())
	case *maxMB < 32:
		return cfg, fmt.Errorf("check flags: -max is %d, must be at least 32", *maxMB)
	case cfg.pages < kinds:
		return cfg, fmt.Errorf("check flags: -pages is %d, there are %d kinds of them", cfg.pages, kinds)
	case cfg.clients < 1 || cfg.requests < 1:
		return cfg, errors.New("check flags: -clients and -requests must be at least 1")
	case cfg.maxAge < time.Second || cfg.maxAge%time.Second != 0:
		return cfg, fmt.Errorf("check flags: -max-age is %v, must be whole seconds, at least 1",
			cfg.maxAge)
	}
	cfg.maxBytes = *maxMB * mb
	return cfg, nil
}
