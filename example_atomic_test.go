package ringcache_test

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
)

// A rate limiter with fixed windows: the first request of a client creates the counter, with the
// window as its TTL; later ones increment it and leave its expiry alone. When the window is over,
// the counter is gone, and the next request begins another.
func ExampleEntry_fixedWindow() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	const limit, window = 3, time.Minute
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

	for range 4 {
		fmt.Println("alice", allow("alice"))
	}
	fmt.Println("bob", allow("bob"))
	left, _ := cache.TTL([]byte("alice"))
	fmt.Println("next window in", left.Round(time.Minute))
	// Output:
	// alice true
	// alice true
	// alice true
	// alice false
	// bob true
	// next window in 1m0s
}

// A token bucket: a client has up to three requests at once, and gets one more each second. The
// entry expires once the bucket is full again, since a full one needs none.
func ExampleEntry_tokenBucket() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	buckets := ringcache.NewTyped[string](cache, codec.Binary[time.Time](),
		ringcache.TypedOptions{Prefix: "bucket:"})

	const burst, each = 3, time.Second
	allow := func(client string, now time.Time) (allowed bool) {
		err := buckets.Update(client, func(full *ringcache.Entry[time.Time]) { // when it is full again
			next := now.Add(each)
			if full.Present && full.Value.After(now) {
				next = full.Value.Add(each)
			}
			if allowed = !next.After(now.Add(burst * each)); allowed {
				full.SetWithTTL(next, burst*each+time.Second) // not before it is full
			}
		})
		return err == nil && allowed
	}

	now := time.Now()
	for range 4 {
		fmt.Println(allow("alice", now))
	}
	fmt.Println(allow("alice", now.Add(each)), allow("alice", now.Add(each)))
	// Output:
	// true
	// true
	// true
	// false
	// true false
}

// A lease within this process, which expires by itself if its owner hangs. Only the owner, who
// knows the token, can renew or release it: whether it still is the owner is decided in the same
// step. A cache may evict the lease early, so use it to save work, and not where two owners at once
// would do harm.
func ExampleEntry_lease() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	const lease = time.Minute
	name := []byte("report")
	acquire := func(token string) bool {
		owner, acquired, err := cache.SetIfAbsent(nil, name, []byte(token), lease)
		if !acquired && err == nil {
			fmt.Printf("%s waits for %s\n", token, owner)
		}
		return acquired
	}
	renew := func(token string) (mine bool) {
		err := cache.Update(name, func(e *ringcache.Entry[[]byte]) {
			if mine = string(e.Value) == token; mine {
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

	fmt.Println(acquire("worker 1"), acquire("worker 2"))
	fmt.Println(renew("worker 1"), renew("worker 2"))
	release("worker 2") // it is not worker 2's
	fmt.Println(acquire("worker 2"))
	release("worker 1")
	fmt.Println(acquire("worker 2"))
	// Output:
	// worker 2 waits for worker 1
	// true false
	// true false
	// worker 2 waits for worker 1
	// false
	// true
}

// An idempotency key: a payment that is sent twice is made once, and its second request gets the
// result of the first. The same call drops messages that arrive twice.
func ExampleCache_SetIfAbsent_idempotencyKey() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	payments := 0
	pay := func(key string) string {
		k := []byte(key)
		result, first, err := cache.SetIfAbsent(nil, k, []byte("in progress"), time.Hour)
		switch {
		case err != nil:
			return err.Error()
		case !first:
			return string(result)
		}
		payments++
		receipt := fmt.Sprintf("receipt %d", payments)
		_ = cache.SetWithTTL(k, []byte(receipt), 24*time.Hour)
		return receipt
	}

	fmt.Println(pay("order 17"))
	fmt.Println(pay("order 17"))
	fmt.Println(pay("order 18"))
	fmt.Println(payments, "payments")
	// Output:
	// receipt 1
	// receipt 1
	// receipt 2
	// 2 payments
}
