package ringmiddleware

import (
	"context"
	"net/http"
	"sync"
)

// flights are the requests that are with a handler, and that others may wait for. Those who
// wait share the response if it may be shared; otherwise each goes to the handler on its own.
type flights struct {
	mu    sync.Mutex
	calls map[string]*flight
}

// flight is one of them. The one who began it leads it, which is nobody's client for a
// revalidation in the background.
type flight struct {
	key    string
	ctx    context.Context // of the call: ends when nobody wants the response any more
	cancel context.CancelFunc

	done   chan struct{} // closed when result is final
	result *outcome      // nil: there is nothing to share

	led     bool // the leader wants the response
	waiting int  // others who do
	over    bool // done is closed
}

// outcome is what a flight has brought.
type outcome struct {
	response *found        // nil: look into the cache again
	r        *http.Request // that it answers
	failed   bool          // the handler has failed, and this is what there was
}

// board returns the flight for the key, and true to who leads it: it began with this call, whose
// context's values it has. Who does not lead waits for done, or leaves.
func (fs *flights) board(ctx context.Context, key string) (f *flight, leads bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f = fs.calls[key]; f != nil {
		f.waiting++
		return f, false
	}
	return fs.beginLocked(ctx, key), true
}

// begin begins a flight, or returns nil if there is one for the key.
func (fs *flights) begin(ctx context.Context, key string) *flight {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.calls[key] != nil {
		return nil
	}
	return fs.beginLocked(ctx, key)
}

func (fs *flights) beginLocked(ctx context.Context, key string) *flight {
	f := &flight{key: key, done: make(chan struct{}), led: true}
	ctx = context.WithValue(context.WithoutCancel(ctx), leader{}, key)
	f.ctx, f.cancel = context.WithCancel(ctx)
	if fs.calls == nil {
		fs.calls = make(map[string]*flight)
	}
	fs.calls[key] = f
	return f
}

// leader is the key of a value of a flight's context: the flight's key.
type leader struct{}

// within reports whether a request is part of the call of the flight, and would wait for itself.
func within(ctx context.Context, key string) bool { return ctx.Value(leader{}) == key }

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
