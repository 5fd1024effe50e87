// Feedreader polls RSS and Atom feeds. To avoid repeated work it stores the
// following in a ringcache: the ETag and Last-Modified of each feed, how long
// to wait before polling a feed again, and a fingerprint of each article.
//
//	go run . [flags]
//
// It serves its own feeds on localhost, polls them for several rounds in which
// some of them change, and prints how much work it did, compared with a reader
// that has no cache. The reader itself is in reader.go; the other files are for
// the demonstration.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

const mb = 1 << 20

// config is what the command line sets.
type config struct {
	maxBytes int
	feeds    int
	articles int // in each feed
	rounds   int
	workers  int
}

func main() {
	err := run(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "feedreader: %v\n", err)
		os.Exit(1)
	}
}

// run is main with its arguments and output passed in.
func run(args []string, out io.Writer) error {
	cfg, err := parse(args, out)
	if err != nil {
		return err
	}
	w, err := newWorld(cfg)
	if err != nil {
		return err
	}
	defer w.close()

	if err := w.pollAll(); err != nil {
		return err
	}
	if err := w.report(out); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	return nil
}

// parse reads the command line.
func parse(args []string, out io.Writer) (config, error) {
	var cfg config
	fs := flag.NewFlagSet("feedreader", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the error comes back, and main prints it
	maxMB := fs.Int("max", 32, "bound of the cache's memory in MB (2^20 bytes)")
	fs.IntVar(&cfg.feeds, "feeds", 50, "feeds that are polled")
	fs.IntVar(&cfg.articles, "articles", 40, "articles in each feed")
	fs.IntVar(&cfg.rounds, "rounds", 6, "times that every feed is polled")
	fs.IntVar(&cfg.workers, "workers", 4, "feeds that are polled at the same time")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(out, "usage: feedreader [flags]")
			fs.SetOutput(out)
			fs.PrintDefaults()
		}
		return cfg, err
	}
	switch {
	case fs.NArg() > 0:
		return cfg, fmt.Errorf("check arguments: want none, got %d", fs.NArg())
	case *maxMB < 1:
		return cfg, fmt.Errorf("check flags: -max is %d, must be at least 1", *maxMB)
	case cfg.feeds < 1 || cfg.articles < 1 || cfg.rounds < 1 || cfg.workers < 1:
		return cfg, errors.New("check flags: -feeds, -articles, -rounds and -workers must be at least 1")
	}
	cfg.maxBytes = *maxMB * mb
	return cfg, nil
}
