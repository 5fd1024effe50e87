package ringmiddleware

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache"
)

// Options are the settings of a [Middleware]. The zero value of each field means its default.
type Options struct {
	// Prefix begins all keys in the cache, so that others can use the cache too. Handlers
	// that answer the same URLs differently need a Middleware each, with different prefixes.
	// It must not have a zero byte.
	Prefix string

	// Key returns what a request is about: two requests with one key get the same response,
	// but for Vary. It must not depend on the method. An empty key means that the request
	// passes. The default is [DefaultKey].
	Key func(r *http.Request) string

	// TTL is how long a response is fresh if the handler says nothing about that. It holds
	// for the status codes that RFC 9110 lets a cache guess for (see the README), and for
	// requests without Cookie and Authorization, since a handler that says nothing may have
	// looked at them. 0, the default, means that such responses are not kept.
	TTL time.Duration

	// StaleWhileRevalidate is how long after that a response is still served while the
	// handler is asked for a new one in the background, and StaleIfError how long it is
	// served if the handler answers 500, 502, 503 or 504. They apply to responses
	// without that directive and without must-revalidate, proxy-revalidate and s-maxage.
	// After a revalidation that has failed, the handler is not asked again for an eighth of
	// the time that the response may be stale, or RevalidateTimeout if that is less.
	// If StaleIfError is 0, the default, only responses with a stale-if-error directive are
	// served stale after an error. If StaleWhileRevalidate is 0, the default, none is
	// revalidated in the background, which a router has to support: see [Middleware.Handler].
	StaleWhileRevalidate time.Duration
	StaleIfError         time.Duration

	// RevalidateTimeout is how long the handler may take in the background: then the context
	// of its request ends. No request waits for it; one that cannot be answered by what is
	// kept goes to the handler itself. The default is 30 seconds.
	RevalidateTimeout time.Duration

	// MaxBody is the longest body that is kept, in bytes; longer ones pass through. A response
	// that is being made takes up to three times that, while it grows and is stored. The
	// default is 1 MB. What the cache takes as a value, a sixteenth of its bound, is a limit
	// too.
	MaxBody int

	// Status is the name of this cache in the header Cache-Status of responses (RFC 9211),
	// which tells what has happened. It must be a token, such as "ringcache". The default is
	// to have no such header.
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

// Middleware caches responses. Make it with [New]. Any number of goroutines may use it.
type Middleware struct {
	options Options
	store   store
	flights flights
	tally   tally
	pauses  pauses
}

// New returns a middleware that keeps responses in c. The cache stays the caller's: closed, it
// only means that every request goes to the handler. The error is
// [ringcache.ErrInvalidOptions] for options out of their range. New panics if c is nil.
func New(c *ringcache.Cache, o Options) (*Middleware, error) {
	if c == nil {
		panic("ringmiddleware: make middleware: cache is nil")
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Middleware{options: o, store: store{cache: c, prefix: o.Prefix}}, nil
}

// Handler returns next behind the cache. It may be called for several handlers, which then
// must not answer the same key: see [Options].Prefix.
//
// next is called in the goroutine of the request that it answers, so its panics reach
// net/http, but for revalidations in the background, where a panic is logged as net/http does.
// The context that it gets lives on after the client is gone, as long as others wait.
//
// A revalidation calls next after its request is over, with the values of its context. Routers
// that use those again for other requests, such as chi and echo, have to be a part of next; a
// Middleware between such a router and its handlers would keep wrong pages.
func (m *Middleware) Handler(next http.Handler) http.Handler { return &handler{m, next} }

// Invalidate removes all variants of what is kept under a key, as [Options].Key returns it, and
// reports whether there may have been any. Nothing that the handler was asked for before is
// served to a request that begins after it has returned.
func (m *Middleware) Invalidate(key string) bool { return m.store.invalidate(key) }

// Stats are the counters of a [Middleware]. The cache counts a lookup for each request too, and a
// hit even if the response that it holds is too old to be the answer.
type Stats struct {
	// Requests counts the GET and HEAD requests that could be answered from the cache: those that
	// have a key, and nothing that lets them pass. Hits counts those of them that were, stale
	// responses included that were served while the handler was asked for a new one.
	Requests, Hits uint64
}

// HitRatio returns the part of the requests that were hits, from 0 to 1; 0 if there were none.
func (s Stats) HitRatio() float64 { return float64(s.Hits) / float64(max(s.Requests, 1)) }

// tally is what Stats shows.
type tally struct{ misses, hits atomic.Uint64 }

// Stats returns the counters. They never fall.
func (m *Middleware) Stats() Stats {
	hits := m.tally.hits.Load()
	return Stats{Requests: hits + m.tally.misses.Load(), Hits: hits}
}

// DefaultKey returns the scheme, host, path and query of a request, such as
// "https://example.com/a?b=c". The scheme is that of the connection. If the URL is not the one
// that the client has sent, since a handler before this one has changed it ([http.StripPrefix]
// does), what was sent follows, after a newline. A host with a slash or the like in it, which
// HTTP/2 lets through, would give the key of another URL: the key is empty then.
func DefaultKey(r *http.Request) string {
	if strings.ContainsAny(r.Host, "/\\?# ") {
		return ""
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	uri := r.URL.RequestURI()
	key := scheme + strings.ToLower(r.Host) + uri
	sent := r.RequestURI
	if u, err := url.ParseRequestURI(sent); err == nil && u.Host != "" { // sent as to a proxy
		sent = u.RequestURI()
	}
	if sent != uri && strings.HasPrefix(sent, "/") {
		key += "\n" + sent
	}
	return key
}
