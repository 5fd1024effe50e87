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
