// Loader shows how a cache handles a stampede: a thousand goroutines request the same missing keys
// at once, and loading a value is slow. Each value is usually loaded once.
//
//	go run ./examples/loader [flags]
//
// With -naive it does the same without GetOrLoad: each goroutine that misses
// loads the value itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache"
)

// config is what the command line sets.
type config struct {
	callers int
	keys    int
	delay   time.Duration
	naive   bool
}

func main() {
	err := run(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "loader: %v\n", err)
		os.Exit(1)
	}
}

// run is main with its arguments and output passed in.
func run(args []string, out io.Writer) error {
	cfg, err := parse(args, out)
	if err != nil {
		return err
	}
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	db := &database{delay: cfg.delay}
	begin := time.Now()
	err = stampede(cfg, func(ctx context.Context, k []byte) ([]byte, error) {
		if cfg.naive {
			return readThrough(ctx, cache, db, k)
		}
		return cache.GetOrLoad(ctx, nil, k, db.load)
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out,
		"%d goroutines asked for %d keys: %d queries of %v each, done after %v\n",
		cfg.callers, cfg.keys, db.queries.Load(), cfg.delay, time.Since(begin).Round(time.Millisecond))
	return err
}

// parse reads the command line.
func parse(args []string, out io.Writer) (config, error) {
	var cfg config
	fs := flag.NewFlagSet("loader", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the error comes back, and main prints it
	fs.IntVar(&cfg.callers, "callers", 1000, "goroutines that ask")
	fs.IntVar(&cfg.keys, "keys", 1, "keys that they ask for")
	fs.DurationVar(&cfg.delay, "delay", 100*time.Millisecond, "time that a query takes")
	fs.BoolVar(&cfg.naive, "naive", false, "look a value up, and store it, without GetOrLoad")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(out, "usage: loader [flags]")
			fs.SetOutput(out)
			fs.PrintDefaults()
		}
		return cfg, err
	}
	if cfg.callers < 1 || cfg.keys < 1 || cfg.delay < 0 || fs.NArg() > 0 {
		return cfg, errors.New(
			"check flags: -callers and -keys must be at least 1, -delay at least 0, and there are no " +
				"arguments")
	}
	return cfg, nil
}

// database stands for any slow source.
type database struct {
	delay   time.Duration
	queries atomic.Int64
}

// query slowly finds the value of a key, unless ctx ends first.
func (db *database) query(ctx context.Context, k []byte) ([]byte, error) {
	db.queries.Add(1)
	select {
	case <-time.After(db.delay):
		return fmt.Appendf(nil, "value of %s", k), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// load is a query for GetOrLoad.
func (db *database) load(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
	v, err := db.query(ctx, k)
	return v, time.Minute, err
}

// readThrough is what a program without GetOrLoad does.
func readThrough(
	ctx context.Context, cache *ringcache.Cache, db *database, k []byte,
) ([]byte, error) {
	if v, ok := cache.HasGet(nil, k); ok {
		return v, nil
	}
	v, err := db.query(ctx, k)
	if err != nil {
		return nil, err
	}
	_ = cache.SetWithTTL(k, v, time.Minute) // if it is not stored, it is looked up again
	return v, nil
}

// stampede has all callers ask at the same moment, and checks what they get.
func stampede(cfg config, get func(ctx context.Context, k []byte) ([]byte, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), cfg.delay+time.Minute)
	defer cancel()
	gate := make(chan struct{})
	errs := make([]error, cfg.callers)
	var wg sync.WaitGroup
	for i := range cfg.callers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			k := fmt.Appendf(nil, "key %d", i%cfg.keys)
			<-gate
			v, err := get(ctx, k)
			if want := fmt.Sprintf("value of %s", k); err == nil && string(v) != want {
				err = fmt.Errorf("verify %s: got %q, want %q", k, v, want)
			}
			errs[i] = err
		}()
	}
	close(gate)
	wg.Wait()
	return errors.Join(errs...)
}
