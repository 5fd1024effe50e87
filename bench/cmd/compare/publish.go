package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/ringcache/ringcache/bench/harness"
	"github.com/ringcache/ringcache/bench/machine"
	"github.com/ringcache/ringcache/bench/publish"
)

// publication is what the flags say that go with -publish.
type publication struct {
	publish.Head
	root string // of the repository; "": the pages stay as they are
	from string // a file of data, instead of a run
}

func parsePublication(args []string, stderr io.Writer) (*publication, error) {
	p := &publication{}
	fs := flag.NewFlagSet("compare -publish", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Bool("publish", false, "run the published loads and write data, pages and charts")
	quick := fs.Bool("quick", false, "small sizes and one round; the pages go to standard output")
	fs.StringVar(&p.from, "from", "", "make the pages from this `file` of data, without a run")
	fs.StringVar(&p.root, "root", "",
		"`directory` of the repository whose pages are written (default .., or none with -quick)")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if *quick {
		p.Scale, p.Rounds = publish.Quick, 1
	} else {
		p.Scale, p.Rounds, p.root = publish.Scale, publish.Rounds, cmp.Or(p.root, "..")
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	p.Machine = machine.This()
	p.Goroutines = runtime.GOMAXPROCS(0)
	p.Command = strings.TrimSpace("go run ./cmd/compare " + strings.Join(args, " "))
	return p, nil
}

// publishAll makes the pages: from a run, or from the data of one.
func publishAll(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	p, err := parsePublication(args, stderr)
	if err != nil {
		return err
	}
	file := p.from
	if file == "" {
		dir := filepath.Join(p.root, filepath.Dir(publish.Data))
		if p.root == "" {
			if dir, err = os.MkdirTemp("", "ringcache-publish-"); err != nil {
				return err
			}
			defer os.RemoveAll(dir)
		}
		file = filepath.Join(dir, "bench.csv.partial")
		if err := p.measure(ctx, file, stderr); err != nil {
			return err
		}
	}
	run, err := publish.Read(file)
	if err != nil {
		return err
	}
	if p.root == "" {
		_, err := io.WriteString(stdout, run.Markdown())
		return errors.Join(err, run.Failure())
	}
	if data := filepath.Join(p.root, publish.Data); data != file {
		if err := run.Save(data); err != nil {
			return err
		}
	}
	if err := run.Update(p.root); err != nil {
		return err
	}
	if err := run.Failure(); err != nil {
		return fmt.Errorf("%w (the same command repeats them)", err)
	}
	if p.from == "" {
		return os.Remove(file)
	}
	return nil
}

// measure performs the run, whose results go to the file, next to that of the data. The file
// stays there until no run has failed.
func (p *publication) measure(ctx context.Context, file string, stderr io.Writer) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	program, err := os.ReadFile(exe)
	if err != nil {
		return fmt.Errorf("read own program: %w", err)
	}
	p.Build = fmt.Sprintf("%.8x", sha256.Sum256(program))
	_, err = publish.Measure(ctx, p.Head, file, harness.Again, stderr)
	return err
}
