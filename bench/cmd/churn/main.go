// Command churn overwrites, deletes, grows and invalidates entries in ringcache and its rivals,
// and prints one Markdown document: how many of the live entries are still found, what writes
// and reads cost, and how much memory the process takes. Each run has its own process, and
// the stores take turns.
//
//	go run ./cmd/churn -quick
//	go run ./cmd/churn -loads churn,grow -mb 64,256 -mean 100,400,4000 -o out.md -csv out.csv
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ringcache/ringcache/bench/churn"
	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/machine"
)

func main() { cli.Main("churn", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if is, err := cli.Part(args, stdout, churn.Run); is {
		return err
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
		machine:    machine.This(),
		command:    strings.TrimSpace("go run ./cmd/churn " + strings.Join(args, " ")),
		options:    o,
		results:    results,
		incomplete: interrupted != nil,
	}
	return errors.Join(interrupted, d.write(stdout), d.failure())
}

// failure reports failed runs as one error.
func (d *document) failure() error {
	failed := d.failures()
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d runs failed, the first: %s", len(failed), len(d.results), failed[0])
}
