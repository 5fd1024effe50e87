package ringmemlimit

import (
	"runtime"
	"sync/atomic"
)

// collections reports garbage collections: c gets a value after every one, or every second one.
type collections struct {
	c       chan struct{}
	stopped atomic.Bool
}

// mark is an unreachable object that is freed by the next collection. It contains a pointer, so
// that it does not share an allocation with other objects.
type mark struct{ _ *collections }

func newCollections() *collections {
	g := &collections{c: make(chan struct{}, 1)}
	g.arm()
	return g
}

func (g *collections) arm() {
	m := &mark{g}
	runtime.AddCleanup(m, (*collections).collected, g)
}

func (g *collections) collected() {
	if g.stopped.Load() {
		return
	}
	select {
	case g.c <- struct{}{}:
	default: // the last value has not been received yet
	}
	g.arm()
}

func (g *collections) stop() { g.stopped.Store(true) }
