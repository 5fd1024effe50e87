package ringmemlimit

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
	"weak"

	"github.com/ringcache/ringcache"
)

// Options are the settings of a [Controller]. The zero value of each field is its default.
type Options struct {
	// Share is the fraction of the memory limit that the program may use, cache included. The
	// remainder is a margin for memory that grows faster than the cache can shrink. It must be
	// above 0 and below 1; 0 means 0.8. GOMEMLIMIT lets the heap use half of the margin.
	Share float64

	// MinBytes is the smallest bound of the cache, however little memory is left. The default is
	// 1/8 of the bound that the cache has at Start, at most 128 MB and at least 32 MB. Smaller
	// values are raised to the default. It becomes 128 MB, if MaxBytes allows, where Resize rejects
	// less because the cache was created with a greater bound.
	MinBytes int

	// MaxBytes is the largest bound of the cache; 0 means as much as fits under the memory limit.
	MaxBytes int

	// Logger gets a line for each change of the cache's bound, and for the first of consecutive
	// errors. The default is slog.Default().
	Logger *slog.Logger
}

// Stats are the figures of the last reading, in bytes, and counts since Start.
type Stats struct {
	Limit      int64  // the memory limit
	Used       int64  // in use under it, cache included
	Rest       int64  // the part of Used that is not the cache, at least the Go runtime's memory
	CacheBound int64  // the bound on the cache
	HeapLimit  int64  // GOMEMLIMIT as last set
	Grown      uint64 // how often the bound was raised
	Shrunk     uint64 // how often it was lowered
	Errors     uint64 // readings and changes that failed
}

// ErrRunning is returned by Start while another Controller runs, because a program has only one
// GOMEMLIMIT.
var ErrRunning = errors.New("a controller is running")

const (
	defaultShare   = 0.8
	readInterval   = time.Second           // between two readings
	leastInterval  = 10 * time.Millisecond // between two readings after collections
	holdIntervals  = 10
	leastBound     = 32 << 20  // adjusting a smaller cache is not worthwhile
	mostLeastBound = 128 << 20 // the least bound of a large cache
	mostBound      = 4 << 40   // the greatest bound that Resize accepts
)

// Controller runs a goroutine that sets the bound of a cache and GOMEMLIMIT. [Start] returns one.
// Its methods are safe for concurrent use. It does not keep the cache alive.
type Controller struct {
	governor governor
	logger   *slog.Logger
	sources  sources
	stopping chan struct{}
	stopOnce sync.Once
	done     chan struct{}

	mu    sync.Mutex
	stats Stats

	// Only the goroutine uses these.
	held       int64    // by the cache
	heapLimit  int64    // in force
	heapWanted int64    // without regard to the user's limit
	failing    bool     // the last reading or change failed
	last       struct { // followed
		reading reading
		plan    plan
	}
}

// sources are what a controller reads and sets. Tests replace them.
type sources struct {
	interval     time.Duration
	cache        func() resizable // nil if it has been collected
	levels       func() ([]level, error)
	heap         func() int64
	setHeapLimit func(int64) int64 // returns the limit that is now in force
	collected    <-chan struct{}
	stop         func()
}

// resizable is a cache.
type resizable interface {
	Stats() ringcache.Stats
	Resize(maxBytes int) error
}

// Start reads the memory limit and the memory use, sets the bound of the cache to the memory that
// is left and GOMEMLIMIT (debug.SetMemoryLimit) to the remainder, and keeps adjusting both until
// [Controller.Close], or until the cache is closed or collected. GOMEMLIMIT is never set above the
// program's own at Start. The process must not be moved to another cgroup afterwards.
//
// Without a limit, the machine's memory is the limit, and all processes' use counts. Start panics
// if cache is nil. It returns [ringcache.ErrInvalidOptions] for options that are out of range or do
// not fit under the limit, and for a cache below 64 MB (more on systems with pages above 4 KB);
// [ringcache.ErrNamespace]; [ErrRunning]; [ringcache.ErrClosed]; [errors.ErrUnsupported] on systems
// other than Linux; and errors from reading files of the kernel. After an error the cache is
// unchanged.
func Start(cache *ringcache.Cache, o Options) (*Controller, error) {
	if cache == nil {
		panic("ringmemlimit: start controller: cache is nil")
	}
	c, err := start(cache, o)
	if err != nil {
		return nil, fmt.Errorf("ringmemlimit: start controller: %w", err)
	}
	return c, nil
}

func start(cache *ringcache.Cache, o Options) (*Controller, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("memory limit on %s: %w", runtime.GOOS, errors.ErrUnsupported)
	}
	if bound := cache.Stats().MaxBytesSize; bound == 0 {
		return nil, ringcache.ErrNamespace // only a whole cache has a bound
	} else if bound < smallestCache() {
		return nil, fmt.Errorf("cache has %d bytes, must have at least %d to give memory back: %w",
			bound, smallestCache(), ringcache.ErrInvalidOptions)
	}
	h, err := newHost("")
	if err != nil {
		return nil, err
	}
	if !heapLimit.take() {
		return nil, ErrRunning
	}
	s := system(cache, h)
	c, err := startWith(s, o)
	runtime.KeepAlive(cache) // the sources do not
	if err != nil {
		heapLimit.restore()
		s.stop()
	}
	return c, err
}

// smallestCache returns the bound of the smallest cache whose Resize gives memory back to the
// system: its chunks are as long as a page.
func smallestCache() uint64 { return uint64(os.Getpagesize()) << 14 }

// system returns the sources for a cache on the host.
func system(cache *ringcache.Cache, h *host) sources {
	gcs, pointer := newCollections(), weak.Make(cache)
	return sources{
		interval: readInterval,
		cache: func() resizable {
			if cache := pointer.Value(); cache != nil {
				return cache
			}
			return nil // not a nil pointer in an interface
		},
		levels:       h.levels,
		heap:         heapInUse,
		setHeapLimit: heapLimit.set,
		collected:    gcs.c,
		stop: func() {
			gcs.stop()
			heapLimit.leave()
		},
	}
}

// startWith is start with other sources.
func startWith(s sources, o Options) (*Controller, error) {
	o, err := o.complete(int(s.cache().Stats().MaxBytesSize))
	if err != nil {
		return nil, err
	}
	c := &Controller{
		governor: governor{
			share: o.Share, floor: int64(o.MinBytes), ceiling: o.ceiling(),
			hold: holdIntervals * s.interval,
		},
		logger: o.Logger, sources: s,
		stopping: make(chan struct{}), done: make(chan struct{}),
	}
	cache := s.cache()
	r, err := c.read(cache)
	if err != nil {
		return nil, err
	}
	p := c.governor.begin(time.Now(), r)
	if least, most := c.governor.floor, int64(o.Share*float64(p.limit)); least > most {
		return nil, fmt.Errorf("MinBytes is %d bytes, must be at most %d under a memory limit of %d: %w",
			least, most, p.limit, ringcache.ErrInvalidOptions)
	}
	if err := c.follow(cache, r, p); err != nil {
		return nil, err
	}
	go c.run()
	return c, nil
}

// complete returns the options with defaults filled in, for a cache with that bound.
func (o Options) complete(bound int) (Options, error) {
	invalid := func(format string, values ...any) (Options, error) {
		return o, fmt.Errorf(format+": %w", append(values, ringcache.ErrInvalidOptions)...)
	}
	if o.Share < 0 || o.Share >= 1 || math.IsNaN(o.Share) {
		return invalid("Share is %v, must be above 0 and below 1", o.Share)
	}
	if o.MinBytes < 0 || o.MaxBytes < 0 {
		return invalid("MinBytes is %d and MaxBytes %d, must not be negative", o.MinBytes, o.MaxBytes)
	}
	if o.Share == 0 {
		o.Share = defaultShare
	}
	o.MinBytes = max(o.MinBytes, leastBound, min(bound/8, mostLeastBound))
	if o.MaxBytes != 0 && o.MaxBytes < o.MinBytes {
		return invalid("MaxBytes is %d, must be at least MinBytes, %d", o.MaxBytes, o.MinBytes)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, nil
}

// ceiling returns the greatest bound of the cache.
func (o Options) ceiling() int64 {
	if o.MaxBytes != 0 {
		return int64(o.MaxBytes)
	}
	return min(mostBound, math.MaxInt)
}

// Close ends the controller after waiting for a change in progress. The cache keeps its bound, and
// the program its GOMEMLIMIT. A second Close does nothing.
//
// Options.OnRemove of the cache may run in the controller's goroutine. It must not call Close,
// which would deadlock, and a panic in it ends the process.
func (c *Controller) Close() {
	c.stopOnce.Do(func() { close(c.stopping) })
	<-c.done
}

// Stats returns the figures of the last reading. It takes a lock briefly.
func (c *Controller) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// heapInUse returns the memory of the Go runtime that counts toward GOMEMLIMIT.
func heapInUse() int64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}

// heapLimit is the GOMEMLIMIT of the program.
var heapLimit memoryLimit

// memoryLimit is a GOMEMLIMIT that one controller at a time may set.
type memoryLimit struct {
	mu     sync.Mutex
	taken  bool
	before int64 // in force before the last take
	last   int64 // set by a controller
	user   int64 // set by the user
}

// take reserves the limit for a controller, and returns false if another one has it.
func (m *memoryLimit) take() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken {
		return false
	}
	m.taken = true
	// A limit that an earlier controller has left is not the user's.
	m.before = debug.SetMemoryLimit(-1)
	if m.before != m.last || m.user == 0 {
		m.user = m.before
	}
	return true
}

// set sets the limit, but not above the user's, and returns the one in force.
func (m *memoryLimit) set(limit int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = min(limit, m.user)
	debug.SetMemoryLimit(m.last)
	return m.last
}

// restore sets the limit to its value before take.
func (m *memoryLimit) restore() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = m.before
	debug.SetMemoryLimit(m.last)
}

// leave ends the reservation.
func (m *memoryLimit) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken = false
}
