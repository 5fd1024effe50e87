package main

import (
	"fmt"
	"io"
	"time"

	"github.com/ringcache/ringcache"
)

// report prints the table. A MB is 2^20 bytes throughout.
func (w *world) report(out io.Writer) error {
	var cs ringcache.Stats
	w.front.cache.UpdateStats(&cs)
	c := &w.front.count
	requests, misses, stored := w.requests.Load(), c.misses.Load(), c.stored.Load()

	rows := []struct{ name, value string }{
		{"requests", fmt.Sprint(requests)},
		{"hits", ofAll(c.hits.Load(), requests)},
		{"misses", ofAll(misses, requests)},
		{"  of these stored", fmt.Sprint(stored)},
		{"  not to be stored", fmt.Sprint(misses - stored)},
		{"answered with 304", ofAll(c.notModified.Load(), requests)},
		{"wrong", fmt.Sprint(w.wrong.Load())},
		{"requests to the server", ofAll(w.origin.requests.Load(), requests)},
		{"bytes from the server", megabytes(c.fetched.Load())},
		{"  saved by hits", megabytes(c.hitBytes.Load())},
		{"bytes to clients", megabytes(w.received.Load())},
		{"  saved by 304", megabytes(c.spared.Load())},
		{"responses in the cache", fmt.Sprint(cs.EntriesCount)},
		{"live bytes", megabytes(int64(cs.BytesSize))},
		{"page 0 is good for", w.left(0)},
		{"time", fmt.Sprint(w.took.Round(time.Millisecond))},
	}
	_, err := fmt.Fprintf(out, "%d pages, cache of %d MB, %d clients\n\n", w.cfg.pages, w.cfg.maxBytes/mb, w.cfg.clients)
	for _, r := range rows {
		if err == nil {
			_, err = fmt.Fprintf(out, "%-24s %14s\n", r.name, r.value)
		}
	}
	return err
}

// left returns how long a page stays in the cache at the most.
func (w *world) left(n int) string {
	left, ok := w.front.cache.TTL(keyOf(w.url.Host, pagePath(n)))
	if !ok {
		return "-"
	}
	return left.Round(time.Second).String()
}

func ofAll(n, all int64) string { return fmt.Sprintf("%d (%.0f %%)", n, 100*float64(n)/float64(all)) }

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/mb) }
