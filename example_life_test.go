package ringcache_test

import (
	"encoding/binary"
	"fmt"
	"log"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
)

func ExampleCache_SetWithTTL() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	_ = cache.SetWithTTL([]byte("token"), []byte("secret"), 100*time.Millisecond)
	_ = cache.SetWithTTL([]byte("session"), []byte("of somebody"), time.Hour)
	time.Sleep(100 * time.Millisecond)
	fmt.Println(cache.Has([]byte("token")), cache.Has([]byte("session")))
	// Output: false true
}

// Touch gives an entry a new TTL. (For sessions that end when they are not used, set
// Options.ExpireAfterAccess.)
func ExampleCache_Touch() {
	cache, err := ringcache.NewWithOptions(ringcache.Options{
		MaxBytes: 32 << 20,
		TTL:      30 * time.Minute,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer cache.Close()
	_ = cache.Set([]byte("session"), []byte("of somebody"))

	if cache.Touch([]byte("session"), 30*time.Minute) {
		fmt.Printf("%s\n", cache.Get(nil, []byte("session")))
	}
	// Output: of somebody
}

// A session ends 15 to 30 minutes after its last use, and twelve hours after its last Set at the
// latest; Update keeps its TTL.
func ExampleOptions_expireAfterAccess() {
	cache, err := ringcache.NewWithOptions(ringcache.Options{
		MaxBytes:          32 << 20,
		ExpireAfterAccess: 30 * time.Minute,
		TTL:               12 * time.Hour,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer cache.Close()
	_ = cache.Set([]byte("session"), []byte("of somebody"))

	session, left, ok := cache.GetWithTTL(nil, []byte("session"))
	fmt.Printf("%s %v %v\n", session, left.Round(time.Minute), ok)
	// Output: of somebody 30m0s true
}

func ExampleCache_TTL() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	_ = cache.SetWithTTL([]byte("hour"), nil, time.Hour)
	_ = cache.Set([]byte("forever"), nil)

	for _, k := range []string{"hour", "forever", "nothing"} {
		left, ok := cache.TTL([]byte(k))
		fmt.Println(k, left.Round(time.Minute), ok)
	}
	// Output:
	// hour 1h0m0s true
	// forever 0s true
	// nothing 0s false
}

// Sets reclaim the memory of expired entries as they need it. DeleteExpired needs no Set.
func ExampleCache_DeleteExpired() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	_ = cache.Set([]byte("a"), nil)
	_ = cache.SetWithTTL([]byte("b"), nil, 100*time.Millisecond)
	time.Sleep(100 * time.Millisecond)

	fmt.Println(cache.Len(), cache.DeleteExpired(), cache.Len())
	// Output: 2 1 1
}

// OnRemove may be called late for an expired entry. A goroutine that calls DeleteExpired regularly
// makes that soon.
func ExampleCache_DeleteExpired_onTime() {
	expired := make(chan string, 1)
	cache, err := ringcache.NewWithOptions(ringcache.Options{
		MaxBytes: 32 << 20,
		OnRemove: func(gone ringcache.Removal) {
			if gone.Reason == ringcache.RemovedExpired {
				expired <- string(gone.Key)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer cache.Close()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		ticker := time.NewTicker(100 * time.Millisecond) // or a second
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				cache.DeleteExpired()
			case <-stop:
				return
			}
		}
	}()

	_ = cache.SetWithTTL([]byte("session"), nil, 200*time.Millisecond)
	fmt.Println(<-expired, "has expired")
	// Output: session has expired
}

// Of the workers that see a job, one does it.
func ExampleCache_SetIfAbsent() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	for worker := range 3 {
		by, mine, err := cache.SetIfAbsent(
			nil, []byte("job 17"), fmt.Append(nil, "worker ", worker), time.Hour)
		fmt.Printf("%s %v %v\n", by, mine, err)
	}
	// Output:
	//  true <nil>
	// worker 0 false <nil>
	// worker 0 false <nil>
}

func ExampleCache_SetIfChanged() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	for _, state := range []string{"up", "up", "down"} {
		if changed, err := cache.SetIfChanged([]byte("server"), []byte(state)); changed && err == nil {
			fmt.Println("the server is", state)
		}
	}
	// Output:
	// the server is up
	// the server is down
}

func ExampleCache_CompareAndSwap() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	_ = cache.Set([]byte("leader"), []byte("a"))

	fmt.Println(cache.CompareAndSwap([]byte("leader"), []byte("b"), []byte("c")))
	fmt.Println(cache.CompareAndSwap([]byte("leader"), []byte("a"), []byte("c")))
	// Output:
	// false <nil>
	// true <nil>
}

// A counter that any number of goroutines may increment.
func ExampleCache_Update() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	increment := func(e *ringcache.Entry[[]byte]) {
		n := uint64(0)
		if e.Present {
			n = binary.LittleEndian.Uint64(e.Value)
		}
		e.Set(binary.LittleEndian.AppendUint64(e.Value[:0], n+1))
	}
	for range 3 {
		if err := cache.Update([]byte("visits"), increment); err != nil {
			log.Print(err)
		}
	}
	fmt.Println(binary.LittleEndian.Uint64(cache.Get(nil, []byte("visits"))))
	// Output: 3
}

// A line is appended to a log.
func ExampleCache_Update_append() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	for _, line := range []string{"one\n", "two\n"} {
		_ = cache.Update([]byte("log"), func(e *ringcache.Entry[[]byte]) {
			e.Set(append(e.Value, line...))
		})
	}
	fmt.Printf("%s", cache.Get(nil, []byte("log")))
	// Output:
	// one
	// two
}

func ExampleCache_GetAndDel() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	_ = cache.Set([]byte("voucher"), []byte("worth 10"))

	for range 2 {
		v, ok := cache.GetAndDel(nil, []byte("voucher"))
		fmt.Printf("%q %v\n", v, ok)
	}
	// Output:
	// "worth 10" true
	// "" false
}

func ExampleOptions_onRemove() {
	cache, err := ringcache.NewWithOptions(ringcache.Options{
		MaxBytes: 32 << 20,
		OnRemove: func(gone ringcache.Removal) {
			fmt.Printf("%s = %s: %s\n", gone.Key, gone.Value, gone.Reason)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer cache.Close()

	_ = cache.Set([]byte("k"), []byte("first"))
	_ = cache.Set([]byte("k"), []byte("second"))
	cache.Del([]byte("k"))
	// Output:
	// k = first: replaced
	// k = second: deleted
}

// A namespace has its own entries and statistics, and Reset removes all of its entries at once,
// however many there are: here when the prices have changed.
func ExampleCache_Namespace() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	prices, users := cache.Namespace("prices"), cache.Namespace("users")
	_ = prices.Set([]byte("apple"), []byte("30"))
	_ = users.Set([]byte("apple"), []byte("a user of that name"))
	fmt.Println(prices.Has([]byte("apple")), users.Has([]byte("apple")))

	prices.Reset()
	fmt.Println(prices.Has([]byte("apple")), users.Has([]byte("apple")))
	fmt.Println(prices.Stats().HitRatio())

	// Resetting a namespace also removes the entries of its views.
	byID := ringcache.NewTyped[int](prices, codec.String[string](),
		ringcache.TypedOptions{Prefix: "id:"})
	_ = byID.Set(7, "30")
	prices.Reset()
	fmt.Println(byID.Has(7))
	// Output:
	// true true
	// false true
	// 0.5
	// false
}
