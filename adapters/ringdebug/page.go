package ringdebug

import (
	"bytes"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"html/template"
	"net/http"
	"time"

	"github.com/ringcache/ringcache"
)

// page is an answer. Its exported fields are the JSON.
type page struct {
	Time   time.Time
	Caches []*report `json:",omitempty"`
	Entry  *entry    `json:",omitempty"` // the key that was asked for

	query      query
	withValues bool
}

// add puts a report on the page.
func (p *page) add(r *report, c *ringcache.Cache) {
	if p.query.cache != "" {
		r.Namespaces = namespacesOf(c)
	}
	r.Notes = notesOf(r)
	p.Caches = append(p.Caches, r)
}

// setHeader sets what all answers have. Nothing is loaded by the page, no other site can frame it,
// and keys in its address reach no other site.
func setHeader(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Vary", "Accept")
	h.Set("X-Content-Type-Options", "nosniff")
}

// send writes the page.
func send(w http.ResponseWriter, p *page, asJSON bool) {
	var body bytes.Buffer
	contentType, write := "text/html; charset=utf-8", p.writeHTML
	if asJSON {
		contentType, write = "application/json", p.writeJSON
	}
	if err := write(&body); err != nil {
		fail(w, err, asJSON)
		return
	}
	w.Header().Set("Content-Type", contentType)
	if p.Entry != nil && !p.Entry.Found {
		w.WriteHeader(http.StatusNotFound)
	}
	_, _ = w.Write(body.Bytes()) // the client has gone
}

func (p *page) writeJSON(w *bytes.Buffer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(p)
}

//go:embed page.html
var pageHTML string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"bytes":   func(n any) string { return byteCount(asUint(n)).String() },
	"count":   func(n any) string { return grouped(asUint(n)) },
	"percent": percent,
	"age":     age,
	"ttl":     timeToLive,
	"cut":     cut,
	"dump":    dump,
}).Parse(pageHTML))

// view is what the template gets.
type view struct {
	*page
	Query      written
	Cache      *report // the one that is shown; nil: all are
	Forms      []string
	Groups     []group
	Settings   []row
	WithValues bool
	Name       string // of the cache; empty: all are shown
	Shown      []namespace
	More       int // namespaces that are not shown
}

// written is what was asked for, as the form has it.
type written struct{ Key, As, Namespace string }

// asWritten returns the key and the namespace as they were written, unless a person would not see
// what is in them.
func (q *query) asWritten() written {
	w := written{q.text, q.as, printable(q.in)}
	if printable(q.text) != q.text {
		w.Key, w.As = hex.EncodeToString(q.key), "hex"
	}
	return w
}

// shownNamespaces is how many namespaces the HTML shows. The JSON has all.
const shownNamespaces = 100

func (p *page) writeHTML(w *bytes.Buffer) error {
	q := p.query
	v := view{
		page: p, Query: q.asWritten(), Name: q.cache, Forms: forms,
		WithValues: p.withValues,
	}
	if q.cache != "" && p.Entry == nil {
		r := p.Caches[0]
		v.Cache, v.Groups, v.Settings = r, groupsOf(r), rowsOf(&r.Options)
		v.Shown = r.Namespaces[:min(len(r.Namespaces), shownNamespaces)]
		v.More = len(r.Namespaces) - len(v.Shown)
	}
	return pageTemplate.Execute(w, v)
}

// Watching reports whether the page is about a watched time.
func (p *page) Watching() bool { return p.query.watch > 0 }

// LookupRate returns the lookups of a second of the watched time.
func (r *report) LookupRate() string { return rate(r.Watched.Stats.GetCalls, r.Watched.Seconds) }
