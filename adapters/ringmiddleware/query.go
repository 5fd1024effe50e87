package ringmiddleware

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
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
// and If-Unmodified-Since. Headers that Connection names are removed by a reverse proxy, which
// would then make a response that does not depend on them.
func passes(r *http.Request) bool {
	return r.ContentLength != 0 || hasAny(r.Header, "Upgrade", "If-Match", "If-Unmodified-Since") ||
		directivesOf(r.Header).hasAny("no-store") ||
		slices.ContainsFunc(list(r.Header.Values("Connection")), func(name string) bool {
			name = http.CanonicalHeaderKey(name)
			return r.Header[name] != nil && !slices.Contains(ofConnection, name)
		})
}

// found is an entry with its present age.
type found struct {
	entry
	now time.Duration
	use use // what the request that leads to a call has of it
}

// left returns the remaining time for which the entry is fresh; it is stale if this is 0 or less.
func (f *found) left() time.Duration { return f.lifetime - f.now }

// mayReplaceError reports whether the entry may be served if the handler fails, not only if it is
// unchanged.
func (f *found) mayReplaceError() bool { return f.use >= ifError && -f.left() < f.ifError }

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
	ifUnchanged       // served if the handler says that it is still the same
	ifError           // or if the handler fails
	whileUpdating     // served, while the handler is called for a new one
	fully
)

// use returns how the request may use an entry, and unless it is fully, the reason in the terms of
// Cache-Status.
func (q *query) use(f *found) (u use, why string) {
	if f.audience < q.from {
		return nothing, "bypass"
	}
	if f.validator != noValidator {
		u = ifUnchanged
	}
	if q.asks.hasAny("no-cache") {
		return u, "request"
	}
	most, restricted := q.asks.time("max-age")
	if restricted && f.now > most {
		return u, "request"
	}
	least, ok := q.asks.time("min-fresh")
	restricted = restricted || ok
	switch left := f.left(); {
	case left > 0 && left >= least:
		return fully, ""
	case left > 0 || restricted:
		return u, "request"
	case -left < f.whileRevalidate:
		return whileUpdating, "stale"
	case -left < f.ifError:
		return ifError, "stale"
	}
	return u, "stale"
}

// alone reports whether the request must not share the response to an equal one, because a call
// that began earlier may return a response that is too old for it.
func (q *query) alone() bool { return q.asks.hasAny("no-cache", "max-age", "min-fresh") }

// conditions are the headers that may make the handler omit the body.
var conditions = []string{"If-None-Match", "If-Modified-Since", "If-Range"}

// inFull returns a copy of the request with another context that asks for the whole response, or if
// old is not nil, for one that differs from old.
func (q *query) inFull(ctx context.Context, old *found) *http.Request {
	r := q.r.Clone(ctx)
	r.Method = http.MethodGet
	r.Header.Del("Range")
	for _, name := range conditions {
		r.Header.Del(name)
	}
	if old != nil {
		old.addConditions(r.Header)
	}
	return r
}

// inBackground returns a query that may outlive its request.
func (q *query) inBackground(ctx context.Context) *query {
	r := q.inFull(ctx, nil)
	r.Body = http.NoBody
	return &query{r: r, key: q.key, from: q.from}
}

// originForm returns the URL that the client sent without scheme and host, which it may send as if
// to a proxy. The rest is as sent, so that it is the same in both forms.
func originForm(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") {
		return r.RequestURI
	}
	_, rest, ok := strings.Cut(r.RequestURI, ":")
	if !ok { // none, or an asterisk
		return r.RequestURI
	}
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		rest = strings.TrimLeftFunc(after, func(c rune) bool { return c != '/' && c != '?' })
		if !strings.HasPrefix(rest, "/") {
			rest = "/" + rest
		}
	}
	return rest
}

// asInKey returns a request with the URL as [DefaultKey] has it. A handler might show the rest,
// which other requests with the key do not have: scheme, user, and capital letters in the host.
func asInKey(r *http.Request) *http.Request {
	u, host := r.URL, lower(r.Host)
	if u.Scheme == "" && u.Host == "" && u.User == nil && r.Host == host {
		return r
	}
	r = r.WithContext(r.Context()) // a copy
	r.URL = &url.URL{
		Path: u.Path, RawPath: u.RawPath, ForceQuery: u.ForceQuery, RawQuery: u.RawQuery}
	r.RequestURI, r.Host = originForm(r), host
	if r.URL.RequestURI() == r.RequestURI { // as sent, and "http://host" is sent without a path
		r.URL.Path = cmp.Or(r.URL.Path, "/")
	}
	return r
}
