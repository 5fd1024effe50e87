package ringcache_test

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ringcache/ringcache"
)

// A rate limiter with fixed windows: the first request of a client creates the counter, with the
// window as its TTL; later ones increment it and leave its expiry alone. When the window is over,
// the counter is gone, and the next request begins another.
func ExampleCache_UpdateWithTTL() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	const limit, window = 3, time.Minute
	allow := func(client string) bool {
		var n uint64
		err := cache.UpdateWithTTL([]byte(client), window, func(old []byte, ok bool) ([]byte, bool) {
			n = 1 // fn may run again: it starts from what it is given
			if ok {
				n += binary.LittleEndian.Uint64(old)
			}
			return binary.LittleEndian.AppendUint64(old[:0], n), true
		})
		return err == nil && n <= limit
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

// A lock within this process that expires by itself if its owner hangs. Only the owner, who knows
// the token, can release it. A cache may evict the lock early, so use it to save work, and not
// where two owners at once would do harm.
func ExampleCache_SetIfAbsentWithTTL_lock() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	lock := func(name, token string) bool {
		owner, locked, err := cache.SetIfAbsentWithTTL(nil, []byte(name), []byte(token), time.Minute)
		if !locked && err == nil {
			fmt.Printf("%s waits for %s\n", token, owner)
		}
		return locked
	}
	release := func(name, token string) {
		_ = cache.Update([]byte(name), func(owner []byte, ok bool) ([]byte, bool) {
			return owner, ok && string(owner) != token // keep somebody else's lock
		})
	}

	fmt.Println(lock("report", "worker 1"))
	fmt.Println(lock("report", "worker 2"))
	release("report", "worker 2") // it is not worker 2's
	fmt.Println(lock("report", "worker 2"))
	release("report", "worker 1")
	fmt.Println(lock("report", "worker 2"))
	// Output:
	// true
	// worker 2 waits for worker 1
	// false
	// worker 2 waits for worker 1
	// false
	// true
}

// An idempotency key: a payment that is sent twice is made once, and its second request gets the
// result of the first. The same call drops messages that arrive twice.
func ExampleCache_SetIfAbsentWithTTL_idempotencyKey() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	payments := 0
	pay := func(key string) string {
		k := []byte(key)
		result, first, err := cache.SetIfAbsentWithTTL(nil, k, []byte("in progress"), time.Hour)
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

// A de-duplicator: each message is handled once in ten minutes, however often it is delivered.
// The stored value is empty, so a duplicate costs no allocation.
func ExampleCache_SetIfAbsentWithTTL_deduplicate() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()

	for _, id := range []string{"a", "b", "a", "c", "b", "a"} {
		_, first, err := cache.SetIfAbsentWithTTL(nil, []byte(id), nil, 10*time.Minute)
		if first || err != nil {
			fmt.Println("handle", id)
		}
	}
	// Output:
	// handle a
	// handle b
	// handle c
}
