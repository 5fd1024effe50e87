package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// sides are the services that are compared, in the order of the table's columns.
var sides = [...]struct {
	name             string
	cached, compress bool
}{
	{name: "without cache"},
	{name: "with cache", cached: true},
	{name: "compressed", cached: true, compress: true},
}

// results are the measurements of the clients for each side.
type results [len(sides)]result

// compare runs clients against the sides, one after another. They share one database; each cache is
// new.
func compare(ctx context.Context, cfg config, out io.Writer) error {
	dir, err := os.MkdirTemp(cfg.dir, "compare")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if cfg.dir == "" {
		cfg.dir = dir
	}
	var seen results
	for i, side := range sides {
		cfg.cached, cfg.compress = side.cached, side.compress
		cfg.file = filepath.Join(dir, side.name)
		if seen[i], err = measure(ctx, cfg); err != nil {
			return fmt.Errorf("%s: %w", side.name, err)
		}
	}
	if err := report(out, cfg, &seen); err != nil {
		return err
	}
	for i, r := range seen {
		if r.stale > 0 {
			return fmt.Errorf("verify answers: %s: %d products were older than before",
				sides[i].name, r.stale)
		}
	}
	return nil
}

// measure runs clients against a separate service.
func measure(ctx context.Context, cfg config) (result, error) {
	s, err := start(ctx, cfg, "127.0.0.1:0")
	if err != nil {
		return result{}, err
	}
	if s.shop != nil {
		err = warm(ctx, cfg, s.shop)
	}
	var r result
	if err == nil {
		r, err = ask(ctx, cfg, s)
	}
	if err != nil {
		s.stop()
		return r, err
	}
	return r, s.stop()
}

// rows are those of the table.
var rows = []struct {
	name   string
	figure func(r *result) string
}{
	{"requests a second", func(r *result) string {
		return fmt.Sprintf("%.0f", float64(r.requests)/r.span.Seconds())
	}},
	{"p50", func(r *result) string { return microseconds(r.quantile(0.50)) }},
	{"p99", func(r *result) string { return microseconds(r.quantile(0.99)) }},
	{"database queries", func(r *result) string { return fmt.Sprint(r.queries) }},
	{"queries a request", func(r *result) string {
		return fmt.Sprintf("%.3f", float64(r.queries)/float64(max(1, r.requests)))
	}},
	{"hit ratio", func(r *result) string { return fmt.Sprintf("%.1f %%", 100*r.hits) }},
	{"entries held", func(r *result) string { return fmt.Sprint(r.cache.EntriesCount) }},
	{"cold hits", func(r *result) string { return fmt.Sprint(r.cold) }},
	{"ratio", func(r *result) string {
		z := &r.cache.Compression
		return fmt.Sprintf("%.2f", float64(z.BytesBefore)/float64(max(z.BytesAfter, 1)))
	}},
	{"stale answers", func(r *result) string { return fmt.Sprint(r.stale) }},
}

// report prints the table.
func report(out io.Writer, cfg config, seen *results) error {
	b := new(strings.Builder)
	fmt.Fprintf(b, "%d clients ask for some of %d products for %v each way; the cache has %d MB. "+
		"Of a\nthousand requests %d are for lists, %d for what does not exist, %d are writes. "+
		"Clients,\nservice and database share this machine.\n\n",
		cfg.clients, cfg.products, cfg.span, cfg.cacheMB, askList, askAbsent, askWrite)
	fmt.Fprintf(b, "%-20s", "")
	for _, side := range sides {
		fmt.Fprintf(b, " %14s", side.name)
	}
	b.WriteByte('\n')
	for _, row := range rows {
		fmt.Fprintf(b, "%-20s", row.name)
		for i := range seen {
			fmt.Fprintf(b, " %14s", row.figure(&seen[i]))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func microseconds(d time.Duration) string { return fmt.Sprintf("%d µs", d.Microseconds()) }
