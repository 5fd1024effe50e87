package codec_test

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/klauspost/compress/s2"

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

// A type that implements encoding.BinaryAppender and BinaryUnmarshaler is encoded by Binary.
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

// Package gob, too, makes a codec. It encodes the types with each value, so short values become
// much longer than with JSON.
func ExampleFunc_gob() {
	type Job struct {
		Name string
		Due  time.Time
		Args map[string]int
	}
	jobCodec := codec.Func(
		func(dst []byte, job Job) ([]byte, error) {
			buf := bytes.NewBuffer(dst) // appends
			err := gob.NewEncoder(buf).Encode(job)
			return buf.Bytes(), err
		},
		func(data []byte) (job Job, err error) {
			err = gob.NewDecoder(bytes.NewReader(data)).Decode(&job)
			return job, err
		},
	)
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	jobs := ringcache.NewTyped[uint64](cache, jobCodec, ringcache.TypedOptions{})

	due := time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)
	_ = jobs.Set(7, Job{"report", due, map[string]int{"year": 2029}})
	job, ok, err := jobs.Get(7)
	fmt.Println(job.Name, job.Due.Format(time.DateOnly), job.Args["year"], ok, err)
	// Output: report 2030-01-02 2029 true <nil>
}

// A codec around another one compresses its encodings. (Options.Compressor compresses only values
// that the cache would evict, usually with a dictionary.)
func ExampleFunc_compressed() {
	plain := codec.JSON[[]string]()
	compressed := codec.Func(
		func(dst []byte, v []string) ([]byte, error) {
			data, err := plain.Append(nil, v)
			return append(dst, s2.Encode(nil, data)...), err
		},
		func(data []byte) ([]string, error) {
			const longest = 1 << 20 // of what is stored: a damaged value must not say more
			if n, err := s2.DecodedLen(data); err != nil || n > longest {
				return nil, errors.Join(errors.New("no compressed value"), err)
			}
			text, err := s2.Decode(nil, data)
			if err != nil {
				return nil, err
			}
			return plain.Decode(text)
		},
	)
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	lists := ringcache.NewTyped[string](cache, compressed, ringcache.TypedOptions{})

	list := slices.Repeat([]string{"a line that recurs"}, 1000)
	_ = lists.Set("list", list)
	got, ok, err := lists.Get("list")
	fmt.Println(slices.Equal(got, list), ok, err)
	fmt.Println("shorter than 1 KB:", len(cache.Get(nil, []byte("list"))) < 1024)
	// Output:
	// true true <nil>
	// shorter than 1 KB: true
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
