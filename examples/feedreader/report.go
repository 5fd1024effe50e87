package main

import (
	"fmt"
	"io"
	"time"

	"github.com/ringcache/ringcache"
)

// report prints the results of each round, and the total cost for both readers.
// A MB is 2^20 bytes throughout.
func (w *world) report(out io.Writer) error {
	p := printer{out: out}
	p.line("%d feeds of %d articles, cache of %d MB, %d at a time\n", w.cfg.feeds, w.cfg.articles,
		w.cfg.maxBytes/mb, w.cfg.workers)
	p.line("%-6s %9s %9s %9s %9s %9s %9s %9s", "round", "skipped", "304", "fetched", "new", "changed",
		"unchanged", "bytes")
	for i, t := range w.rounds {
		p.line("%-6d %9d %9d %9d %9d %9d %9d %9s", i+1,
			t.skipped, t.notModified, t.fetched, t.added, t.changed, t.unchanged, megabytes(t.bytes))
	}

	a, b := &w.remembers, &w.forgets
	p.line("\n%-28s %12s %16s", "all rounds", "remembering", "remembering not")
	row := func(name string, value func(*subscriber) string) {
		p.line("%-28s %12s %16s", name, value(a), value(b))
	}
	row("feeds fetched", func(s *subscriber) string { return fmt.Sprint(s.sum.fetched) })
	row("bytes fetched", func(s *subscriber) string { return megabytes(s.sum.bytes) })
	row("articles parsed", func(s *subscriber) string { return fmt.Sprint(s.sum.articles()) })
	row("articles worked on",
		func(s *subscriber) string { return fmt.Sprint(s.sum.added + s.sum.changed) })
	row("words counted", func(s *subscriber) string { return fmt.Sprint(s.words.Load()) })
	row("allocated, server included",
		func(s *subscriber) string { return megabytes(int64(s.allocated)) })
	row("time", func(s *subscriber) string { return fmt.Sprint(s.took.Round(time.Millisecond)) })

	var cs ringcache.Stats
	a.reader.cache.UpdateStats(&cs)
	p.line("\nmemory of what is known")
	p.line("%-28s %12d", "entries in the cache", cs.EntriesCount)
	p.line("%-28s %12s", "their bytes", megabytes(int64(cs.BytesSize)))
	p.line("%-28s %12s", "reserved for them", megabytes(int64(cs.ReservedBytes)))
	p.line("%-28s %12s", "text that was delivered", megabytes(a.text.Load()))
	return p.err
}

// printer prints lines until one fails.
type printer struct {
	out io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format+"\n", args...)
	}
}

func megabytes(n int64) string { return fmt.Sprintf("%.2f MB", float64(n)/mb) }
