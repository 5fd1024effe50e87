// Command compare runs every load on every store and prints one Markdown
// document. Each run has its own process, so that no store inherits
// another's heap; the stores take turns, in another order every round; and the
// tables show medians of the rounds.
//
//	go run ./cmd/compare -quick
//	go run ./cmd/compare -cpu 1,2 -o result.md -json result.json -csv result.csv \
//		-charts charts
//	go run ./cmd/compare -publish       # the figures of the pages
//	go run ./cmd/compare -publish -h    # its flags
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/machine"
	"github.com/ringcache/ringcache/bench/publish"
)

func main() { cli.Main("compare", run) }

// part is what a process measures that was started for it.
func part(p publish.Part) (map[string]float64, error) { return p.Do(context.Background()) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if is, err := cli.Part(args, stdout, part); is {
		return err
	}
	if slices.Contains(args, "-publish") {
		return publishAll(ctx, args, stdout, stderr)
	}
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	results, interrupted := o.runAll(ctx, stderr)
	if interrupted != nil && len(results) == 0 {
		return interrupted
	}
	d := document{ // what is there is written all the same
		Machine:    machine.This(),
		Command:    strings.TrimSpace("go run ./cmd/compare " + strings.Join(args, " ")),
		Options:    *o,
		Results:    results,
		Incomplete: interrupted != nil,
	}
	return errors.Join(interrupted, d.write(stdout), d.failure())
}

// failure reports failed runs as one error.
func (d *document) failure() error {
	failed := d.failures()
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d runs failed, the first: %s", len(failed), len(d.Results), failed[0])
}
