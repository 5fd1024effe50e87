//go:build go1.25

package ringmemlimit

import (
	"bytes"
	"cmp"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// program is a made-up process under a limit of 1,000 MB: its cache is full, and its heap what a
// test says.
type program struct {
	mu        sync.Mutex
	limit     int64 // MB, as are all
	heap      int64
	others    int64
	bound     int64
	heapLimit int64
	readings  int
	resizes   int
	readErr   error
	resizeErr error
	least     int64
	gone      bool  // the cache was collected
	lingers   bool  // but its memory is still mapped
	closed    bool  // it was closed
	kept      int64 // by the cache after a Reset; 0: it is full
	stopped   bool
	collected chan struct{}
	log       bytes.Buffer
}

func (p *program) sources() sources {
	locked := func(fn func()) {
		p.mu.Lock()
		defer p.mu.Unlock()
		fn()
	}
	return sources{
		interval: readInterval,
		cache: func() (cache resizable) {
			locked(func() {
				if !p.gone {
					cache = (*programCache)(p)
				}
			})
			return cache
		},
		levels: func() (levels []level, err error) {
			locked(func() {
				p.readings++
				used := p.heap + p.others
				if !p.gone && !p.closed || p.lingers {
					used += cmp.Or(p.kept, p.bound)
				}
				levels, err = []level{{p.limit * mb, used * mb}}, p.readErr
			})
			return levels, err
		},
		heap: func() (n int64) {
			locked(func() { n = p.heap * mb })
			return n
		},
		setHeapLimit: func(limit int64) int64 {
			locked(func() { p.heapLimit = limit / mb })
			return limit
		},
		collected: p.collected,
		stop:      func() { locked(func() { p.stopped = true }) },
	}
}

type programCache program

func (c *programCache) Stats() ringcache.Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := ringcache.Stats{ReservedBytes: uint64(c.bound * mb), MaxBytesSize: uint64(c.bound * mb)}
	if c.closed || c.kept > 0 {
		s.ReservedBytes = 0
	}
	return s
}

func (c *programCache) Resize(maxBytes int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch to := int64(maxBytes / mb); {
	case c.closed:
		return ringcache.ErrClosed
	case c.resizeErr != nil:
		return c.resizeErr
	case to < c.least:
		return ringcache.ErrInvalidOptions
	default:
		c.bound, c.kept = to, min(c.kept, to)
		c.resizes++
		return nil
	}
}

// set changes the program.
func (p *program) set(fn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fn()
}

// counts returns how often it was read and its cache resized.
func (p *program) counts() (readings, resizes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.readings, p.resizes
}

// run calls fn with a program and its controller, which has begun: the heap has 100 MB, and the
// cache 700.
func run(t *testing.T, fn func(t *testing.T, p *program, c *Controller)) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{limit: 1000, heap: 100, bound: 64, collected: make(chan struct{}, 1)}
		logger := slog.New(slog.NewTextHandler(&p.log, nil))
		c, err := startWith(p.sources(), Options{Logger: logger})
		require.NoError(t, err)
		defer func() {
			c.Close()
			require.True(t, p.stopped)
		}()
		p.requireBounds(t, 700, 200)
		fn(t, p, c)
	})
}

// requireBounds requires those of the cache and the heap, after what goes on has come to a rest.
func (p *program) requireBounds(t *testing.T, cache, heap int64) {
	t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Equal(t, []int64{cache, heap}, []int64{p.bound, p.heapLimit})
}

func TestController_FollowsTheHeap(t *testing.T) {
	run(t, func(t *testing.T, p *program, c *Controller) {
		p.set(func() { p.heap = 300 })
		p.requireBounds(t, 700, 200)
		time.Sleep(time.Second)
		p.requireBounds(t, 500, 400)
		want := Stats{
			Limit: 1000 * mb, Used: 1000 * mb, Rest: 300 * mb, CacheBound: 500 * mb, HeapLimit: 400 * mb,
			Grown: 1, Shrunk: 1,
		}
		require.Equal(t, want, c.Stats())

		p.set(func() { p.heap = 150 })
		time.Sleep(8 * time.Second)
		p.requireBounds(t, 500, 400)
		time.Sleep(13 * time.Second)
		p.requireBounds(t, 650, 250)
		require.EqualValues(t, 2, c.Stats().Grown)
		require.Equal(t, 3, strings.Count(p.log.String(), "cache resized"), p.log.String())
	})
}

func TestController_MemoryOfOthersIsNotTheHeaps(t *testing.T) {
	run(t, func(t *testing.T, p *program, _ *Controller) {
		p.set(func() { p.others = 200 })
		time.Sleep(time.Second)
		p.requireBounds(t, 500, 200)
	})
}

// A heap that comes near GOMEMLIMIT is collected, and nobody waits for the next interval.
func TestController_CollectionIsAReading(t *testing.T) {
	run(t, func(t *testing.T, p *program, _ *Controller) {
		p.set(func() { p.heap = 200 })
		p.collected <- struct{}{}
		p.requireBounds(t, 600, 300)
		before, _ := p.counts()
		for range 1000 { // collections, one after another
			select {
			case p.collected <- struct{}{}:
			default:
			}
			time.Sleep(100 * time.Microsecond)
		}
		after, _ := p.counts()
		require.LessOrEqual(t, after-before, 11, "in 100 ms")
	})
}

func TestController_LimitChanges(t *testing.T) {
	run(t, func(t *testing.T, p *program, _ *Controller) {
		p.set(func() { p.limit = 500 })
		time.Sleep(time.Second)
		p.requireBounds(t, 300, 150)
		p.set(func() { p.limit = 2000 })
		time.Sleep(21 * time.Second)
		p.requireBounds(t, 1500, 300)
	})
}

func TestController_ReadingFails(t *testing.T) {
	run(t, func(t *testing.T, p *program, c *Controller) {
		p.set(func() { p.readErr, p.heap = errors.New("no such file"), 300 })
		time.Sleep(5 * time.Second)
		p.requireBounds(t, 700, 200)
		require.EqualValues(t, 5, c.Stats().Errors)
		p.set(func() { p.readErr = nil })
		time.Sleep(time.Second)
		p.requireBounds(t, 500, 400)
		require.EqualValues(t, 5, c.Stats().Errors)
		require.Equal(t, 1, strings.Count(p.log.String(), "no such file"), p.log.String())
	})
}

func TestController_ResizeFails(t *testing.T) {
	run(t, func(t *testing.T, p *program, c *Controller) {
		p.set(func() { p.resizeErr, p.heap = errors.New("refused"), 300 })
		time.Sleep(3 * time.Second)
		p.requireBounds(t, 700, 200)
		require.EqualValues(t, 3, c.Stats().Errors)
		require.EqualValues(t, 700*mb, c.Stats().CacheBound)
		require.Zero(t, c.Stats().Shrunk)
		p.set(func() { p.resizeErr = nil })
		time.Sleep(time.Second)
		p.requireBounds(t, 500, 400)
	})
}

// The cache was made larger than it was at Start, and can be no smaller than 128 MB.
func TestController_CacheHasAGreaterLeastBound(t *testing.T) {
	run(t, func(t *testing.T, p *program, c *Controller) {
		p.set(func() { p.least, p.heap = 128, 800 })
		time.Sleep(time.Second)
		p.requireBounds(t, 128, 772)
		time.Sleep(5 * time.Second)
		require.Zero(t, c.Stats().Errors)
		_, resizes := p.counts()
		require.Equal(t, 2, resizes)
	})
}

func TestController_ClosedCacheEndsIt(t *testing.T) {
	run(t, func(t *testing.T, p *program, c *Controller) {
		p.set(func() { p.resizeErr, p.heap = ringcache.ErrClosed, 300 })
		time.Sleep(time.Second)
		p.requireBounds(t, 700, 900)
		<-c.done
		require.Zero(t, c.Stats().CacheBound)
		require.Zero(t, c.Stats().Errors)
	})
}

// The memory that Reset leaves for new entries is still the cache's, not the rest's.
func TestController_ResetChangesNoBound(t *testing.T) {
	run(t, func(t *testing.T, p *program, c *Controller) {
		time.Sleep(time.Second)
		synctest.Wait() // until it has been read while full
		p.set(func() { p.kept = p.bound })
		time.Sleep(time.Second)
		p.requireBounds(t, 700, 200)
		require.EqualValues(t, 100*mb, c.Stats().Rest)
		require.Zero(t, c.Stats().Shrunk)

		p.set(func() { p.others = 200 }) // an empty cache gives memory back too
		time.Sleep(time.Second)
		p.requireBounds(t, 500, 200)
		p.set(func() { p.others = 0 })
		time.Sleep(21 * time.Second)
		p.requireBounds(t, 700, 200)

		p.set(func() { p.closed, p.others = true, 50 })
		time.Sleep(time.Second)
		p.requireBounds(t, 700, 850)
		<-c.done
		require.Zero(t, c.Stats().CacheBound)
	})
}

// A closed cache holds nothing, and what the rest of the process uses need not change.
func TestController_ClosedCacheEndsItThoughNothingChanges(t *testing.T) {
	run(t, func(t *testing.T, p *program, c *Controller) {
		p.set(func() { p.closed = true })
		time.Sleep(time.Second)
		<-c.done
		require.Zero(t, c.Stats().CacheBound)
		require.Zero(t, c.Stats().Errors)
	})
}

// A cache is collected before its memory is unmapped: that is not the program's.
func TestController_CollectedCacheEndsIt(t *testing.T) {
	for _, lingers := range []bool{false, true} {
		run(t, func(t *testing.T, p *program, c *Controller) {
			p.set(func() { p.gone, p.lingers = true, lingers })
			time.Sleep(time.Second)
			p.requireBounds(t, 700, 900)
			<-c.done
		})
	}
}

func TestController_ClosedCacheEndsItWithoutReadings(t *testing.T) {
	run(t, func(t *testing.T, p *program, c *Controller) {
		p.set(func() { p.closed, p.readErr = true, errors.New("too many open files") })
		time.Sleep(time.Second)
		p.requireBounds(t, 700, 900)
		<-c.done
	})
}

func TestController_CloseLeavesTheBounds(t *testing.T) {
	run(t, func(t *testing.T, p *program, c *Controller) {
		c.Close()
		p.set(func() { p.heap = 300 })
		before, _ := p.counts()
		time.Sleep(time.Minute)
		p.requireBounds(t, 700, 200)
		after, _ := p.counts()
		require.Equal(t, before, after)
		c.Close()
	})
}

func TestStart_ErrorsLeaveTheCache(t *testing.T) {
	for name, test := range map[string]struct {
		change func(p *program)
		want   string
	}{
		"reading": {func(p *program) { p.readErr = errors.New("no such file") }, "no such file"},
		"closed":  {func(p *program) { p.resizeErr = ringcache.ErrClosed }, "closed"},
		"too little": {func(p *program) { p.limit = 30 },
			"MinBytes is 33554432 bytes, must be at most 25165824 under a memory limit of 31457280"},
	} {
		p := &program{limit: 1000, heap: 100, bound: 64}
		test.change(p)
		_, err := startWith(p.sources(), Options{})
		require.ErrorContains(t, err, test.want, name)
		require.EqualValues(t, 64, p.bound, name)
	}
}
