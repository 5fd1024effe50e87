package ringmiddleware

import (
	"context"
	"net/http"
	"sync"
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

// ask calls the handler, and reports whether its response has broken off. httputil.ReverseProxy
// tells that by a panic, but only if there is a server of net/http, which ends the connection.
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

// pass has a request answered as if there were no cache.
func (h *handler) pass(w http.ResponseWriter, r *http.Request, why string) {
	h.m.addStatus(w.Header(), "fwd="+why)
	h.next.ServeHTTP(w, r)
}

// change passes on a request that may change what its key answers.
func (h *handler) change(w http.ResponseWriter, r *http.Request, key string) {
	h.m.addStatus(w.Header(), "fwd=method")
	c := &changer{ResponseWriter: w, invalidate: func() { h.m.Invalidate(key) }}
	defer func() {
		// Once more: the handler may have changed something after it began to answer. If
		// it has panicked, nobody knows.
		if c.code < 400 {
			c.invalidate()
		}
	}()
	h.next.ServeHTTP(c, r)
}

// attempts is how often a request looks for a response that others have fetched, before it
// goes to the handler on its own.
const attempts = 5

// buffers hold values while they are sent: the cache's own may change meanwhile.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// serve answers a request, from the cache if that is possible.
func (h *handler) serve(w http.ResponseWriter, q *query) {
	// The answer to several ranges is read from the buffer even after it was sent.
	ranged := q.r.Header.Get("Range") != ""
	buf := buffers.Get().(*[]byte)
	if !ranged {
		defer buffers.Put(buf)
	}
	for n := 1; ; n++ {
		x := h.m.store.index(q.key)
		f, u, why := h.lookup(buf, x, q)
		if u == fully || u == whileUpdating {
			if n == 1 { // else it has waited for the handler
				h.m.tally.hits.Add(1)
			}
			if u == whileUpdating {
				h.update(q, x, f)
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
		if q.r.Method != http.MethodGet || ranged {
			h.pass(w, q.r, why)
			return
		}
		if h.fetch(w, q, x, f, u, why, n == attempts) {
			return
		}
	}
}

// lookup finds the variant that a request asks for, and says what it is good for. f is nil if
// there is none.
func (h *handler) lookup(buf *[]byte, x *index, q *query) (f *found, u use, why string) {
	if x == nil {
		return nil, nothing, "uri-miss"
	}
	v, got, ok := h.m.store.entry((*buf)[:0], h.m.store.entryKey(x, q.r))
	*buf = v
	switch {
	case ok:
		u, why = q.use(&got)
		return &got, u, why
	case len(x.vary) > 0:
		return nil, nothing, "vary-miss"
	default:
		return nil, nothing, "uri-miss"
	}
}

// fetch answers a request from the handler, or by what the handler answers to an equal one. f
// is what there is in the cache, and not good enough. fetch reports false if the request is to
// look into the cache again.
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
	c := newCall(h, q, x, f, why)
	if u == ifError {
		c.old = f.clone()
	}
	if last || q.alone() || q.from >= x.passFrom || isNested(q.r.Context()) {
		c.run(w)
		return true
	}
	key := flightKey(h.m.store, q, x)
	flight, leads := h.m.flights.board(q.r.Context(), key)
	if !leads {
		return h.wait(w, c, flight)
	}
	c.f = flight
	if h.changed(q, x) { // by a flight that ended since the request has looked
		c.end(&outcome{})
		return false
	}
	c.run(w)
	return true
}

// wait answers a request by what another call of the handler brings. It reports false if the
// request is to look into the cache again.
func (h *handler) wait(w http.ResponseWriter, c *call, f *flight) bool {
	select {
	case <-f.done:
	case <-c.q.r.Context().Done():
		h.m.flights.leave(f)
		http.Error(w, "no answer in time", http.StatusServiceUnavailable)
		return true
	}
	return c.share(w, f.result)
}

// changed reports whether a request would find something now, or something else.
func (h *handler) changed(q *query, x *index) bool {
	now := h.m.store.index(q.key)
	if now == nil || !now.equal(x) {
		return true
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	_, u, _ := h.lookup(buf, x, q)
	return u == fully
}

// update has the handler asked in the background for what is to take the place of f.
func (h *handler) update(q *query, x *index, f *found) {
	key := flightKey(h.m.store, q, x)
	if h.m.pauses.holds(key) {
		return
	}
	flight := h.m.flights.begin(q.r.Context(), key, h.m.options.RevalidateTimeout)
	if flight == nil {
		return
	}
	c := newCall(h, q.inBackground(flight.ctx), x, f, "stale")
	c.f, c.background, c.pause = flight, true, f.whileRevalidate/revalidateTries
	if -f.left() < f.ifError {
		c.old = f.clone()
	}
	go c.runInBackground()
}
