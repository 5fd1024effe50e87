// Package scratch has buffers that calls use one after another.
package scratch

import "sync"

// Most is the largest buffer that is kept for the next call.
const Most = 1 << 20

// Buffer is one. Its holder may replace Bytes, with a longer array too.
type Buffer struct{ Bytes []byte }

var pool = sync.Pool{New: func() any { return new(Buffer) }}

// Get returns a buffer for a call, which gives it back with Release.
func Get() *Buffer { return pool.Get().(*Buffer) }

// Fit makes room for n bytes in the next call that gets b. It is for bytes that are somebody
// else's and cannot become the buffer.
func (b *Buffer) Fit(n int) {
	if n > cap(b.Bytes) && n <= Most {
		b.Bytes = make([]byte, 0, min(2*n, Most))
	}
}

// Release hands b to the next call.
func (b *Buffer) Release() {
	if cap(b.Bytes) <= Most {
		pool.Put(b)
	}
}
