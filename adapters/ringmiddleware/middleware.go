package ringmiddleware

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache"
)

// Options are the settings of a [Middleware]. The zero value of each field means its default.
type Options struct {
	// Prefix is prepended to all keys, so that other code can use the cache too. Handlers that
	// answer the same URLs differently need different prefixes in one cache. It must not contain a
	// zero byte.
	Prefix string

	// Key returns the cache key of a request, by default [DefaultKey]. Requests with the same key
	// may share responses. The key must not depend on the method. A request with an empty key
	// bypasses the cache.
	Key func(r *http.Request) string

	// TTL is the lifetime of responses that state none, for some status codes and requests (see the
	// README). Leave it at 0, the default, if a handler identifies clients by a header other than
	// Cookie and Authorization, such as an API key, and neither sends Cache-Control: private nor
	// names that header in Vary: clients might get each other's responses.
	TTL time.Duration

	// StaleWhileRevalidate is how long after its lifetime a response is served while the handler makes
	// a new one in the background. The default, 0, means never; routers must support it: see
	// [Middleware.Handler]. StaleIfError is how long one is served if the handler returns 500, 502,
	// 503 or 504, unless the request asks for a newer one. With 0, the default, only responses with a
	// stale-if-error directive are.
	//
	// Both apply to responses without the directive of that name and without must-revalidate,
	// proxy-revalidate, no-cache and s-maxage. After a failure, most requests get the stale
	// response at once during a pause: a second, doubled with each further failure, but at most 1/8
	// of the longer time and RevalidateTimeout.
	StaleWhileRevalidate time.Duration
	StaleIfError         time.Duration

	// RevalidateTimeout is the deadline of background calls of the handler, 30 seconds by default.
	// No request waits for them.
	RevalidateTimeout time.Duration

	// MaxBody is the length in bytes of the longest body that is stored, 1 MB by default; longer
	// ones pass through. 1/16 of the cache's bound is a limit too. A response in progress may use
	// several times as much memory.
	MaxBody int

	// Status is the name of this cache in the Cache-Status header (RFC 9211), which reports how the
	// cache handled the request. It may contain ASCII letters, digits and - . _ only. By default,
	// none is added.
	Status string
}

const (
	defaultRevalidateTimeout = 30 * time.Second
	defaultMaxBody           = 1 << 20
)

// withDefaults returns the options with defaults filled in, or an error that names the field.
func (o Options) withDefaults() (Options, error) {
	switch {
	case strings.ContainsRune(o.Prefix, 0):
		return o, invalid("Prefix is %q, must not have a zero byte", o.Prefix)
	case o.TTL < 0:
		return o, invalid("TTL is %v, must be at least 0", o.TTL)
	case o.StaleWhileRevalidate < 0:
		return o, invalid("StaleWhileRevalidate is %v, must be at least 0", o.StaleWhileRevalidate)
	case o.StaleIfError < 0:
		return o, invalid("StaleIfError is %v, must be at least 0", o.StaleIfError)
	case o.RevalidateTimeout < 0:
		return o, invalid("RevalidateTimeout is %v, must be at least 0", o.RevalidateTimeout)
	case o.MaxBody < 0:
		return o, invalid("MaxBody is %d, must be at least 0", o.MaxBody)
	case strings.ContainsFunc(o.Status, notInToken):
		return o, invalid("Status is %q, must be letters, digits and - . _ only", o.Status)
	}
	if o.Key == nil {
		o.Key = DefaultKey
	}
	if o.RevalidateTimeout == 0 {
		o.RevalidateTimeout = defaultRevalidateTimeout
	}
	if o.MaxBody == 0 {
		o.MaxBody = defaultMaxBody
	}
	o.TTL = min(o.TTL, maxTime)
	o.StaleWhileRevalidate = min(o.StaleWhileRevalidate, maxTime)
	o.StaleIfError = min(o.StaleIfError, maxTime)
	return o, nil
}

func invalid(format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	return fmt.Errorf("ringmiddleware: check options: %s: %w", what, ringcache.ErrInvalidOptions)
}

func notInToken(c rune) bool {
	return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		strings.ContainsRune("-._", c))
}

// Middleware caches responses. [New] returns one. It is safe for concurrent use.
type Middleware struct {
	options Options
	store   store
	flights flights
	tally   tally
}

// New returns a middleware that stores responses in c, which the caller still owns. After c has
// been closed, there are no hits. If an option is invalid, the error wraps
// [ringcache.ErrInvalidOptions]. New panics if c is nil.
func New(c *ringcache.Cache, o Options) (*Middleware, error) {
	if c == nil {
		panic("ringmiddleware: make middleware: cache is nil")
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Middleware{options: o, store: store{c, o.Prefix, time.Now()}}, nil
}

// Handler returns a handler that answers requests from the cache and calls next on a miss. Handlers
// of one Middleware must not share keys: see [Options].Prefix.
//
// next runs in the request's goroutine, so its panics reach net/http, except in the background.
// While other requests wait, the context of next isn't canceled when the client disconnects.
//
// A background revalidation may call next after the request has ended, with the values of its
// context. If your router reuses these values, as chi and echo do, wrap the router: a Middleware
// between it and its handlers could store wrong pages.
func (m *Middleware) Handler(next http.Handler) http.Handler { return &handler{m, next} }

// Invalidate removes all variants of the responses under a key, as returned by [Options].Key, and
// reports whether there may have been any.
func (m *Middleware) Invalidate(key string) bool { return m.store.invalidate(key) }

// InvalidateTag removes all responses with a tag in Cache-Tag (separated by commas) or
// Surrogate-Key (separated by spaces), and reports whether there may have been any. Its cost does
// not depend on their number. Tags are compared byte by byte.
func (m *Middleware) InvalidateTag(tag string) bool { return m.store.purge("t" + tag) }

// InvalidatePrefix removes all responses whose key begins with the scheme, host and segments in
// prefix, at least one segment or a host, like [Middleware.InvalidateTag]. "https://host/items"
// covers "https://host/items?page=1" and "https://host/items/7", but not "https://host/items2".
// InvalidatePrefix ignores a trailing slash, a query and, with [DefaultKey], segments after the
// seventh, and then removes more. For the scheme and case of the host, see DefaultKey.
func (m *Middleware) InvalidatePrefix(prefix string) bool {
	prefix, _, _ = strings.Cut(prefix, "?")
	prefix = strings.TrimRight(prefix, "/")
	exact := m.store.invalidate(prefix)
	paths := pathsOf(prefix + "/")
	if len(paths) == 0 {
		return exact
	}
	return m.store.purge(paths[len(paths)-1]) || exact
}

// Stats are the counters of a Middleware. A request may need several lookups, which the cache's own
// statistics count.
type Stats struct {
	// Requests counts GET and HEAD requests that have a key and don't bypass the cache; Hits, those
	// that their first lookup could answer, by a fresh or a stale response.
	Requests, Hits uint64
}

// HitRatio returns the fraction of requests that were hits, from 0 to 1; 0 if there were no
// requests.
func (s Stats) HitRatio() float64 { return float64(s.Hits) / float64(max(s.Requests, 1)) }

// tally holds the counters of Stats.
type tally struct{ misses, hits atomic.Uint64 }

// Stats returns the counters. They never decrease.
func (m *Middleware) Stats() Stats {
	hits := m.tally.hits.Load()
	return Stats{Requests: hits + m.tally.misses.Load(), Hits: hits}
}

// DefaultKey returns the scheme, host, path and query of a request, such as
// "https://example.com/a?b=c". The scheme is that of the connection: usually http behind a proxy
// that ends TLS. The host is in lower case. If the client sent another URL, because it does not
// escape all characters or an outer handler such as [http.StripPrefix] has changed it, a newline
// and what it sent usually follow. The key is empty if the host contains a slash or a similar
// character, which HTTP/2 permits, or the URL is opaque, such as "http:x", because it could equal
// another URL's key.
func DefaultKey(r *http.Request) string {
	if r.URL.Opaque != "" || strings.ContainsAny(r.Host, "/\\?# ") {
		return ""
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	uri := r.URL.RequestURI()
	key := scheme + lower(r.Host) + uri
	sent := originForm(r)
	if sent != uri && strings.HasPrefix(sent, "/") {
		key += "\n" + sent
	}
	return key
}
