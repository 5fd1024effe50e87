package ringtest

import (
	"errors"
	"runtime"
	"sync/atomic"

	"github.com/ringcache/ringcache/internal/chunk"
	"github.com/ringcache/ringcache/internal/testhook"
)

// Meter is memory that refuses maps beyond a number.
type Meter struct {
	Allowed atomic.Int32
	Maps    atomic.Int32
}

// SystemMemory returns the memory that caches use by default.
func SystemMemory() chunk.Memory { return testhook.Default(1 << 20).Memory }

// Memory returns memory that is counted.
func (m *Meter) Memory() chunk.Memory {
	mem := SystemMemory()
	mem.Headroom = 0 // whose probes are no areas
	mem.Map = func(n int) ([]byte, error) {
		if m.Maps.Load() >= m.Allowed.Load() {
			return nil, ErrRefused
		}
		m.Maps.Add(1)
		return SystemMemory().Map(n)
	}
	return mem
}

// ErrRefused is the error of memory that is refused.
var ErrRefused = errors.New("refused by the test")

// Allocated returns how many bytes of the Go heap the process takes, in all, while fn runs.
func Allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// HeapBytes returns the bytes of the Go heap that are in use after a collection.
func HeapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
