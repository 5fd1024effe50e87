package ringmiddleware

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// flights are the running calls of a handler that other requests may wait for. Waiting requests
// share the response if it may be shared; otherwise each of them calls the handler.
type flights struct {
	mu    sync.Mutex
	calls map[string]*flight
}

// flight is a running call. The request that began it leads it. A background revalidation has no
// client that would notice if it hangs, so no request waits for it.
type flight struct {
	key    string
	purged uint64          // the stamp of the latest invalidation before the call
	ctx    context.Context // of the call: ends when nobody wants the response any more
	cancel context.CancelFunc

	done   chan struct{} // closed when result is set
	result *outcome      // nil: there is nothing to share

	led        bool // the leader still wants the response
	waiting    int  // number of waiting requests
	over       bool // done is closed
	background bool // a background revalidation
	abandoned  bool // another flight has replaced it
}

// outcome is the result of a flight. If the handler has failed, waiting requests do not call it
// again, but get an error of their own.
type outcome struct {
	response *found        // nil: look in the cache again
	r        *http.Request // the request that response answers
	failure  int           // or the status code with which the handler failed
}

// board returns the flight for the key. If there is none, or one that began before the latest
// invalidation, or a background one, which are then replaced, it begins a flight with the values of
// ctx, and returns true: the caller leads it. Any other caller must wait for done or call leave.
func (fs *flights) board(ctx context.Context, key string, purged uint64) (f *flight, leads bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f = fs.calls[key]
	switch {
	case f == nil:
	case f.background:
		f.abandoned = true
		f.cancel()
	case f.purged == purged:
		f.waiting++
		return f, false
	}
	f = &flight{purged: purged}
	f.ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	fs.beginLocked(f, key)
	return f, true
}

// begin begins a background flight, or returns nil if there is a flight for the key.
func (fs *flights) begin(
	ctx context.Context, key string, purged uint64, timeout time.Duration,
) *flight {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.calls[key] != nil {
		return nil
	}
	f := &flight{purged: purged, background: true}
	f.ctx, f.cancel = context.WithTimeout(context.WithoutCancel(ctx), timeout)
	fs.beginLocked(f, key)
	return f
}

func (fs *flights) beginLocked(f *flight, key string) {
	f.key, f.done, f.led = key, make(chan struct{}), true
	f.ctx = context.WithValue(f.ctx, nested{}, true)
	if fs.calls == nil {
		fs.calls = make(map[string]*flight)
	}
	fs.calls[key] = f
}

// land must be called when the handler of a background flight has returned. It reports whether the
// response may be stored: if another flight has replaced this one, it may already have stored a
// newer response. From now on requests may wait for the flight, since it is about to end.
func (fs *flights) land(f *flight) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.background = false
	return !f.abandoned
}

// nested is a key of the context that the handler gets from a flight.
type nested struct{}

// isNested reports whether the handler of a flight sent the request with this context. Such a
// request waits for no flight, because pages that request each other might wait forever.
func isNested(ctx context.Context) bool { return ctx.Value(nested{}) != nil }

// leave must be called when a waiting request gives up.
func (fs *flights) leave(f *flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if !f.over {
		f.waiting--
		fs.checkLocked(f)
	}
}

// leaveLead must be called when the client of the leader has gone.
func (fs *flights) leaveLead(f *flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.led = false
	fs.checkLocked(f)
}

// checkLocked cancels the call, and prevents others from joining it, if nobody wants its response.
func (fs *flights) checkLocked(f *flight) {
	if f.led || f.waiting > 0 {
		return
	}
	f.cancel()
	if fs.calls[f.key] == f {
		delete(fs.calls, f.key)
	}
}

// end ends the flight and gives its result to all waiting requests; nil means that there is nothing
// to share. Only the first call has an effect.
func (fs *flights) end(f *flight, result *outcome) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f.over {
		return
	}
	f.over, f.result, f.waiting = true, result, 0
	if fs.calls[f.key] == f {
		delete(fs.calls, f.key)
	}
	close(f.done)
	fs.checkLocked(f)
}
