package client

import (
	"math"
	"unsafe"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
)

// leastBytes is the smallest bound of ringcache.
const leastBytes = 256 << 10

// bytesClient is ringcache with the bytes of the strings.
type bytesClient struct{ c *ringcache.Cache }

func openRingcache(o Options) (Cache, error) {
	c, err := newRingcache(o)
	if err != nil {
		return nil, err
	}
	return bytesClient{c}, nil
}

func (b bytesClient) Set(key, value string) {
	if err := b.c.Set(bytesOf(key), bytesOf(value)); err != nil {
		panic(err) // no value is too long for any of these caches
	}
}

func (b bytesClient) Get(buf *[]byte, key string) (string, bool) {
	v, ok := b.c.HasGet((*buf)[:0], bytesOf(key))
	*buf = v
	return unsafe.String(unsafe.SliceData(v), len(v)), ok
}

func (b bytesClient) Len() int { return b.c.Len() }

func (b bytesClient) Close() {
	if err := b.c.Close(); err != nil {
		panic(err)
	}
}

// typedClient is ringcache with a codec.
type typedClient struct {
	bytesClient
	view *ringcache.Typed[string, string]
}

func openTyped(o Options) (Cache, error) {
	c, err := newRingcache(o)
	if err != nil {
		return nil, err
	}
	view := ringcache.NewTyped[string](c, codec.String[string](), ringcache.TypedOptions{})
	return typedClient{bytesClient{c}, view}, nil
}

func (t typedClient) Set(key, value string) {
	if err := t.view.Set(key, value); err != nil {
		panic(err)
	}
}

func (t typedClient) Get(_ *[]byte, key string) (string, bool) {
	v, ok, err := t.view.Get(key)
	if err != nil {
		panic(err)
	}
	return v, ok
}

func newRingcache(o Options) (*ringcache.Cache, error) {
	maxBytes, err := bound(o)
	if err != nil {
		return nil, err
	}
	return ringcache.NewWithOptions(ringcache.Options{MaxBytes: maxBytes, TTL: o.TTL})
}

// bound returns the bytes that o stands for.
func bound(o Options) (int, error) {
	const overhead = 64 // bytes of an entry, ample
	entry := o.KeySize + o.ValueSize
	if o.Ample {
		return max(leastBytes, o.Capacity*(2*entry+overhead)), nil
	}
	return fit(o, o.Capacity*(entry+overhead/4))
}

// fit returns the bound at which a cache full of entries of o's lengths holds Capacity of them, or
// the nearest that it has tried; leastBytes, if that holds more. It starts from maxBytes.
func fit(o Options, maxBytes int) (best int, err error) {
	nearest := math.Inf(1)
	for range 8 {
		maxBytes = max(maxBytes, leastBytes)
		n, err := holds(o, maxBytes)
		if err != nil {
			return 0, err
		}
		share := float64(n) / float64(o.Capacity)
		if off := math.Abs(share - 1); off < nearest {
			nearest, best = off, maxBytes
		}
		if nearest < 0.005 || share > 1 && maxBytes == leastBytes {
			break
		}
		maxBytes = int(float64(maxBytes) / share)
	}
	return best, nil
}

// holds returns how many entries of o's lengths a cache of maxBytes holds when it is full, at most
// twice o.Capacity.
func holds(o Options, maxBytes int) (int, error) {
	c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: maxBytes, TTL: o.TTL})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	key, value := make([]byte, max(o.KeySize, 4)), make([]byte, o.ValueSize)
	for i := range 2 * o.Capacity {
		key[0], key[1], key[2], key[3] = byte(i), byte(i>>8), byte(i>>16), byte(i>>24)
		if err := c.Set(key, value); err != nil {
			return 0, err
		}
	}
	return c.Len(), nil
}

// bytesOf returns the bytes of s, which must not be changed.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
