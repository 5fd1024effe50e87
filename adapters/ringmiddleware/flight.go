package ringmiddleware

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// flights are the running calls of a handler, which other requests may wait for. Waiting requests
// share the response if it may be shared; otherwise each of them calls the handler.
type flights struct {
	mu    sync.Mutex
	calls map[string]*flight
}

// flight is a running call. The request that began it leads it. A background revalidation has no
// client that would notice if it hangs, so no request waits for it.
type flight struct {
	key    string
	ctx    context.Context // of the call: ends when nobody wants the response any more
	cancel context.CancelFunc

	done   chan struct{} // closed when result is final
	result *outcome      // nil: there is nothing to share

	led        bool // the leader wants the response
	waiting    int  // others who do
	over       bool // done is closed
	background bool // the handler is asked in the background
	abandoned  bool // and another flight has taken its place
}

// outcome is what a flight has brought.
type outcome struct {
	response *found        // nil: look into the cache again
	r        *http.Request // that it answers
	failed   bool          // the handler has failed, and this is what there was
}

// board returns the flight for the key, and true to its leader: the flight began with this call,
// and has the values of its context. It takes the place of one in the background. A request that
// does not lead waits for done, or leaves.
func (fs *flights) board(ctx context.Context, key string) (f *flight, leads bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f = fs.calls[key]
	if f != nil && !f.background {
		f.waiting++
		return f, false
	}
	if f != nil {
		f.abandoned = true
		f.cancel()
	}
	f = &flight{}
	f.ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	fs.beginLocked(f, key)
	return f, true
}

// begin begins a flight in the background, or returns nil if there is one for the key.
func (fs *flights) begin(ctx context.Context, key string, timeout time.Duration) *flight {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.calls[key] != nil {
		return nil
	}
	f := &flight{background: true}
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

// land is called when the handler has returned to a flight in the background. It reports whether
// the response may be stored: otherwise another flight has taken its place, and may have stored
// a newer one. The flight is about to end, so requests wait for it from now on.
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

// leave is called when one who waits does not want the response any more.
func (fs *flights) leave(f *flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if !f.over {
		f.waiting--
		fs.checkLocked(f)
	}
}

// leaveLead is called when the client of the leader is gone.
func (fs *flights) leaveLead(f *flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.led = false
	fs.checkLocked(f)
}

// checkLocked cancels the call if nobody wants its response. Nobody joins it then.
func (fs *flights) checkLocked(f *flight) {
	if f.led || f.waiting > 0 {
		return
	}
	f.cancel()
	if fs.calls[f.key] == f {
		delete(fs.calls, f.key)
	}
}

// end tells all who wait what there is to share, nil for nothing, and makes room for another
// flight. Only the first call counts.
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
