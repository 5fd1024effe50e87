package ringmiddleware

import (
	"context"
	"log"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"time"
)

// call is one call of the handler, whose response may be stored.
type call struct {
	h          *handler
	q          *query
	key        string          // of the flight
	x          *index          // read before the handler is called
	called     clock           // likewise
	f          *flight         // that other requests may wait for; nil: none can
	background bool            // there is no client
	ctx        context.Context // of the handler: ends when nobody wants the response any more

	old      *found // what the request may be answered with, depending on the handler, or nil
	replaces bool   // the response replaces a stored one
	why      string // reason for the call, in the terms of Cache-Status
	settled  bool   // the response has been stored, or must not be
}

func newCall(h *handler, q *query, x *index, f *found, u use, why string) *call {
	s := h.m.store
	c := &call{h: h, q: q, key: flightKey(s, q, x), x: x, called: s.clock(), why: why}
	c.replaces = f != nil && f.audience >= q.from
	if u > nothing {
		c.old = f
		f.use = u
	}
	return c
}

// flightKey returns the key of the flight that a request may lead or join. Requests of different
// audiences do not wait for each other, since they can rarely share a response.
func flightKey(s store, q *query, x *index) string {
	return string(append(s.entryKey(x, q.r), byte(q.from)))
}

// run calls the handler, stores the response if that is allowed, and sends it to w and to the
// waiting requests. A panic of the handler propagates to the caller.
func (c *call) run(w http.ResponseWriter) {
	c.ctx = c.q.r.Context()
	if c.f != nil {
		c.ctx = c.f.ctx
		defer c.f.cancel()
		if !c.background {
			defer context.AfterFunc(c.q.r.Context(), func() { c.h.m.flights.leaveLead(c.f) })()
		}
	}
	if c.old != nil && !c.background { // whose body is in a buffer of this request
		c.old = c.old.clone()
	}
	panics := true
	defer func() {
		if panics {
			c.end(&outcome{failure: http.StatusInternalServerError})
		}
		c.end(nil) // unless it was ended before
	}()
	r := c.q.r
	if c.q.from < c.x.passFrom || c.old != nil { // otherwise it probably must not be stored
		r = c.q.inFull(c.ctx, c.old)
	} else {
		own := *c.q // the handler may modify the request
		own.r = r.Clone(c.ctx)
		c.q = &own
	}
	r = asInKey(r)
	rec := &recorder{
		ResponseWriter: w, m: c.h.m, q: c.q, ctx: c.ctx, begun: time.Now(), old: c.old,
		why: c.why, end: c.end, header: make(http.Header),
	}
	rec.broken = c.h.ask(rec, r)
	panics = false
	if c.background && !c.h.m.flights.land(c.f) {
		return
	}
	// A background call is canceled, too, when the rest of the response is not needed.
	done := c.ctx.Err() == nil || c.background && c.ctx.Err() != context.DeadlineExceeded
	f, keep := rec.finish()
	m, q, status := c.h.m, c.q, "fwd="+c.why+"; fwd-status="+strconv.Itoa(rec.code)
	if !keep {
		c.unstored(rec, done)
	} else {
		if m.store.put(q.key, c.x, q.r, q.from, &f.entry, c.called) {
			c.settled = true
			status += "; stored"
		} else { // what it should have replaced is out of date
			m.store.remove(c.x, q.r)
		}
		c.end(&outcome{response: f, r: q.r})
	}
	if f == nil || c.background || rec.state == passing {
		return
	}
	age := ""
	if rec.failed {
		age = wholeSeconds(f.now)
	}
	m.answer(w, q.r, f, age, status)
}

// ofPage are the client errors that say something of the page, not only of the request.
var ofPage = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
	http.StatusGone}

// unstored finishes a call whose response is not stored. done is false if the handler was canceled.
func (c *call) unstored(rec *recorder, done bool) {
	if !done || rec.failed || rec.broken || rec.code >= 500 {
		return
	}
	c.settled = true
	c.h.m.store.pass(c.q.key, c.x, c.q.from)
	tells := rec.code < 400 || slices.Contains(ofPage, rec.code)
	if c.replaces && tells && (rec.code != http.StatusNotModified || rec.unchanged) {
		c.h.m.store.remove(c.x, c.q.r)
	}
}

// end gives the result of the call to the waiting requests. Only the first call has an effect. If
// the handler has failed, the pause begins before another call can.
func (c *call) end(result *outcome) {
	if c.failed(result) {
		c.h.m.beginPause([]byte(c.key[:len(c.key)-1]), c.old) // without the audience
	}
	if c.f != nil {
		c.h.m.flights.end(c.f, result)
	}
}

// failed reports whether a call with this result is followed by a pause.
func (c *call) failed(result *outcome) bool {
	if c.background { // unless another flight has replaced this one
		return !c.settled && (result == nil || result.failure != 0) && c.h.m.flights.land(c.f)
	}
	return result != nil && slices.Contains(failures, result.failure) &&
		c.old != nil && c.old.mayReplaceError() && c.ctx.Err() == nil
}

// share answers a request with the result of the call that it has waited for. It returns false if
// the request must look in the cache again.
func (c *call) share(w http.ResponseWriter, result *outcome) bool {
	if result == nil {
		c.run(w)
		return true
	}
	if result.failure != 0 {
		c.fail(w, result.failure)
		return true
	}
	f := result.response
	if f == nil || !f.sameFor(c.q.r, result.r) {
		return false
	}
	u, _ := c.q.use(f)
	if u < whileUpdating {
		c.run(w)
		return true
	}
	c.h.m.answer(w, c.q.r, f, wholeSeconds(f.now), "fwd="+c.why+"; collapsed")
	return true
}

// fail answers a request that has waited for a call that failed: with the stale response, or with
// an error that has nothing of the failed response but its code, because that may be private.
func (c *call) fail(w http.ResponseWriter, code int) {
	status := "fwd=" + c.why + "; fwd-status=" + strconv.Itoa(code) + "; collapsed"
	if c.old != nil && c.old.mayReplaceError() && slices.Contains(failures, code) {
		c.h.m.answer(w, c.q.r, c.old, wholeSeconds(c.old.now), status)
		return
	}
	c.h.m.addStatus(w.Header(), status)
	http.Error(w, http.StatusText(code), code)
}

// runInBackground is run without a client. If the handler fails, the stale response stays, and is
// not revalidated again for a while.
func (c *call) runInBackground() {
	defer func() {
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			logPanic(c.q.r, v)
		}
	}()
	if c.h.changed(c.q, c.x, c.old) {
		c.settled = true
		c.end(&outcome{})
		c.f.cancel()
		return
	}
	c.run(&nowhere{header: make(http.Header), cancel: c.f.cancel})
}

// logPanic logs to the ErrorLog of the request's server.
func logPanic(r *http.Request, v any) {
	logf := log.Printf
	server, ok := r.Context().Value(http.ServerContextKey).(*http.Server)
	if ok && server.ErrorLog != nil {
		logf = server.ErrorLog.Printf
	}
	logf("ringmiddleware: revalidate %s: panic: %v\n%s", r.URL, v, debug.Stack())
}

// nowhere is the ResponseWriter of a background call. A response that is written to it is not
// stored, so the first write cancels the call.
type nowhere struct {
	header http.Header
	cancel context.CancelFunc
}

func (n *nowhere) Header() http.Header { return n.header }

func (n *nowhere) WriteHeader(code int) {
	if code >= 200 {
		n.cancel()
	}
}

func (n *nowhere) Write([]byte) (int, error) { return 0, http.ErrHandlerTimeout }
