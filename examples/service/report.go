package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// compare lets clients loose on the service without and with the cache.
func compare(ctx context.Context, cfg config, out io.Writer) error {
	var sides [2]result
	for i := range sides {
		cfg.cached = i == 1
		s, err := start(ctx, cfg, "127.0.0.1:0")
		if err != nil {
			return err
		}
		if sides[i], err = ask(ctx, cfg, s); err != nil {
			s.stop()
			return err
		}
		if err := s.stop(); err != nil {
			return err
		}
	}
	if err := report(out, cfg, sides); err != nil {
		return err
	}
	if n := sides[0].stale + sides[1].stale; n > 0 {
		return fmt.Errorf("verify answers: %d products were older than before", n)
	}
	return nil
}

// report prints the table.
func report(out io.Writer, cfg config, sides [2]result) error {
	b := new(strings.Builder)
	fmt.Fprintf(b, "%d clients ask for some of %d products for %v each way. Of a thousand "+
		"requests\n%d are for lists, %d for what does not exist, %d are writes. Clients, "+
		"service and database\nshare this machine.\n\n",
		cfg.clients, cfg.products, cfg.span, askList, askAbsent, askWrite)
	fmt.Fprintf(b, "%-20s %14s %14s\n", "", "without cache", "with cache")
	for _, row := range []struct {
		name   string
		figure func(r result) string
	}{
		{"requests a second", func(r result) string {
			return fmt.Sprintf("%.0f", float64(r.requests)/r.span.Seconds())
		}},
		{"p50", func(r result) string { return microseconds(r.quantile(0.50)) }},
		{"p99", func(r result) string { return microseconds(r.quantile(0.99)) }},
		{"database queries", func(r result) string { return fmt.Sprint(r.queries) }},
		{"queries a request", func(r result) string {
			return fmt.Sprintf("%.3f", float64(r.queries)/float64(max(1, r.requests)))
		}},
		{"hit ratio", func(r result) string { return fmt.Sprintf("%.1f %%", 100*r.hits) }},
		{"stale answers", func(r result) string { return fmt.Sprint(r.stale) }},
	} {
		fmt.Fprintf(b, "%-20s %14s %14s\n", row.name, row.figure(sides[0]), row.figure(sides[1]))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func microseconds(d time.Duration) string { return fmt.Sprintf("%d µs", d.Microseconds()) }
