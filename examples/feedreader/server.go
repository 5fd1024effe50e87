package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"text/template"
	"time"
)

// The kinds of feeds, in turn.
const (
	quiet    = iota // never changes, has an ETag
	busy            // has a new article each round, an ETag and Last-Modified
	edited          // has an article changed each round, and Last-Modified
	careless        // has no new article, no ETag and no Last-Modified
	patient         // has a new article each round, but asks readers to wait an hour
	kinds
)

// feed is the document served under one path. Every other feed is Atom.
type feed struct {
	kind     int
	atom     bool
	articles []article // newest first
	changes  int       // how often it has changed
	text     []byte
}

type article struct {
	ID    int
	Title string
	HTML  string
}

// server serves feeds. They change only in advance, never while they are being served.
type server struct {
	feeds    []feed
	rnd      *rand.Rand
	articles int // made so far
	requests atomic.Int64
}

// newServer makes feeds with a number of articles. They are the same in every
// run.
func newServer(feeds, articles int) (*server, error) {
	s := &server{feeds: make([]feed, feeds), rnd: rand.New(rand.NewPCG(1, 2))}
	for i := range s.feeds {
		f := &s.feeds[i]
		f.kind, f.atom = i%kinds, i%2 == 1
		for range articles {
			f.articles = append(f.articles, s.newArticle())
		}
		if err := f.render(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// newArticle writes an article of 1 to 3 KB.
func (s *server) newArticle() article {
	s.articles++
	var html strings.Builder
	for range 5 + s.rnd.IntN(10) {
		fmt.Fprintf(&html, "<p>Of %d & <b>%d</b>,%s.</p>\n", s.rnd.Uint32(), s.rnd.Uint32(),
			strings.Repeat(" and so on", 15))
	}
	return article{s.articles, fmt.Sprintf("Article <%d>", s.articles), html.String()}
}

// advance moves time on to the next round.
func (s *server) advance() error {
	for i := range s.feeds {
		f := &s.feeds[i]
		switch f.kind {
		case busy, patient:
			copy(f.articles[1:], f.articles)
			f.articles[0] = s.newArticle()
		case edited:
			f.articles[len(f.articles)/2].HTML += "<p>A word more.</p>"
		case careless: // its text is rendered again all the same
		default:
			continue
		}
		f.changes++
		if err := f.render(); err != nil {
			return err
		}
	}
	return nil
}

// changed returns when the feed was changed last. Rounds are hours apart.
func (f *feed) changed() time.Time {
	return time.Date(2026, time.January, 1, f.changes, 0, 0, 0, time.UTC)
}

// render makes the feed's text.
func (f *feed) render() error {
	form := rssForm
	if f.atom {
		form = atomForm
	}
	var b bytes.Buffer
	err := form.Execute(&b, map[string]any{"Date": f.changed(), "Articles": f.articles})
	f.text = b.Bytes()
	if err != nil {
		return fmt.Errorf("write feed: %w", err)
	}
	return nil
}

var rssForm = template.Must(template.New("RSS").Parse(`<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0"><channel>
<title>News</title><link>http://feed.test/</link><description>What is new</description>
<lastBuildDate>{{.Date.Format "Mon, 02 Jan 2006 15:04:05 GMT"}}</lastBuildDate>
{{range .Articles}}<item><guid isPermaLink="false">{{.ID}}</guid><title>{{html .Title}}</title>
<link>http://feed.test/{{.ID}}</link><description>{{html .HTML}}</description></item>
{{end}}</channel></rss>
`))

var atomForm = template.Must(template.New("Atom").Parse(`<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<title>News</title><id>http://feed.test/</id>
<updated>{{.Date.Format "2006-01-02T15:04:05Z"}}</updated>
{{range .Articles}}<entry><id>{{.ID}}</id><title>{{html .Title}}</title>
<link href="http://feed.test/{{.ID}}"/><content type="html">{{html .HTML}}</content></entry>
{{end}}</feed>
`))

func feedPath(i int) string { return fmt.Sprintf("/feed/%d", i) }

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	var i int
	if _, err := fmt.Sscanf(r.URL.Path, "/feed/%d", &i); err != nil || i < 0 || i >= len(s.feeds) {
		http.NotFound(w, r)
		return
	}
	f := &s.feeds[i]
	var modified time.Time // none
	switch f.kind {
	case quiet, busy:
		w.Header().Set("ETag", fmt.Sprintf(`"%d"`, f.changes))
	case patient:
		w.Header().Set("Cache-Control", "max-age=3600")
	}
	if f.kind == busy || f.kind == edited {
		modified = f.changed()
	}
	w.Header().Set("Content-Type", "application/xml")
	http.ServeContent(w, r, "", modified, bytes.NewReader(f.text)) // or 304
}
