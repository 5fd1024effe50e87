package ringmemlimit

import (
	"runtime"
	"sync/atomic"
)

// collections tells of garbage collections: a value is in c after each, or after every second one.
type collections struct {
	c       chan struct{}
	stopped atomic.Bool
}

// mark is an object that nobody refers to, so that each collection finds it. It has a pointer, so
// it gets no memory together with other objects.
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
	default: // the last one has not been looked at yet
	}
	g.arm()
}

func (g *collections) stop() { g.stopped.Store(true) }
