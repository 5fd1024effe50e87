package ringfiber

import (
	"sync"
	"weak"
)

// handover has the bodies of responses that were just found, until the middleware asks for
// them. It does so right after it has the response, but the cache may drop the body in between,
// and then the request would fail.
//
// A body that is not asked for, as its response is too old, stays to be collected: the
// references are weak. One that was collected, or had to make room for others, is looked up in
// the cache.
type handover struct {
	mu    sync.Mutex
	slots [64]handed // more than requests are likely to be between the two calls
	next  int
}

type handed struct {
	key  string
	body weak.Pointer[[]byte]
}

// put keeps body for the next take of key.
func (h *handover) put(key string, body []byte) {
	ref := weak.Make(&body)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slots[h.next] = handed{key, ref}
	h.next = (h.next + 1) % len(h.slots)
}

// take returns the body of key that was put last, and has not been taken.
func (h *handover) take(key string) (body []byte, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.slots {
		slot := &h.slots[(h.next+len(h.slots)-1-i)%len(h.slots)]
		if slot.key != key {
			continue
		}
		ref := slot.body.Value()
		*slot = handed{}
		if ref != nil {
			return *ref, true
		}
	}
	return nil, false
}

// drop forgets the bodies of key.
func (h *handover) drop(key string) {
	for _, ok := h.take(key); ok; _, ok = h.take(key) {
	}
}

// reset forgets all bodies.
func (h *handover) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slots = [64]handed{}
}
