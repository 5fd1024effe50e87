// Command compare measures caches: every load on every store, each run in its own process, and
// prints one Markdown document of medians.
//
//	go run ./cmd/compare -quick
//	go run ./cmd/compare -loads dep-uniform,churn -stores ringcache,fastcache -o result.md
//	go run ./cmd/compare -publish       # the figures of the pages
//	go run ./cmd/compare -publish -h    # its flags
package main

import (
	"context"
	"io"
	"slices"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/compare"
)

func main() { cli.Main("compare", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if slices.Contains(args, "-publish") {
		return publishAll(ctx, args, stdout, stderr)
	}
	return compare.Program.Run(ctx, args, stdout, stderr)
}
