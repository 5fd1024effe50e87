package ringmiddleware

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/ringcache/ringcache"
)

// While the handler fails for a response that may be served stale, it is called again after a pause
// of firstPause, which is doubled with each failure, up to a fraction of the time for which the
// response may be stale. The pause is a part of the entry, and has a fixed length there, so that it
// is overwritten in place: however many responses are concerned, none is evicted for it, unless
// they are compressed (ringcache.Options.Compressor), which a read undoes as well.
const (
	firstPause  = time.Second
	pauseTries  = 8
	maxFailures = 30 // more do not change the pause
)

// pauseOf returns the length of the pause after so many failures.
func (m *Middleware) pauseOf(f *found, failures byte) time.Duration {
	most := min(max(f.whileRevalidate, f.ifError)/pauseTries, m.options.RevalidateTimeout)
	return min(firstPause<<(failures-1), most)
}

// markPause writes a pause that begins now into v, the encoded entry f.
func (m *Middleware) markPause(v []byte, f *found, failures byte) {
	v[failuresAt] = failures
	end := m.store.now() + m.pauseOf(f, failures).Milliseconds()
	binary.LittleEndian.PutUint64(v[failuresAt+1:], uint64(end))
}

// beginPause begins a pause after a failure, unless the entry f has been replaced since it was
// read, or another call has failed.
func (m *Middleware) beginPause(key []byte, f *found) {
	_ = m.store.cache.Update(key, func(e *ringcache.Entry[[]byte]) {
		now, ok := decodeEntry(e.Value)
		if ok && now.moment == f.moment && now.failures == f.failures {
			m.markPause(e.Value, f, min(f.failures+1, maxFailures))
			e.Set(e.Value)
		}
	})
}

// isPaused reports whether the handler must not be called yet. When a pause is over, one request
// may. v is the encoded entry f.
func (m *Middleware) isPaused(q *query, x *index, f *found, v []byte) bool {
	if f.failures == 0 {
		return false
	}
	// It is longer than the pause if the clock was set back.
	left := time.Duration(f.pauseEnd-m.store.now()) * time.Millisecond
	if left > 0 && left <= m.pauseOf(f, f.failures) {
		return true
	}
	if q.asks.hasAny("only-if-cached") { // it does not wait for the handler
		return false
	}
	next := bytes.Clone(v)
	m.markPause(next, f, f.failures)
	mine, _ := m.store.cache.CompareAndSwap(m.store.entryKey(x, q.r), v, next)
	return !mine
}
