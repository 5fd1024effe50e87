package ringmiddleware

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// handler is a handler behind a Middleware.
type handler struct {
	m    *Middleware
	next http.Handler
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := h.m.options.Key(r)
	if key == "" {
		h.pass(w, r, "bypass")
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		if passes(r) {
			h.pass(w, r, "bypass")
			return
		}
		h.serve(w, newQuery(r, key))
	case http.MethodOptions, http.MethodTrace:
		h.pass(w, r, "method")
	default:
		h.change(w, r, key)
	}
}

// ask calls the handler, and reports whether its response was aborted. httputil.ReverseProxy aborts
// by a panic, but only if the request comes from a net/http server; so the context gets one here.
func (h *handler) ask(w http.ResponseWriter, r *http.Request) (broken bool) {
	if r.Context().Value(http.ServerContextKey) == nil {
		r = r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, new(http.Server)))
		defer func() {
			if v := recover(); v == http.ErrAbortHandler {
				broken = true
			} else if v != nil {
				panic(v)
			}
		}()
	}
	h.next.ServeHTTP(w, r)
	return false
}

// pass handles a request as if there were no cache.
func (h *handler) pass(w http.ResponseWriter, r *http.Request, why string) {
	h.m.addStatus(w.Header(), "fwd="+why)
	h.next.ServeHTTP(w, r)
}

// change passes on an unsafe request, which may change the responses stored under its key.
func (h *handler) change(w http.ResponseWriter, r *http.Request, key string) {
	h.m.addStatus(w.Header(), "fwd=method")
	c := &changer{ResponseWriter: w, invalidate: func() { h.m.Invalidate(key) }}
	defer func() {
		// Again, because the handler may have changed something after it had begun to respond. If
		// it has panicked, or its request was canceled, this is unknown.
		if c.code < 400 || r.Context().Err() != nil {
			c.invalidate()
		}
	}()
	h.next.ServeHTTP(c, r)
}

// attempts is how often a request looks in the cache, waiting for other requests in between, before
// it calls the handler itself.
const attempts = 5

// buffers hold copies of values while they are sent, since the cache may overwrite its own.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// serve answers a request, from the cache if possible.
func (h *handler) serve(w http.ResponseWriter, q *query) {
	// A response to several ranges is read from the buffer even after ServeContent has returned.
	ranged := q.r.Header.Get("Range") != ""
	buf := buffers.Get().(*[]byte)
	if !ranged {
		defer buffers.Put(buf)
	}
	for n := 1; ; n++ {
		x := h.m.store.index(q.key)
		f, u, why := h.lookup(buf, x, q)
		paused := u == ifError && h.m.isPaused(q, x, f, *buf)
		if u >= whileUpdating || paused {
			if n == 1 { // otherwise it has waited for the handler
				h.m.tally.hits.Add(1)
			}
			if u == whileUpdating {
				h.update(q, x, f, *buf)
			}
			h.m.answer(w, q.r, f, wholeSeconds(f.now), "hit; ttl="+wholeSeconds(f.left()))
			return
		}
		if n == 1 {
			h.m.tally.misses.Add(1)
		}
		if q.asks.hasAny("only-if-cached") {
			h.m.addStatus(w.Header(), "fwd="+why)
			http.Error(w, "not in the cache", http.StatusGatewayTimeout)
			return
		}
		if u == nothing && (q.r.Method != http.MethodGet || ranged) {
			h.pass(w, q.r, why)
			return
		}
		if h.fetch(w, q, x, f, u, why, n == attempts) {
			return
		}
	}
}

// lookup returns the stored variant for a request, or nil if there is none, and how it may be used.
func (h *handler) lookup(buf *[]byte, x *index, q *query) (f *found, u use, why string) {
	if x == nil {
		return nil, nothing, "uri-miss"
	}
	v, got, ok := h.m.store.entry((*buf)[:0], x, q.r, q.key)
	*buf = v
	switch {
	case ok:
		if h.m.options.StaleWhileRevalidate == 0 { // but was not when the entry was stored
			got.whileRevalidate = 0
		}
		u, why = q.use(&got)
		return &got, u, why
	case len(x.vary) > 0:
		return nil, nothing, "vary-miss"
	default:
		return nil, nothing, "uri-miss"
	}
}

// fetch answers a request by calling the handler, or by sharing the response to an equal request. x
// and f are what the cache has for it, or nil. fetch returns false if the request must look in the
// cache again.
func (h *handler) fetch(
	w http.ResponseWriter, q *query, x *index, f *found, u use, why string, last bool,
) bool {
	if x == nil {
		x = h.m.store.makeIndex(q.key)
	}
	if x == nil { // a key that is too long, or a closed cache
		h.pass(w, q.r, why)
		return true
	}
	c := newCall(h, q, x, f, u, why)
	if last || q.alone() || q.from >= x.passFrom || isNested(q.r.Context()) {
		c.run(w)
		return true
	}
	flight, leads := h.m.flights.board(q.r.Context(), c.key, c.called.purged)
	if !leads {
		return h.wait(w, c, flight)
	}
	c.f = flight
	if h.changed(q, x, c.old) { // by a flight that has ended since the lookup
		c.end(&outcome{})
		return false
	}
	c.run(w)
	return true
}

// wait answers a request with the result of another call of the handler. It returns false if the
// request must look in the cache again.
func (h *handler) wait(w http.ResponseWriter, c *call, f *flight) bool {
	begun, result := time.Now(), &outcome{failure: http.StatusGatewayTimeout}
	select {
	case <-f.done:
		result = f.result
	case <-c.q.r.Context().Done():
		h.m.flights.leave(f)
	}
	if c.old != nil {
		c.old.now += time.Since(begun)
	}
	return c.share(w, result)
}

// changed reports whether the index has changed, the request can now be answered from the cache, or
// the handler has failed for old, if that is not nil.
func (h *handler) changed(q *query, x *index, old *found) bool {
	now := h.m.store.index(q.key)
	if now == nil || !now.equal(x) {
		return true
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	f, u, _ := h.lookup(buf, x, q)
	return u == fully || f != nil && old != nil && f.failures > old.failures
}

// update calls the handler in the background for a response that replaces f, whose entry is v.
func (h *handler) update(q *query, x *index, f *found, v []byte) {
	if h.m.isPaused(q, x, f, v) {
		return
	}
	c := newCall(h, q, x, f, whileUpdating, "stale")
	flight := h.m.flights.begin(
		q.r.Context(), c.key, c.called.purged, h.m.options.RevalidateTimeout)
	if flight == nil {
		return
	}
	c.q, c.old = q.inBackground(flight.ctx), f.clone()
	c.f, c.background = flight, true
	go c.runInBackground()
}
