package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache"
)

// clients request pages, check the responses, and count.
type clients struct {
	cfg    config
	origin *origin
	url    string
	http   *http.Client

	requests, wrong       atomic.Int64
	hits, joined, handled atomic.Int64 // answered from the cache, by another's call, by their own
	stored                atomic.Int64 // of those that the handler has answered
	notModified           atomic.Int64 // answers of 304
	received              atomic.Int64 // bytes
	took                  time.Duration
}

// browse runs all clients concurrently.
func (c *clients) browse() error {
	start := time.Now()
	errs := make([]error, c.cfg.clients)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = c.browseAs(i) })
	}
	wg.Wait()
	c.took = time.Since(start)
	return errors.Join(errs...)
}

// browseAs makes the requests of client i. Every other client is German. All prefer the same
// pages, and store the ETag of each page that they have.
func (c *clients) browseAs(i int) error {
	lang := []string{"en", "de"}[i%2]
	rnd := rand.New(rand.NewPCG(3, uint64(i)))
	popular := rand.NewZipf(rnd, 1.1, 1, uint64(c.cfg.pages-1))
	seen := make(map[int]string)
	for range c.cfg.requests {
		n := int(popular.Uint64())
		etag := seen[n]
		if rnd.IntN(2) == 0 { // it has been dropped meanwhile
			etag = ""
		}
		now, err := c.get(n, lang, etag)
		if err != nil {
			return fmt.Errorf("get page %d: %w", n, err)
		}
		seen[n] = now
	}
	return nil
}

// get requests page n unless it still has this ETag. It checks the response and returns the
// current ETag of the page.
func (c *clients) get(n int, lang, etag string) (now string, err error) {
	req, err := http.NewRequest(http.MethodGet, c.url+pagePath(n), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept-Language", lang)
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	now = resp.Header.Get("ETag")
	c.note(resp.StatusCode, resp.Header.Get("Cache-Status"), len(body))
	if !c.right(n, lang, etag, resp.StatusCode, now, body) {
		c.wrong.Add(1)
	}
	return now, nil
}

// note counts a response by its Cache-Status.
func (c *clients) note(code int, status string, bytes int) {
	c.requests.Add(1)
	c.received.Add(int64(bytes))
	switch {
	case strings.Contains(status, "; hit"):
		c.hits.Add(1)
	case strings.Contains(status, "; collapsed"):
		c.joined.Add(1)
	default:
		c.handled.Add(1)
		if strings.Contains(status, "; stored") {
			c.stored.Add(1)
		}
	}
	if code == http.StatusNotModified {
		c.notModified.Add(1)
	}
}

// right reports whether a response could have come from the handler.
func (c *clients) right(n int, lang, asked string, code int, etag string, body []byte) bool {
	p := &c.origin.pages[n]
	wantBody, wantETag := p.in(lang)
	if wantETag != "" && etag != wantETag { // the cache may add one
		return false
	}
	if code == http.StatusNotModified {
		return asked != "" && asked == etag
	}
	return code == http.StatusOK && bytes.Equal(body, wantBody)
}

// report prints the table. A MB is 2^20 bytes throughout.
func (c *clients) report(out io.Writer, cache *ringcache.Cache) error {
	requests := c.requests.Load()
	rows := []struct{ name, value string }{
		{"requests", fmt.Sprint(requests)},
		{"from the cache", ofAll(c.hits.Load(), requests)},
		{"with another's request", ofAll(c.joined.Load(), requests)},
		{"by the handler", ofAll(c.handled.Load(), requests)},
		{"  of these stored", fmt.Sprint(c.stored.Load())},
		{"answered with 304", ofAll(c.notModified.Load(), requests)},
		{"wrong", fmt.Sprint(c.wrong.Load())},
		{"bytes from the handler", megabytes(c.origin.bytes.Load())},
		{"bytes to clients", megabytes(c.received.Load())},
		{"entries in the cache", fmt.Sprint(cache.Len())},
		{"time", fmt.Sprint(c.took.Round(time.Millisecond))},
	}
	_, err := fmt.Fprintf(out, "%d pages, cache of %d MB, %d clients\n\n", c.cfg.pages,
		c.cfg.maxBytes/mb, c.cfg.clients)
	for _, r := range rows {
		if err == nil {
			_, err = fmt.Fprintf(out, "%-24s %14s\n", r.name, r.value)
		}
	}
	return err
}

func ofAll(n, all int64) string {
	return fmt.Sprintf("%d (%.0f %%)", n, 100*float64(n)/float64(all))
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/mb) }
