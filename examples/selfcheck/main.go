// Selfcheck tests a cache with real data: it caches the regular files under a directory, except
// very large ones, reads them back from -workers goroutines in random order, checks every byte, and
// prints the time and memory used.
//
//	go run ./examples/selfcheck [flags] [directory]
//
// Without a directory it uses the source tree of the installed Go.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

const mb = 1 << 20

// config is what the command line sets.
type config struct {
	dir      string
	maxBytes int
	workers  int
	rounds   int
}

func main() {
	err := run(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "selfcheck: %v\n", err)
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
	defer w.cache.Close()

	if err := w.fill(); err != nil {
		return err
	}
	w.readBack()
	if err := w.report(out); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	if n := w.wrong.Load(); n > 0 {
		return fmt.Errorf("verify %s: %d reads returned other bytes than were stored", cfg.dir, n)
	}
	return nil
}

// parse reads the command line and finds the directory to work on.
func parse(args []string, out io.Writer) (config, error) {
	var cfg config
	fs := flag.NewFlagSet("selfcheck", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the error comes back, and main prints it
	maxMB := fs.Int("max", 512, "bound of the cache's memory in MB (2^20 bytes)")
	fs.IntVar(&cfg.workers, "workers", runtime.GOMAXPROCS(0), "goroutines that fill and read")
	fs.IntVar(&cfg.rounds, "rounds", 5, "times that each goroutine reads every file back")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(out, "usage: selfcheck [flags] [directory]")
			fs.SetOutput(out)
			fs.PrintDefaults()
		}
		return cfg, err
	}
	if *maxMB < 1 {
		return cfg, fmt.Errorf("check flags: -max is %d, must be at least 1", *maxMB)
	}
	if cfg.workers < 1 || cfg.rounds < 1 {
		return cfg, errors.New("check flags: -workers and -rounds must be at least 1")
	}
	if fs.NArg() > 1 {
		return cfg, fmt.Errorf("check arguments: want one directory, got %d", fs.NArg())
	}
	cfg.maxBytes = *maxMB * mb
	cfg.dir = fs.Arg(0)
	if cfg.dir == "" {
		src, err := goSource()
		if err != nil {
			return cfg, err
		}
		cfg.dir = src
	}
	return cfg, nil
}

// goSource returns the source tree of the Go that is installed here: what the
// go command says, else the GOROOT variable.
func goSource() (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	root := strings.TrimSpace(string(out))
	if root == "" {
		root = os.Getenv("GOROOT")
	}
	if root == "" {
		if err == nil {
			err = errors.New("it is empty")
		}
		return "", fmt.Errorf("find the Go source tree: go env GOROOT: %w; name a directory instead", err)
	}
	return filepath.Join(root, "src"), nil
}
