package codec_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
)

// JSON stores everything that encoding/json can encode.
func ExampleJSON() {
	type User struct {
		Name  string
		Roles []string
	}
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	users := ringcache.NewTyped[uint64](cache, codec.JSON[User](), ringcache.TypedOptions{})

	_ = users.Set(1815, User{Name: "Ada", Roles: []string{"admin"}})
	fmt.Println(users.Get(1815))
	// Output: {Ada [admin]} true <nil>
}

// A type that implements encoding.BinaryMarshaler and BinaryUnmarshaler is encoded by Binary.
func ExampleBinary() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	hosts := ringcache.NewTyped[string](cache, codec.Binary[netip.Addr](),
		ringcache.TypedOptions{})

	_ = hosts.Set("localhost", netip.IPv6Loopback())
	addr, ok, err := hosts.Get("localhost")
	fmt.Println(addr, ok, err)
	// Output: ::1 true <nil>
}

// Two functions make a codec.
func ExampleFunc() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	ports := ringcache.NewTyped[string](cache, codec.Func(
		func(dst []byte, port uint16) ([]byte, error) {
			return binary.BigEndian.AppendUint16(dst, port), nil
		},
		func(data []byte) (uint16, error) {
			if len(data) != 2 {
				return 0, errors.New("no port")
			}
			return binary.BigEndian.Uint16(data), nil
		},
	), ringcache.TypedOptions{})

	_ = ports.Set("https", 443)
	fmt.Println(ports.Get("https"))
	// Output: 443 true <nil>
}

// Memo avoids decoding values that are read again and again. Callers share them, so they
// must not be changed.
func ExampleMemo() {
	type Product struct {
		Name   string
		Prices map[string]int
	}
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	memo := codec.Memo(codec.JSON[*Product](), 10_000, 16<<20) // at most 10,000 values, 16 MB of JSON
	products := ringcache.NewTyped[uint64](cache, memo, ringcache.TypedOptions{})

	_ = products.Set(1, &Product{"lamp", map[string]int{"EUR": 20, "USD": 22}})
	first, _, _ := products.Get(1)
	second, _, _ := products.Get(1)
	fmt.Println(second.Name, second.Prices["EUR"], first == second)

	_ = products.Set(1, &Product{"lamp", map[string]int{"EUR": 18, "USD": 20}})
	third, _, _ := products.Get(1)
	fmt.Println(third.Name, third.Prices["EUR"])

	stats := memo.Stats()
	fmt.Println(stats.Hits, "hit and", stats.Misses, "misses")
	// Output:
	// lamp 20 true
	// lamp 18
	// 1 hit and 2 misses
}
