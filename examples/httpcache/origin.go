package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// page is the page of the handler under one path, in two languages. It is
// immutable.
type page struct {
	control string // Cache-Control
	etag    string // empty: none
	vary    bool   // the languages differ
	body    map[string][]byte
}

// kinds is the number of kinds of pages, which alternate.
const kinds = 8

// origin is the handler behind the cache.
type origin struct {
	pages    []page
	requests atomic.Int64
	bytes    atomic.Int64 // of the pages that it has answered with
}

// newOrigin makes a handler with n pages. They are the same in every run.
func newOrigin(n int, maxAge time.Duration) *origin {
	o := &origin{pages: make([]page, n)}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range o.pages {
		o.pages[i] = newPage(i, rnd, maxAge)
	}
	return o
}

// newPage creates page i. Most pages may be stored. In each group of pages, one
// must not be stored by a shared cache, one must not be stored at all, one exists
// in two languages, and one has no ETag.
func newPage(i int, rnd *rand.Rand, maxAge time.Duration) page {
	p := page{
		control: fmt.Sprintf("max-age=%d", maxAge/time.Second),
		etag:    fmt.Sprintf(`"%d"`, i),
		body:    map[string][]byte{},
	}
	switch i % kinds {
	case 4:
		p.control = "private, " + p.control
	case 5:
		p.control = "no-store"
	case 6:
		p.vary = true
	case 7:
		p.etag = ""
	}
	size := 500 + rnd.IntN(20_000)
	for _, lang := range []string{"en", "de"} {
		line := fmt.Sprintf("<p>Page %d in %s, number %d.</p>\n", i, lang, rnd.Uint64())
		p.body[lang] = bytes.Repeat([]byte(line), size/len(line)+1)
		if !p.vary { // both are one
			p.body["de"] = p.body["en"]
		}
	}
	return p
}

// in returns the page in a language, and its ETag.
func (p *page) in(lang string) (body []byte, etag string) {
	if p.vary {
		return p.body[lang], strings.TrimSuffix(p.etag, `"`) + lang + `"`
	}
	return p.body["en"], p.etag
}

func pagePath(i int) string { return fmt.Sprintf("/page/%d", i) }

func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.requests.Add(1)
	var i int
	if _, err := fmt.Sscanf(r.URL.Path, "/page/%d", &i); err != nil || i < 0 || i >= len(o.pages) {
		http.NotFound(w, r)
		return
	}
	p := &o.pages[i]
	body, etag := p.in(r.Header.Get("Accept-Language"))
	o.bytes.Add(int64(len(body)))
	header := w.Header()
	header.Set("Cache-Control", p.control)
	header.Set("Content-Type", "text/html; charset=utf-8")
	if p.vary {
		header.Set("Vary", "Accept-Language")
	}
	if etag != "" {
		header.Set("ETag", etag)
	}
	// It also returns 304 to clients that have the page.
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
