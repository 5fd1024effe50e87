// Command floor measures what memory itself takes, and how far above that the
// cache's operations are at several scales: how long the processor waits for
// a cache line when it cannot know the address before (the address lies in the line
// before), and how long when it can. No lookup that has to wait for n lines, one
// after the other, is faster than n of the former.
//
//	go run ./cmd/floor
//	go run ./cmd/floor -count   # instructions and mispredicted branches instead
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/machine"
	"github.com/ringcache/ringcache/bench/measure"
)

func main() { cli.Main("floor", run) }

// options is what the flags say.
type options struct {
	maxMB    int
	rounds   int
	duration time.Duration
	file     string
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if is, err := cli.Part(args, stdout, counted.do); is {
		return err
	}
	var o options
	fs := flag.NewFlagSet("floor", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.IntVar(&o.maxMB, "max", 1024, "largest working set in `MB`")
	fs.IntVar(&o.rounds, "rounds", 5, "measurements of which the median counts")
	fs.DurationVar(&o.duration, "duration", 50*time.Millisecond, "time of one measurement")
	ops := fs.String("ops",
		"8192x100,262144x100,4000000x100,10000000x100,2048x1000,65536x1000,1000000x1000",
		"`entries x bytes` of the caches on which operations are timed; none if empty")
	count := fs.Bool("count", false,
		"instead, count instructions and mispredicted branches with valgrind, on caches of up to 4 MB: "+
			"a minute")
	fs.StringVar(&o.file, "o", "", "write the Markdown to this `file` instead of standard output")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 || o.maxMB < 1 || o.rounds < 1 || o.duration <= 0 {
		return errors.New("-max, -rounds and -duration must be above 0, and no argument may follow")
	}
	var scales []scale
	if *ops != "" {
		var err error
		if scales, err = parseScales(*ops); err != nil {
			return err
		}
	}
	if *count {
		text, err := countDocument(ctx, small(scales), args)
		if err != nil {
			return err
		}
		return cli.Write(o.file, stdout, text)
	}
	sets := workingSets(cacheSizes(), o.maxMB<<20)
	fmt.Fprintf(stderr, "%d working sets, about %v\n", len(sets), o.estimate(sets).Round(time.Second))
	rows, err := o.measure(ctx, sets)
	if err != nil {
		return err
	}
	var timed []opRow
	for _, s := range scales {
		fmt.Fprintf(stderr, "operations on %d entries of %d bytes\n", s.entries, keyBytes+s.value)
		r, err := o.operate(ctx, s)
		if err != nil {
			return fmt.Errorf("time operations on %d entries: %w", s.entries, err)
		}
		timed = append(timed, r...)
	}
	return cli.Write(o.file, stdout,
		document("go run ./cmd/floor "+strings.Join(args, " "), rows, timed))
}

// set is a working set.
type set struct {
	name  string
	bytes int
}

// workingSets returns half of each of the processor's caches, which leaves room for
// all else, and memory from 64 MB up to most.
func workingSets(caches []cache, most int) []set {
	var sets []set
	for _, c := range caches {
		sets = append(sets, set{fmt.Sprintf("half of L%d, %s", c.level, size(c.bytes/2)), c.bytes / 2})
	}
	for bytes := 64 << 20; bytes <= 1<<30; bytes *= 2 {
		sets = append(sets, set{size(bytes), bytes})
	}
	sets = slices.DeleteFunc(sets, func(s set) bool { return s.bytes > most })
	slices.SortStableFunc(sets, func(a, b set) int { return cmp.Compare(a.bytes, b.bytes) })
	return sets
}

func size(bytes int) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%d GB", bytes>>30)
	case bytes >= 1<<20:
		return fmt.Sprintf("%d MB", bytes>>20)
	}
	return fmt.Sprintf("%d KB", bytes>>10)
}

// estimate is mostly what laying the lines out takes: two random accesses each.
func (o *options) estimate(sets []set) time.Duration {
	var total time.Duration
	for _, s := range sets {
		total += 2*time.Duration(s.bytes/lineBytes)*150*time.Nanosecond +
			4*time.Duration(o.rounds)*o.duration
	}
	return total
}

// row is what a working set takes on each kind of page.
type row struct {
	set
	small, large figures
}

// figures are nanoseconds an access. All are 0 where there are no such pages.
type figures struct{ dependent, independent measure.Summary }

func (o *options) measure(ctx context.Context, sets []set) ([]row, error) {
	var rows []row
	for _, s := range sets {
		r := row{set: s}
		for _, large := range []bool{false, true} {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			f, err := o.walk(s.bytes, large)
			if err != nil {
				return nil, fmt.Errorf("measure %s: %w", s.name, err)
			}
			if large {
				r.large = f
			} else {
				r.small = f
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// walk measures one working set on one kind of page.
func (o *options) walk(bytes int, large bool) (f figures, err error) {
	m, err := newMemory(bytes, large)
	if err != nil {
		return f, err
	}
	defer m.free()
	lay(m.words)
	if large && !m.isLarge() {
		return f, nil
	}
	var dependent, independent []float64
	for range o.rounds {
		dependent = append(dependent, timed(o.duration, m.words, chase))
		independent = append(independent, timed(o.duration, m.words, scatter))
	}
	return figures{measure.Summarize(dependent), measure.Summarize(independent)}, nil
}

func document(command string, rows []row, ops []opRow) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# What memory takes\n\n%s\n",
		machine.This().Header(strings.TrimSpace(command), nil))
	b.WriteString(
		"Nanoseconds for a cache line of a working set at random, on one core: medians, with the " +
			"lowest and the highest in brackets.\n" +
			"Dependent: its address lies in the line before. Independent: it is known before, so that " +
			"many are under way at once; in the\n" +
			"caches that is what computing the addresses takes.\n\n")
	b.WriteString(
		"| working set | dependent, 4 KB pages | independent, 4 KB pages | dependent, large pages | " +
			"independent, large pages |\n" +
			"|---|--:|--:|--:|--:|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s |", r.name)
		for _, s := range []measure.Summary{r.small.dependent, r.small.independent, r.large.dependent,
			r.large.independent} {
			fmt.Fprintf(&b, " %s |", text(s))
		}
		b.WriteByte('\n')
	}
	if len(rows) > 0 {
		last := rows[len(rows)-1]
		fmt.Fprintf(&b, "\nIn %s a Get that waits for a line of its index and then for its record "+
			"takes at least %.0f ns", last.name, 2*last.small.dependent.Median)
		if last.large.dependent.N > 0 {
			fmt.Fprintf(&b, ", %.0f ns on large pages", 2*last.large.dependent.Median)
		}
		fmt.Fprintf(&b, ";\none of many that are under way at once, %.0f ns.\n",
			2*last.small.independent.Median)
	}
	if len(ops) > 0 {
		operationsTable(&b, ops)
	}
	return b.Bytes()
}

func text(s measure.Summary) string {
	if s.N == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f (%.1f-%.1f)", s.Median, s.Min, s.Max)
}
