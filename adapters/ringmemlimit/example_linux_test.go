package ringmemlimit_test

import (
	"expvar"
	"fmt"
	"log"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringmemlimit"
)

func Example() {
	cache := ringcache.New(1 << 30) // Start sets the bound again
	defer cache.Close()
	controller, err := ringmemlimit.Start(cache, ringmemlimit.Options{MaxBytes: 512 << 20})
	if err != nil {
		log.Fatal(err)
	}
	defer controller.Close()
	expvar.Publish("memlimit", expvar.Func(func() any { return controller.Stats() }))

	s := controller.Stats()
	fmt.Println(s.CacheBound <= 512<<20, s.CacheBound == int64(cache.Stats().MaxBytesSize))
	// Output: true true
}
