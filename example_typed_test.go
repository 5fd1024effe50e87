package ringcache_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
)

// A view of a cache has keys and values of a program's own types.
func ExampleTyped() {
	type User struct {
		Name  string
		Roles []string
	}
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	users := ringcache.NewTyped[uint64](cache, codec.JSON[User](), ringcache.TypedOptions{})

	if err := users.Set(1815, User{Name: "Ada", Roles: []string{"admin"}}); err != nil {
		log.Print(err) // not stored; the key is now absent
	}
	user, ok, err := users.Get(1815)
	fmt.Println(user.Name, user.Roles, ok, err)
	user, ok, err = users.Get(1816)
	fmt.Printf("%q %v %v\n", user.Name, ok, err)
	// Output:
	// Ada [admin] true <nil>
	// "" false <nil>
}

// A struct becomes a key by its bytes: fields of fixed length one after another, so that no two
// structs have the same.
func ExampleKey_struct() {
	type seat struct {
		Flight uint32
		Row    uint16
		Letter byte
	}
	key := func(s seat) []byte {
		k := binary.BigEndian.AppendUint32(make([]byte, 0, 7), s.Flight)
		return append(binary.BigEndian.AppendUint16(k, s.Row), s.Letter)
	}
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	passengers := ringcache.NewTyped[[]byte](cache, codec.String[string](),
		ringcache.TypedOptions{Prefix: "seat:"})

	_ = passengers.Set(key(seat{447, 12, 'A'}), "Ada")
	fmt.Println(passengers.Get(key(seat{447, 12, 'A'})))
	fmt.Println(passengers.Has(key(seat{447, 1, '2'})))
	// Output:
	// Ada true <nil>
	// false
}

// Len and Reset of a view are loops over all keys of the cache. Those of a namespace are not.
func ExampleTyped_Reset() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	prices := ringcache.NewTyped[int](cache, codec.JSON[float64](),
		ringcache.TypedOptions{Prefix: "price:"})
	space := cache.Namespace("stock")
	stock := ringcache.NewTyped[int](space, codec.JSON[int](), ringcache.TypedOptions{})
	_ = prices.SetBatch([]int{7, 8}, []float64{1.5, 2})
	_ = stock.SetBatch([]int{7, 8, 9}, []int{10, 20, 30})

	fmt.Println(prices.Len(), stock.Len(), space.Len())
	prices.Reset()
	fmt.Println(prices.Len(), stock.Len(), space.Len())
	space.Reset() // in constant time
	fmt.Println(prices.Len(), stock.Len(), space.Len())
	// Output:
	// 2 3 3
	// 0 3 3
	// 0 0 0
}

// Code that reads through a cache can ignore the error of Get: a value that cannot be decoded is
// computed and stored again, like a missing one.
func ExampleTyped_readThrough() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	lengths := ringcache.NewTyped[string](cache, codec.JSON[int](), ringcache.TypedOptions{})
	_ = cache.Set([]byte("Saturn"), []byte("six")) // in the form of an older version

	length := func(word string) int {
		if n, ok, _ := lengths.Get(word); ok {
			return n
		}
		fmt.Println("computing", word)
		n := len(word)
		_ = lengths.Set(word, n) // if it is not stored, it is computed again
		return n
	}
	for _, word := range []string{"Venus", "Saturn", "Saturn", "Venus"} {
		fmt.Println(length(word))
	}
	// Output:
	// computing Venus
	// 5
	// computing Saturn
	// 6
	// 6
	// 5
}

// Views with different prefixes can share a cache and its bound. The methods of the cache itself
// can reach their entries.
func ExampleTypedOptions() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	names := ringcache.NewTyped[int32](cache, codec.String[string](),
		ringcache.TypedOptions{Prefix: "name:"})
	visits := ringcache.NewTyped[int32](cache, codec.Binary[time.Time](),
		ringcache.TypedOptions{Prefix: "visit:"})

	_ = names.Set(7, "Grace")
	_ = visits.Set(7, time.Date(1944, 8, 7, 0, 0, 0, 0, time.UTC))
	fmt.Println(cache.Len(), names.Del(7), names.Has(7), visits.Has(7))
	fmt.Println(cache.Has([]byte("visit:\x00\x00\x00\x07")))
	// Output:
	// 2 true false true
	// true
}

// An error from Get means that the entry exists, in a form that the codec cannot decode. It wraps
// the codec's own error.
func ExampleTyped_Get_errors() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	hosts := ringcache.NewTyped[string](cache, codec.Binary[netip.Addr](),
		ringcache.TypedOptions{})
	_ = cache.Set([]byte("proxy"), []byte("local"))

	_, ok, err := hosts.Get("proxy")
	fmt.Println(ok, errors.Is(err, ringcache.ErrDecode))
	fmt.Println(err)
	// Output:
	// false true
	// ringcache: get entry "proxy" of 5 bytes: value cannot be decoded: unexpected slice size
}

// Temperatures is a value of fixed size. Its fields are in degrees Celsius.
type Temperatures struct{ Air, Water float32 }

// temperaturesCodec stores them in 8 bytes, as two integers in hundredths of a degree.
type temperaturesCodec struct{}

func (temperaturesCodec) Append(dst []byte, t Temperatures) ([]byte, error) {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(int32(100*t.Air)))
	return binary.LittleEndian.AppendUint32(dst, uint32(int32(100*t.Water))), nil
}

func (temperaturesCodec) Decode(data []byte) (Temperatures, error) {
	if len(data) != 8 {
		return Temperatures{}, fmt.Errorf("%d bytes, want 8", len(data))
	}
	return Temperatures{
		Air:   float32(int32(binary.LittleEndian.Uint32(data))) / 100,
		Water: float32(int32(binary.LittleEndian.Uint32(data[4:]))) / 100,
	}, nil
}

// This codec does not allocate, so Set and Get of its view normally do not allocate.
func ExampleCodec() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	byStation := ringcache.NewTyped[string](cache, temperaturesCodec{}, ringcache.TypedOptions{})

	_ = byStation.Set("Sylt", Temperatures{Air: 17.5, Water: -0.25})
	t, ok, err := byStation.Get("Sylt")
	fmt.Println(t, ok, err)
	// Output: {17.5 -0.25} true <nil>
}

// Of many callers that miss a key at once, one loads it. The absence of a value is remembered too.
func ExampleTyped_GetOrLoad() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	capitals := ringcache.NewTyped[string](cache, codec.String[string](),
		ringcache.TypedOptions{Prefix: "capital:"})
	load := func(ctx context.Context, country string) (string, time.Duration, error) {
		fmt.Println("loading", country)
		switch country { // or a database query, which ends with ctx
		case "Peru":
			return "Lima", time.Hour, nil
		default:
			return "", time.Minute, ringcache.ErrAbsent
		}
	}
	ctx := context.Background()
	for _, country := range []string{"Peru", "Peru", "Atlantis", "Atlantis"} {
		capital, err := capitals.GetOrLoad(ctx, country, load)
		fmt.Printf("%q %v\n", capital, err)
	}
	// Output:
	// loading Peru
	// "Lima" <nil>
	// "Lima" <nil>
	// loading Atlantis
	// "" ringcache: load entry: key is absent
	// "" ringcache: load entry: key is absent
}

// A loop over a view yields its own entries and no other entries of the cache.
func ExampleTyped_All() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	stock := ringcache.NewTyped[uint32](cache, codec.JSON[int](),
		ringcache.TypedOptions{Prefix: "stock:"})
	_ = stock.SetBatch([]uint32{7, 8, 9}, []int{10, 20, 30})
	_ = cache.Set([]byte("another"), []byte("entry"))

	sum := 0
	for id, n := range stock.All() {
		sum += int(id) * n
	}
	fmt.Println(sum)
	// Output: 500
}
