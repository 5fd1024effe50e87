package main

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache"
)

// maxBody is the longest body that is kept. Longer ones pass through. It must
// stay below what the cache takes as a value, a sixteenth of its bound.
const maxBody = 1 * mb

// handler is a cache in front of another handler, which may be a reverse proxy:
// a shared cache in the words of RFC 9111, with these rules.
//
//   - It keeps responses to GET of the code 200, 301, 308, 404 or 410 that say with
//     max-age or s-maxage how long they are good for, for just that long: the
//     entry expires with the response, so whatever is found is fresh.
//   - It keeps none that say no-store, no-cache or private, set a cookie, have a
//     trailer or more than maxBody bytes, or answer a request with Authorization,
//     Range or no-store.
//   - A request with no-cache is answered anew, and the answer kept.
//   - Of a response with Vary, it keeps the variant that was asked for last:
//     clients that take turns asking for different ones are served correctly,
//     but gain nothing. A page in many variants belongs under many URLs.
//   - A client that has the response, by If-None-Match, gets 304, also if the
//     cache has to fetch it first. Responses without an ETag get one when they
//     are kept.
//   - A successful request of any other method, such as POST, removes what was
//     kept for its URL. A GET that is under way meanwhile may bring it back.
//   - Equal requests that miss at the same time all go through.
//
// Every response has a Cache-Status (RFC 9211) that tells what has happened.
type handler struct {
	next  http.Handler
	cache *ringcache.Cache
	count counts
}

// counts are of requests, but for those in bytes, which are of bodies.
type counts struct {
	hits        atomic.Int64 // answered from the cache
	misses      atomic.Int64 // looked up, and passed on
	passed      atomic.Int64 // passed on without a look
	stored      atomic.Int64 // responses
	notModified atomic.Int64 // answered with 304, hits or misses
	fetched     atomic.Int64 // bytes that came from the next handler
	hitBytes    atomic.Int64 // bytes of the hits: these did not have to come
	spared      atomic.Int64 // bytes in whose place a 304 was sent
}

// keyOf returns the key of a URL.
func keyOf(host, uri string) []byte { return []byte(host + uri) }

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := keyOf(r.Host, r.URL.RequestURI())
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.change(w, r, key)
	case hasAny(r.Header, "Authorization", "Range") || asks(r, "no-store"):
		h.pass(w, r)
	case asks(r, "no-cache"):
		h.fetch(w, r, key, "request")
	default:
		if fwd := h.serve(w, r, key); fwd != "" {
			h.fetch(w, r, key, fwd)
		}
	}
}

// change passes on a request that may change what its URL answers.
func (h *handler) change(w http.ResponseWriter, r *http.Request, key []byte) {
	h.count.passed.Add(1)
	rec := recorder{ResponseWriter: w, status: "fwd=method", count: &h.count}
	h.next.ServeHTTP(&rec, r)
	rec.finish()
	safe := r.Method == http.MethodOptions || r.Method == http.MethodTrace
	if !safe && rec.code < 400 {
		h.cache.Del(key)
	}
}

// pass passes a request on and keeps nothing.
func (h *handler) pass(w http.ResponseWriter, r *http.Request) {
	h.count.passed.Add(1)
	rec := recorder{ResponseWriter: w, status: "fwd=bypass", count: &h.count}
	h.next.ServeHTTP(&rec, r)
	rec.finish()
}

// fetch passes a request on and keeps the response if that is allowed.
func (h *handler) fetch(w http.ResponseWriter, r *http.Request, key []byte, fwd string) {
	h.count.misses.Add(1)
	rec := recorder{ResponseWriter: w, status: "fwd=" + fwd, count: &h.count, request: r}
	// A panic of next goes on to the server and nothing is kept: this is how a
	// reverse proxy gives up a response that has broken off.
	h.next.ServeHTTP(&rec, unconditional(r))
	rec.finish()
	if e, ttl, ok := rec.entry(); ok {
		// Should the cache not take it, it is fetched again the next time.
		if h.cache.SetWithTTL(key, e.encode(nil), ttl) == nil {
			h.count.stored.Add(1)
		}
	}
}

// unconditional returns the request without the conditions that would have it
// answered by less than the whole response.
func unconditional(r *http.Request) *http.Request {
	conditions := []string{"If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range"}
	if !hasAny(r.Header, conditions...) {
		return r
	}
	r = r.Clone(r.Context()) // it is not ours to change
	for _, name := range conditions {
		r.Header.Del(name)
	}
	return r
}

// buffers hold values while they are sent: a write to a slow client must not
// happen under the cache's lock, as it would in a View.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// serve answers a request from the cache. If it cannot, it returns the reason,
// in the words of Cache-Status.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, key []byte) (fwd string) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	// In this order: should the entry be replaced in between, it is taken for
	// older than it is, never for younger.
	left, _ := h.cache.TTL(key)
	v, ok := h.cache.HasGet((*buf)[:0], key)
	*buf = v
	if !ok {
		return "uri-miss"
	}
	e, ok := decode(v)
	if !ok {
		return "uri-miss"
	}
	if !e.fits(r.Header) {
		return "vary-miss"
	}
	h.count.hits.Add(1)
	h.count.hitBytes.Add(int64(len(e.body)))
	h.answer(w, r, &e, left)
	return ""
}

// answer sends an entry that is good for another while, or 304 to a client that
// has it.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, e *entry, left time.Duration) {
	header := w.Header()
	for _, f := range e.header {
		header.Add(f.name, f.value)
	}
	header.Set("Age", strconv.Itoa(int(max(0, e.lifetime-left)/time.Second)))
	header.Add("Cache-Status", "ringcache; hit; ttl="+strconv.Itoa(int(left/time.Second)))
	if e.code == http.StatusOK && clientHas(r.Header, header.Get("ETag")) {
		h.count.notModified.Add(1)
		h.count.spared.Add(int64(len(e.body)))
		writeNotModified(w)
		return
	}
	header.Set("Content-Length", strconv.Itoa(len(e.body)))
	w.WriteHeader(e.code)
	_, _ = w.Write(e.body) // the server drops it after a HEAD; the client may be gone
}

// writeNotModified sends 304, without what describes a body: the server leaves
// out Content-Type and Content-Length by itself.
func writeNotModified(w http.ResponseWriter) {
	w.Header().Del("Content-Encoding")
	w.WriteHeader(http.StatusNotModified)
}
