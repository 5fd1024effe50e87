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

	waits map[*flight]int // those that requests of the handler wait for; circles guards it
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
	if f != nil && (!f.background || f == flightOf(ctx)) {
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
	f.ctx = context.WithValue(f.ctx, leader{}, f)
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

// leader is the key of a value of a flight's context: the flight.
type leader struct{}

// flightOf returns the flight whose handler has sent the request of a context, nil if none has.
func flightOf(ctx context.Context) *flight {
	f, _ := ctx.Value(leader{}).(*flight)
	return f
}

// circles guards what flights wait for. Flights of several Middlewares may form a circle.
var circles sync.Mutex

// await notes that a request that the handler of by has sent waits for f, or leads it, until
// awaited, and reports whether it may: not if f waits for by, since neither would ever end. by
// is nil for a request from outside.
func (f *flight) await(by *flight) bool {
	if by == nil {
		return true
	}
	circles.Lock()
	defer circles.Unlock()
	if f.waitsLocked(by, map[*flight]bool{}) {
		return false
	}
	if by.waits == nil {
		by.waits = make(map[*flight]int)
	}
	by.waits[f]++
	return true
}

// awaited is called when a wait has ended that await has allowed.
func (f *flight) awaited(by *flight) {
	if by == nil {
		return
	}
	circles.Lock()
	defer circles.Unlock()
	if by.waits[f]--; by.waits[f] == 0 {
		delete(by.waits, f)
	}
}

// waitsLocked reports whether f is the flight other, or waits for it, be it by way of more.
func (f *flight) waitsLocked(other *flight, seen map[*flight]bool) bool {
	if f == other {
		return true
	}
	if seen[f] {
		return false
	}
	seen[f] = true
	for next := range f.waits {
		if next.waitsLocked(other, seen) {
			return true
		}
	}
	return false
}

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
