// Command hitratio replays recorded traces and synthetic loads read-through on
// ringcache and its rivals, and prints Markdown tables of hit ratios: at equal
// capacity in bytes of keys and values, and at equal memory of the process. Each
// replay has its own process.
//
//	go run ./cmd/hitratio -quick
//	go run ./cmd/hitratio -traces DIR -o result.md -csv result.csv
//	go run ./cmd/hitratio -publish -traces DIR
package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/hitratio"
	"github.com/ringcache/ringcache/bench/machine"
)

func main() { cli.Main("hitratio", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if is, err := cli.Part(args, stdout, hitratio.Run); is {
		return err
	}
	if slices.Contains(args, "-publish") {
		return publishAll(ctx, args, stderr)
	}
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	c := &comparison{options: o, out: stderr}
	if err := c.plan(ctx); err != nil {
		return err
	}
	interrupted := c.replay(ctx) // what is there is written all the same
	d := document{
		machine:    machine.This(),
		command:    strings.TrimSpace("go run ./cmd/hitratio " + strings.Join(args, " ")),
		options:    o,
		results:    c.results,
		unplanned:  c.unplanned,
		incomplete: interrupted != nil,
	}
	return errors.Join(interrupted, d.write(stdout), d.failure())
}
