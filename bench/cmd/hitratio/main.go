// Command hitratio replays recorded traces and synthetic loads read-through on
// ringcache and its rivals, and prints Markdown tables of hit ratios: at equal
// capacity in bytes of keys and values, and at equal memory of the process. Each
// replay has a process of its own.
//
//	go run ./cmd/hitratio -quick
//	go run ./cmd/hitratio -traces DIR -o result.md -csv result.csv -charts ../docs/charts
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/ringcache/ringcache/bench/hitratio"
	"github.com/ringcache/ringcache/bench/machine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "hitratio:", err)
		stop()
		os.Exit(1)
	}
}

// childFlag makes the process perform the one replay that its value describes.
const childFlag = "-child"

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 2 && args[0] == childFlag {
		return child(args[1], stdout)
	}
	o, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
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

// child performs one replay and prints its outcome as one line.
func child(arg string, stdout io.Writer) error {
	var spec hitratio.Spec
	if err := json.Unmarshal([]byte(arg), &spec); err != nil {
		return fmt.Errorf("read replay: %w", err)
	}
	o, err := hitratio.Run(spec)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(o)
}
