package ringmiddleware

import (
	"bytes"
	"context"
	"net/http"
	"time"
)

// query is a GET or HEAD request.
type query struct {
	r    *http.Request
	key  string
	from audience
	asks directives
}

func newQuery(r *http.Request, key string) *query {
	return &query{r: r, key: key, from: audienceOf(r.Header), asks: directivesOf(r.Header)}
}

// passes reports whether a request bypasses the cache. A shared cache does not evaluate If-Match
// and If-Unmodified-Since.
func passes(r *http.Request) bool {
	return r.ContentLength != 0 || hasAny(r.Header, "Upgrade", "If-Match", "If-Unmodified-Since") ||
		directivesOf(r.Header).hasAny("no-store")
}

// found is an entry with its present age.
type found struct {
	entry
	now time.Duration
}

// left returns the remaining time for which the entry is fresh; it is stale if this is 0 or less.
func (f *found) left() time.Duration { return f.lifetime - f.now }

// clone returns a copy with its own body.
func (f *found) clone() *found {
	c := *f
	c.body = bytes.Clone(f.body)
	return &c
}

// use says how an entry may be used.
type use int

const (
	nothing       use = iota
	ifError           // served if the handler fails
	whileUpdating     // served, while the handler is called for a new one
	fully
)

// use returns how the request may use an entry, and unless it is fully, the reason in the terms of
// Cache-Status.
func (q *query) use(f *found) (u use, why string) {
	if f.audience < q.from {
		return nothing, "bypass"
	}
	if q.asks.hasAny("no-cache") {
		return nothing, "request"
	}
	most, restricted := q.asks.time("max-age")
	if restricted && f.now > most {
		return nothing, "request"
	}
	least, ok := q.asks.time("min-fresh")
	restricted = restricted || ok
	switch left := f.left(); {
	case left > 0 && left >= least:
		return fully, ""
	case left > 0 || restricted:
		return nothing, "request"
	case -left < f.whileRevalidate:
		return whileUpdating, "stale"
	case -left < f.ifError:
		return ifError, "stale"
	}
	return nothing, "stale"
}

// alone reports whether the request must not share the response to an equal one, because a call
// that began earlier may return a response that is too old for it.
func (q *query) alone() bool { return q.asks.hasAny("no-cache", "max-age", "min-fresh") }

// conditions are the headers that may make the handler omit the body.
var conditions = []string{"If-None-Match", "If-Modified-Since", "If-Range"}

// inFull returns a copy of the request with another context and without conditions, so that the
// handler makes the whole response.
func (q *query) inFull(ctx context.Context) *http.Request {
	r := q.r.Clone(ctx)
	for _, name := range conditions {
		r.Header.Del(name)
	}
	return r
}

// inBackground returns a query that may outlive its request.
func (q *query) inBackground(ctx context.Context) *query {
	r := q.inFull(ctx)
	r.Method, r.Body = http.MethodGet, http.NoBody
	r.Header.Del("Range")
	return &query{r: r, key: q.key, from: q.from}
}
