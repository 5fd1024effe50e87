package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/machine"
)

// A machine that hides its hardware counters still tells what it does: valgrind runs
// a program on a simulated processor and counts. Its predictor of branches is
// simpler than a real one.

// counts are what a call takes.
type counts struct{ instructions, branches, mispredicted float64 }

// counted is what a process counts: so many calls of an operation at a scale.
type counted struct {
	Entries, Value int
	Operation      string // none: only what drawing a key takes
	Calls          int
}

// Fewer calls and more of them: what they differ by is free of all else.
const (
	fewCalls  = 20_000
	manyCalls = 120_000
	counter   = "valgrind"
	tries     = 5 // the Go runtime and valgrind do not always get along
)

// do is what the process does that is counted.
func (c counted) do() (struct{}, error) {
	b, err := newBench(scale{c.Entries, c.Value})
	if err != nil {
		return struct{}{}, err
	}
	defer b.cache.Close()
	op, err := c.find(b)
	if err != nil {
		return struct{}{}, err
	}
	for range c.Calls / op.times {
		op.call(b)
	}
	if b.missed > b.calls/1000 {
		return struct{}{}, fmt.Errorf("%s: %d of %d calls went wrong", c.Operation, b.missed, b.calls)
	}
	return struct{}{}, nil
}

// find returns the operation, for which b is ready.
func (c counted) find(b *bench) (operation, error) {
	if c.Operation == "" {
		return operation{times: 1, call: func(b *bench) { b.keyOf(b.key, b.draw()) }}, nil
	}
	i := slices.IndexFunc(operations, func(op operation) bool { return op.name == c.Operation })
	if i < 0 {
		return operation{}, fmt.Errorf("no operation %q", c.Operation)
	}
	if operations[i].name == newKey {
		b.fill()
	}
	return operations[i], nil
}

// count counts in its own process, and returns totals.
func (c counted) count(ctx context.Context) (counts, error) {
	var err error
	for range tries {
		var none struct{}
		var said string
		said, err = cli.AgainUnder(ctx,
			[]string{counter, "--tool=callgrind", "--branch-sim=yes", "--callgrind-out-file=" + os.DevNull},
			c, &none, "GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1")
		if errors.Is(err, exec.ErrNotFound) || ctx.Err() != nil {
			return counts{}, err
		}
		if err != nil {
			continue
		}
		var n counts
		if n, err = parseCounts(said); err == nil {
			return n, nil
		}
	}
	return counts{}, err
}

// collected is the line of sums: instructions, conditional branches, of them
// mispredicted, indirect ones, of them mispredicted.
var collected = regexp.MustCompile(`Collected : (\d+) (\d+) (\d+) (\d+) (\d+)`)

func parseCounts(text string) (counts, error) {
	m := collected.FindStringSubmatch(text)
	if m == nil {
		return counts{}, fmt.Errorf("%s said nothing of counts: %.200q", counter, text)
	}
	var n [5]float64
	for i, s := range m[1:] {
		n[i], _ = strconv.ParseFloat(s, 64) // the expression lets nothing else through
	}
	return counts{n[0], n[1] + n[3], n[2] + n[4]}, nil
}

// perCall returns what one more call takes.
func (c counted) perCall(ctx context.Context) (counts, error) {
	c.Calls = fewCalls
	few, err := c.count(ctx)
	if err != nil {
		return counts{}, err
	}
	c.Calls = manyCalls
	many, err := c.count(ctx)
	if err != nil {
		return counts{}, err
	}
	const n = manyCalls - fewCalls
	return counts{
		(many.instructions - few.instructions) / n,
		(many.branches - few.branches) / n,
		(many.mispredicted - few.mispredicted) / n,
	}, nil
}

// countDocument counts all operations at some scales.
func countDocument(ctx context.Context, scales []scale, args []string) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# What operations take\n\n%s\n",
		machine.This().Header("go run ./cmd/floor "+strings.Join(args, " "), nil))
	b.WriteString(
		"Instructions and branches of ringcache for a key, and how many of these a simple " +
			"predictor gets wrong, counted by valgrind's\n" +
			"callgrind, less what drawing a random key takes.\n\n")
	b.WriteString("| entries | value | operation | instructions | branches | mispredicted |\n" +
		"|--:|--:|---|--:|--:|--:|\n")
	for _, s := range scales {
		c := counted{Entries: s.entries, Value: s.value}
		idle, err := c.perCall(ctx)
		if err != nil {
			return nil, fmt.Errorf("count instructions: %w", err)
		}
		for _, op := range operations {
			c.Operation = op.name
			n, err := c.perCall(ctx)
			if err != nil {
				return nil, fmt.Errorf("count instructions of %s: %w", op.name, err)
			}
			fmt.Fprintf(&b, "| %d | %d | %s | %.0f | %.0f | %.1f |\n", s.entries, s.value, op.name,
				n.instructions-idle.instructions, n.branches-idle.branches,
				max(0, n.mispredicted-idle.mispredicted))
		}
	}
	return b.Bytes(), nil
}

// small returns the scales at which counting does not take long.
func small(scales []scale) []scale {
	return slices.DeleteFunc(slices.Clone(scales), func(s scale) bool { return s.bytes() > 4<<20 })
}
