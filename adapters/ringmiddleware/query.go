package ringmiddleware

import (
	"bytes"
	"context"
	"net/http"
	"time"
)

// query is a GET or HEAD request, and what it asks of a cache.
type query struct {
	r    *http.Request
	key  string
	from audience
	asks directives
}

func newQuery(r *http.Request, key string) *query {
	return &query{r: r, key: key, from: audienceOf(r.Header), asks: directivesOf(r.Header)}
}

// passes reports whether a request has to go to the handler and says nothing about what is
// kept. If-Match and If-Unmodified-Since are not for a cache to judge.
func passes(r *http.Request) bool {
	return r.ContentLength != 0 || hasAny(r.Header, "Upgrade", "If-Match", "If-Unmodified-Since") ||
		directivesOf(r.Header).hasAny("no-store")
}

// found is an entry, and how old it is now.
type found struct {
	entry
	now time.Duration
}

// left returns how long the entry is still fresh; it is stale from 0 on.
func (f *found) left() time.Duration { return f.lifetime - f.now }

// clone returns what does not change when the buffer of the body does.
func (f *found) clone() *found {
	c := *f
	c.body = bytes.Clone(f.body)
	return &c
}

// use says what an entry is good for.
type use int

const (
	nothing       use = iota
	ifError           // it may be served should the handler fail
	whileUpdating     // it may be served, and the handler is to be asked for a new one
	fully
)

// use returns what an entry is good for to the request, and if that is not all, the reason in
// the words of Cache-Status.
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

// alone reports whether the request must not wait for an equal one that is with the handler:
// that one may have been sent before, and what it brings is not new enough.
func (q *query) alone() bool { return q.asks.hasAny("no-cache", "max-age", "min-fresh") }

// conditions would have the handler answer with less than the whole response.
var conditions = []string{"If-None-Match", "If-Modified-Since", "If-Range"}

// inFull returns the request for the whole response, with another context. The copy does not
// change with the original.
func (q *query) inFull(ctx context.Context) *http.Request {
	r := q.r.Clone(ctx)
	for _, name := range conditions {
		r.Header.Del(name)
	}
	return r
}

// inBackground returns a query that outlives its request.
func (q *query) inBackground(ctx context.Context) *query {
	r := q.inFull(ctx)
	r.Method, r.Body = http.MethodGet, http.NoBody
	r.Header.Del("Range")
	return &query{r: r, key: q.key, from: q.from}
}
