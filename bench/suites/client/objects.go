package client

import (
	"time"

	"github.com/Yiling-J/theine-go"
	"github.com/dgraph-io/ristretto/v2"
	"github.com/hashicorp/golang-lru/v2/expirable"
	"github.com/maypok86/otter/v2"
)

type otterClient struct{ c *otter.Cache[string, string] }

func openOtter(o Options) (Cache, error) {
	options := &otter.Options[string, string]{
		MaximumSize:     o.Capacity,
		InitialCapacity: o.Capacity,
	}
	if o.TTL > 0 {
		options.ExpiryCalculator = otter.ExpiryWriting[string, string](o.TTL)
	}
	if o.Synchronous {
		options.Executor = func(fn func()) { fn() }
	}
	c, err := otter.New(options)
	if err != nil {
		return nil, err
	}
	return otterClient{c}, nil
}

func (o otterClient) Set(key, value string)                    { o.c.Set(key, value) }
func (o otterClient) Get(_ *[]byte, key string) (string, bool) { return o.c.GetIfPresent(key) }

func (o otterClient) Len() int {
	o.c.CleanUp()
	return o.c.EstimatedSize()
}

func (o otterClient) Close() {
	o.c.InvalidateAll()
	o.c.StopAllGoroutines()
}

type theineClient struct {
	c   *theine.Cache[string, string]
	ttl time.Duration // 0: entries do not expire
}

func openTheine(o Options) (Cache, error) {
	c, err := theine.NewBuilder[string, string](int64(o.Capacity)).Build()
	if err != nil {
		return nil, err
	}
	return theineClient{c, o.TTL}, nil
}

func (t theineClient) Set(key, value string) {
	t.c.SetWithTTL(key, value, 1, t.ttl)
}

func (t theineClient) Get(_ *[]byte, key string) (string, bool) { return t.c.Get(key) }

func (t theineClient) Len() int {
	t.c.Wait()
	return t.c.Len()
}

func (t theineClient) Close() { t.c.Close() }

type ristrettoClient struct {
	c   *ristretto.Cache[string, string]
	ttl time.Duration // 0: entries do not expire
}

func openRistretto(o Options) (Cache, error) {
	c, err := ristretto.NewCache(&ristretto.Config[string, string]{
		NumCounters:        10 * int64(o.Capacity), // as its documentation advises
		MaxCost:            int64(o.Capacity),
		BufferItems:        64,
		IgnoreInternalCost: true,
	})
	if err != nil {
		return nil, err
	}
	return ristrettoClient{c, o.TTL}, nil
}

func (r ristrettoClient) Set(key, value string) {
	r.c.SetWithTTL(key, value, 1, r.ttl)
}

func (r ristrettoClient) Get(_ *[]byte, key string) (string, bool) { return r.c.Get(key) }

// Len follows from the cost of the entries, which is 1 each: only the metrics count them.
func (r ristrettoClient) Len() int {
	r.c.Wait()
	return int(r.c.MaxCost() - r.c.RemainingCost())
}

func (r ristrettoClient) Close() { r.c.Close() }

// lruClient never stops the goroutine of its cache: there is no method that does.
type lruClient struct {
	c *expirable.LRU[string, string]
}

func openLRU(o Options) (Cache, error) {
	return lruClient{expirable.NewLRU[string, string](o.Capacity, nil, o.TTL)}, nil
}

func (l lruClient) Set(key, value string)                    { l.c.Add(key, value) }
func (l lruClient) Get(_ *[]byte, key string) (string, bool) { return l.c.Get(key) }
func (l lruClient) Len() int                                 { return l.c.Len() }
func (l lruClient) Close()                                   { l.c.Purge() }
