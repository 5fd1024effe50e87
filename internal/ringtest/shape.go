package ringtest

import (
	"context"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/testhook"
)

// Bounds of caches.
const (
	LeastMaxBytes = 256 << 10 // the least Options.MaxBytes
	MinBytes      = 32 << 20  // the least bound that New gives, and the least with all buckets
	MaxBytes      = 1 << 42   // the greatest Options.MaxBytes
)

type (
	// Loaded is a result of a load of bytes.
	Loaded = ringcache.Loaded[[]byte]

	// Entry is what the function of an Update of a cache gets.
	Entry = ringcache.Entry[[]byte]

	// LoadFunc loads bytes.
	LoadFunc = ringcache.LoadFunc[[]byte, []byte]

	// BatchLoadFunc loads the bytes of several keys.
	BatchLoadFunc = ringcache.BatchLoadFunc[[]byte, []byte]
)

// Shape is everything that shapes a cache. Unlike those of a user, the Options may be any.
type Shape struct {
	ringcache.Options
	testhook.Shape
}

// Default returns the shape of a cache of maxBytes.
func Default(maxBytes int) Shape {
	return Shape{ringcache.Options{MaxBytes: maxBytes}, testhook.Default(maxBytes)}
}

// WithCold returns g with a compressor, and a cold part of its full share.
func WithCold(g Shape, by ringcache.Compressor) Shape {
	g.Compressor, g.ColdShare = by, 0.5
	return g
}

// NewCache returns a cache of that shape.
func NewCache(g Shape) *ringcache.Cache {
	c, err := testhook.New(g.Options, g.Shape)
	if err != nil {
		panic(err)
	}
	return c.(*ringcache.Cache)
}

// Open opens a cache of that shape in the file at path.
func Open(g Shape, path string) (*ringcache.Cache, error) {
	g.File = path
	c, err := testhook.New(g.Options, g.Shape)
	return c.(*ringcache.Cache), err
}

// OfOne returns a load of several keys that loads the first.
func OfOne(load LoadFunc) BatchLoadFunc {
	return func(ctx context.Context, keys [][]byte) ([]Loaded, error) {
		v, ttl, err := load(ctx, keys[0])
		return []Loaded{{Value: v, TTL: ttl, Err: err}}, nil
	}
}

// Where addresses have 32 bits, what tests and examples close without CloseCache is collected too.
func init() {
	if strconv.IntSize == 32 {
		go func() {
			for range time.Tick(20 * time.Millisecond) {
				runtime.GC()
			}
		}()
	}
}

var closedCaches atomic.Int32

// CollectClosed is called after a cache was closed. Where addresses have 32 bits there is no
// room for many caches that wait for the collector, which they do not hurry: now and then it
// runs.
func CollectClosed() {
	if n := closedCaches.Add(1); strconv.IntSize == 32 && n%4 == 0 {
		runtime.GC()
	}
}
