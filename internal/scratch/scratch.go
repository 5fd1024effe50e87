// Package scratch provides buffers that are reused from call to call.
package scratch

import "sync"

// Most is the largest buffer that is kept for the next call.
const Most = 1 << 20

// Buffer is a buffer. Its holder may replace Bytes, also by a longer slice.
type Buffer struct{ Bytes []byte }

var pool = sync.Pool{New: func() any { return new(Buffer) }}

// Get returns a buffer for a call, which gives it back with Release.
func Get() *Buffer { return pool.Get().(*Buffer) }

// Fit grows b to n bytes for the next call that gets it. It is for a call whose n bytes belong to
// its caller, and so cannot be kept as the buffer.
func (b *Buffer) Fit(n int) {
	if n > cap(b.Bytes) && n <= Most {
		b.Bytes = make([]byte, 0, min(2*n, Most))
	}
}

// Release makes b available to other calls.
func (b *Buffer) Release() {
	if cap(b.Bytes) <= Most {
		pool.Put(b)
	}
}
