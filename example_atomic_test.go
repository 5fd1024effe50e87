package ringcache_test

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
)

// concurrently calls fn in n goroutines, with their numbers, and waits for them.
func concurrently(n int, fn func(worker int)) {
	var all sync.WaitGroup
	for worker := range n {
		all.Add(1)
		go func() {
			defer all.Done()
			fn(worker)
		}()
	}
	all.Wait()
}

// A rate limiter with fixed windows: the first request of a client creates the counter, with the
// window as its TTL; later ones increment it, up to the limit, and leave its expiry alone. When the
// window is over, the counter is gone, and the next request begins another.
func ExampleEntry_fixedWindow() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	const limit, window = 100, time.Minute
	allow := func(client string) (allowed bool) {
		err := cache.Update([]byte(client), func(e *ringcache.Entry[[]byte]) {
			if !e.Present {
				e.SetWithTTL(binary.LittleEndian.AppendUint64(nil, 1), window)
				allowed = true
				return
			}
			n := binary.LittleEndian.Uint64(e.Value) + 1
			if allowed = n <= limit; allowed {
				e.Set(binary.LittleEndian.AppendUint64(e.Value[:0], n))
			}
		})
		return err == nil && allowed
	}

	var allowed atomic.Int64
	concurrently(16, func(int) {
		for range 50 {
			if allow("alice") {
				allowed.Add(1)
			}
		}
	})
	fmt.Println("alice:", allowed.Load(), "of 800")
	fmt.Println("bob:", allow("bob"))
	left, _ := cache.TTL([]byte("alice"))
	fmt.Println("next window in", left.Round(time.Minute))
	// Output:
	// alice: 100 of 800
	// bob: true
	// next window in 1m0s
}

// A token bucket: a client has up to three requests at once, and gets one more each minute. The
// value is the time at which the bucket will be full again. Each request that is allowed also sets
// the expiry, since a full bucket needs no entry.
func ExampleEntry_tokenBucket() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	buckets := ringcache.NewTyped[string](cache, codec.Binary[time.Time](),
		ringcache.TypedOptions{Prefix: "bucket:"})

	const burst, each = 3, time.Minute
	allow := func(client string, now time.Time) (allowed bool) {
		err := buckets.Update(client, func(full *ringcache.Entry[time.Time]) {
			next := now.Add(each)
			if full.Present && full.Value.After(now) {
				next = full.Value.Add(each)
			}
			if allowed = !next.After(now.Add(burst * each)); allowed {
				full.SetWithTTL(next, next.Sub(now)+time.Second) // not before it is full
			}
		})
		return err == nil && allowed
	}

	now := time.Now()
	for _, later := range []time.Duration{0, each, each, each / 2, each / 2, 10 * each} {
		now = now.Add(later)
		var allowed atomic.Int64
		concurrently(16, func(int) {
			for range 10 {
				if allow("alice", now) {
					allowed.Add(1)
				}
			}
		})
		fmt.Println("after", later, allowed.Load(), "of 160")
	}
	// Output:
	// after 0s 3 of 160
	// after 1m0s 1 of 160
	// after 1m0s 1 of 160
	// after 30s 0 of 160
	// after 30s 1 of 160
	// after 10m0s 3 of 160
}

// A lease within this process, which expires by itself if its owner hangs. Only the owner, who
// knows the token, can renew or release it: whether it still is the owner is decided in the same
// step. A cache may evict the lease early, so use it to save work, and not where two owners at once
// would do harm.
func ExampleEntry_lease() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	name := []byte("report")
	acquire := func(token string, lease time.Duration) bool {
		_, acquired, err := cache.SetIfAbsent(nil, name, []byte(token), lease)
		return acquired && err == nil
	}
	renew := func(token string, lease time.Duration) (mine bool) {
		err := cache.Update(name, func(e *ringcache.Entry[[]byte]) {
			if mine = e.Present && string(e.Value) == token; mine {
				e.SetWithTTL(e.Value, lease)
			}
		})
		return mine && err == nil
	}
	release := func(token string) {
		_ = cache.Update(name, func(e *ringcache.Entry[[]byte]) {
			if string(e.Value) == token {
				e.Del()
			}
		})
	}

	fmt.Println(acquire("hangs", 100*time.Millisecond))
	time.Sleep(100 * time.Millisecond)
	var owners, renewed atomic.Int64
	concurrently(16, func(worker int) {
		if acquire(fmt.Sprint(worker), time.Minute) {
			owners.Add(1)
		}
	})
	concurrently(16, func(worker int) {
		if renew(fmt.Sprint(worker), time.Hour) {
			renewed.Add(1)
		}
	})
	fmt.Println(owners.Load(), "owner, renewed", renewed.Load(), "time")

	fmt.Println(renew("hangs", 24*time.Hour)) // too late: the lease is another's
	release("hangs")
	left, ok := cache.TTL(name)
	fmt.Println(left.Round(time.Hour), ok)
	concurrently(16, func(worker int) { release(fmt.Sprint(worker)) })
	fmt.Println(acquire("next", time.Minute))
	// Output:
	// true
	// 1 owner, renewed 1 time
	// false
	// 1h0m0s true
	// true
}

// A counter that outlives its window: each failed login extends the time for which the count is
// kept, to a minute for each failure so far.
func ExampleEntry_extend() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	failures := ringcache.NewTyped[string](cache, codec.JSON[int](),
		ringcache.TypedOptions{Prefix: "failures:"})

	failed := func(user string) error {
		return failures.Update(user, func(e *ringcache.Entry[int]) {
			n := e.Value + 1 // Value is 0 if there is none
			e.SetWithTTL(n, time.Duration(n)*time.Minute)
		})
	}

	concurrently(16, func(int) {
		for range 10 {
			_ = failed("mallory")
		}
	})
	n, left, ok, err := failures.GetWithTTL("mallory")
	fmt.Println(n, left.Round(time.Minute), ok, err)
	// Output: 160 2h40m0s true <nil>
}

// An idempotency key: a payment that is sent twice is normally made once, and its second request
// gets the result of the first, or learns that it is in progress. If the payment fails, the key is
// removed, so that it can be sent again.
func ExampleCache_SetIfAbsent_idempotencyKey() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	var payments atomic.Int64
	charge := func(order string) (receipt string, err error) {
		return fmt.Sprintf("receipt %d", payments.Add(1)), nil
	}
	pay := func(order string) (string, error) {
		key := []byte(order)
		result, first, err := cache.SetIfAbsent(nil, key, []byte("in progress"), time.Hour)
		if err != nil || !first {
			return string(result), err
		}
		receipt, err := charge(order)
		if err != nil {
			cache.Del(key)
			return "", err
		}
		// If the cache has no room for the receipt, a retry would charge again: the order's database
		// has the last word.
		_ = cache.SetWithTTL(key, []byte(receipt), 24*time.Hour)
		return receipt, nil
	}

	concurrently(16, func(int) { _, _ = pay("order 17") })
	fmt.Println(pay("order 17"))
	fmt.Println(pay("order 18"))
	fmt.Println(payments.Load(), "payments")
	// Output:
	// receipt 1 <nil>
	// receipt 2 <nil>
	// 2 payments
}
