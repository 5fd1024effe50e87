package zstd_test

import (
	"fmt"
	"log"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/compress/zstd"
)

func ExampleNew() {
	compressor, err := zstd.New()
	if err != nil {
		log.Fatal(err)
	}
	cache, err := ringcache.NewWithOptions(ringcache.Options{
		MaxBytes:   32 << 20,
		Compressor: compressor,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer cache.Close()
	cache.Set([]byte("planet/3"), []byte(`{"name":"Earth","moons":1}`))
	fmt.Printf("%s\n", cache.Get(nil, []byte("planet/3")))
	// Output: {"name":"Earth","moons":1}
}
