package ringfiber

import (
	"sync"
	"weak"
)

// handover holds the bodies of responses that have just been found. The middleware gets a body
// immediately after its response, and fails the request if the cache has evicted the body in
// between.
//
// The middleware does not get the body of a response that is too old. References are weak, so such
// a body can be collected. A body that has been collected, or replaced by others, is looked up in
// the cache.
type handover struct {
	mu    sync.Mutex
	slots [64]handed // more than there are likely to be requests between the two calls
	next  int
}

type handed struct {
	key  string
	body weak.Pointer[[]byte]
}

// put stores body for the next take of key.
func (h *handover) put(key string, body []byte) {
	ref := weak.Make(&body)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slots[h.next] = handed{key, ref}
	h.next = (h.next + 1) % len(h.slots)
}

// take removes the last body that was put for key, and returns it.
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

// drop removes the bodies of key.
func (h *handover) drop(key string) {
	for _, ok := h.take(key); ok; _, ok = h.take(key) {
	}
}

// reset removes all bodies.
func (h *handover) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slots = [64]handed{}
}
