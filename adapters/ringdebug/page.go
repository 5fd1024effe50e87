package ringdebug

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"net/http"
	"time"

	"github.com/ringcache/ringcache"
)

// page is the answer to a request. Its exported fields are the JSON.
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

// setHeader sets the headers of all responses. The page loads nothing, other sites cannot frame it,
// and the keys in its URL are not sent to other sites.
func setHeader(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
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
	_, _ = w.Write(body.Bytes()) // an error means that the client has gone
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
	"ttl":     timeToLive,
	"cut":     cut,
	"dump":    dump,
}).Parse(pageHTML))

// view is the data of the template.
type view struct {
	*page
	Key        string  // as entered, printable
	Namespace  string  // as entered, printable
	Cache      *report // nil: the page shows all caches
	Groups     []group
	WithValues bool
	Name       string // of the cache; empty: all are shown
	Shown      []namespace
	More       int // namespaces that are not shown
}

// shownNamespaces is how many namespaces the HTML shows. The JSON has all.
const shownNamespaces = 100

func (p *page) writeHTML(w *bytes.Buffer) error {
	q := p.query
	v := view{
		page: p, Key: printable(q.text), Namespace: printable(q.in), Name: q.cache,
		WithValues: p.withValues,
	}
	if q.cache != "" && p.Entry == nil {
		r := p.Caches[0]
		v.Cache, v.Groups = r, groupsOf(r)
		v.Shown = r.Namespaces[:min(len(r.Namespaces), shownNamespaces)]
		v.More = len(r.Namespaces) - len(v.Shown)
	}
	return pageTemplate.Execute(w, v)
}

// Watching reports whether the page is the result of a watch.
func (p *page) Watching() bool { return p.query.watch > 0 }

// LookupRate returns the number of lookups per second in the watched time.
func (r *report) LookupRate() string {
	return rate(float64(r.Watched.Stats.GetCalls), r.Watched.Seconds)
}
