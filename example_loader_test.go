package ringcache_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringcache/ringcache"
)

// A missing value is loaded, and is then in the cache for later callers.
func ExampleCache_GetOrLoad() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	// Made once: a closure in the call might be allocated on each call.
	load := func(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
		fmt.Printf("looking for %s\n", k)
		return []byte("Saturn"), time.Minute, nil
	}
	for range 3 {
		v, err := cache.GetOrLoad(context.Background(), nil, []byte("planet"), load)
		fmt.Printf("%s %v\n", v, err)
	}
	// Output:
	// looking for planet
	// Saturn <nil>
	// Saturn <nil>
	// Saturn <nil>
}

// A load that finds no value can have the cache remember that for a while.
func ExampleCache_GetOrLoad_absent() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	load := func(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
		fmt.Printf("looking for %s\n", k)
		return nil, 5 * time.Second, ringcache.ErrAbsent
	}
	for range 2 {
		_, err := cache.GetOrLoad(context.Background(), nil, []byte("Vulcan"), load)
		fmt.Println(err, errors.Is(err, ringcache.ErrAbsent))
	}
	fmt.Println(cache.Has([]byte("Vulcan")))
	// Output:
	// looking for Vulcan
	// ringcache: load entry: key is absent true
	// ringcache: load entry: key is absent true
	// false
}

// Errors other than ErrAbsent are not stored: the next caller tries again.
func ExampleCache_GetOrLoad_errors() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	tries := 0
	load := func(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
		if tries++; tries == 1 {
			return nil, 0, errors.New("connection refused")
		}
		return []byte("Saturn"), 0, nil
	}
	for range 2 {
		v, err := cache.GetOrLoad(context.Background(), nil, []byte("planet"), load)
		fmt.Printf("%q %v\n", v, err)
	}
	// Output:
	// "" ringcache: load entry: connection refused
	// "Saturn" <nil>
}

// Each caller waits only as long as its own context allows. Nobody else waits for this load, so
// when the caller leaves, the context of the load is canceled.
func ExampleCache_GetOrLoad_context() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	caller, giveUp := context.WithCancel(context.Background())
	stopped := make(chan error)
	load := func(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
		giveUp() // a timeout, perhaps
		<-ctx.Done()
		stopped <- ctx.Err()
		return nil, 0, ctx.Err()
	}
	_, err := cache.GetOrLoad(caller, nil, []byte("planet"), load)
	fmt.Println(err)
	fmt.Println(<-stopped)
	// Output:
	// ringcache: load entry: context canceled
	// context canceled
}

// The missing values of a batch are usually loaded with one call.
func ExampleCache_GetOrLoadBatch() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	_ = cache.Set([]byte("moon 2"), []byte("Europa"))

	load := func(ctx context.Context, keys [][]byte) ([]ringcache.Loaded[[]byte], error) {
		fmt.Printf("looking for %q\n", keys)
		found := make([]ringcache.Loaded[[]byte], len(keys)) // one for each key, in the same order
		for i, k := range keys {
			switch string(k) {
			case "moon 1":
				found[i].Value = []byte("Io")
			default:
				found[i].Err = ringcache.ErrAbsent
			}
		}
		return found, nil
	}
	keys := [][]byte{[]byte("moon 1"), []byte("moon 2"), []byte("moon 200")}
	vals := make([][]byte, len(keys))
	for range 2 {
		_, hits, err := cache.GetOrLoadBatch(context.Background(), nil, keys, vals, load)
		fmt.Printf("%q, %d hits, %v\n", vals, hits, err)
	}
	// Output:
	// looking for ["moon 1" "moon 200"]
	// ["Io" "Europa" ""], 1 hits, <nil>
	// ["Io" "Europa" ""], 2 hits, <nil>
}

// The result of a batch distinguishes keys that failed from keys that have no value.
func ExampleBatchError() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	_ = cache.Set([]byte("moon 1"), []byte("Io"))

	load := func(context.Context, [][]byte) ([]ringcache.Loaded[[]byte], error) {
		return nil, errors.New("connection refused")
	}
	keys := [][]byte{[]byte("moon 1"), []byte("moon 2"), []byte("moon 3")}
	vals := make([][]byte, len(keys))
	_, _, err := cache.GetOrLoadBatch(context.Background(), nil, keys, vals, load)
	fmt.Printf("%q %v\n", vals, err)
	var failed *ringcache.BatchError
	if errors.As(err, &failed) {
		for _, k := range failed.Failed {
			fmt.Printf("%s: %v\n", keys[k.Index], k.Err)
		}
	}
	// Output:
	// ["Io" "" ""] ringcache: load batch: index 1: connection refused (and 1 more)
	// moon 2: connection refused
	// moon 3: connection refused
}

// While the source is down, an expired value is returned instead.
func ExampleOptions_staleIfError() {
	cache, err := ringcache.NewWithOptions(ringcache.Options{
		MaxBytes: 32 << 20, TTL: 100 * time.Millisecond, StaleIfError: time.Hour})
	if err != nil {
		panic(err)
	}
	defer cache.Close()

	down := func(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
		return nil, 0, errors.New("connection refused")
	}
	_ = cache.Set([]byte("planet"), []byte("Saturn"))
	time.Sleep(200 * time.Millisecond)
	fmt.Println(cache.Has([]byte("planet")))
	v, err := cache.GetOrLoad(context.Background(), nil, []byte("planet"), down)
	fmt.Printf("%s %v\n", v, err)
	// Output:
	// false
	// Saturn <nil>
}

// If there is a stale value, a call waits for a slow backend no longer than the soft timeout. The
// load goes on.
func ExampleOptions_softTimeout() {
	cache, err := ringcache.NewWithOptions(ringcache.Options{
		MaxBytes: 32 << 20, TTL: 100 * time.Millisecond,
		StaleIfError: time.Hour, SoftTimeout: 50 * time.Millisecond})
	if err != nil {
		panic(err)
	}
	defer cache.Close()

	answer := make(chan string)
	slow := func(ctx context.Context, k []byte) ([]byte, time.Duration, error) {
		select {
		case v := <-answer:
			return []byte(v), time.Hour, nil
		case <-ctx.Done(): // RefreshTimeout, here 30 seconds
			return nil, 0, ctx.Err()
		}
	}
	_ = cache.Set([]byte("moons"), []byte("146"))
	time.Sleep(200 * time.Millisecond)
	for range 3 {
		v, err := cache.GetOrLoad(context.Background(), nil, []byte("moons"), slow)
		fmt.Printf("%s %v\n", v, err)
	}
	answer <- "274"
	for !cache.Has([]byte("moons")) {
		time.Sleep(time.Millisecond)
	}
	v, err := cache.GetOrLoad(context.Background(), nil, []byte("moons"), slow)
	fmt.Printf("%s %v\n", v, err)
	// Output:
	// 146 <nil>
	// 146 <nil>
	// 146 <nil>
	// 274 <nil>
}

// A panic in a load reaches the callers that wait for its value.
func ExampleLoadPanic() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	defer func() {
		p := recover().(*ringcache.LoadPanic)
		fmt.Println(p.Value, len(p.Stack) > 0)
	}()
	load := func(context.Context, []byte) ([]byte, time.Duration, error) {
		panic("out of orbit")
	}
	cache.GetOrLoad(context.Background(), nil, []byte("planet"), load)
	// Output: out of orbit true
}
