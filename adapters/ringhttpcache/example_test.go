package ringhttpcache_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/gregjones/httpcache"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringhttpcache"
)

func Example() {
	cache := ringcache.New(256 << 20) // at most 256 MB
	defer cache.Close()
	responses := ringhttpcache.New(cache, ringhttpcache.Options{Prefix: "http:"})
	client := httpcache.NewTransport(responses).Client()

	planet := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprint(w, "Saturn")
	}
	server := httptest.NewServer(http.HandlerFunc(planet))
	defer server.Close()

	for range 2 {
		resp, err := client.Get(server.URL)
		if err != nil {
			log.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body) // to its end: httpcache stores it then
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
		fmt.Printf("%s, from the cache: %t\n", body, resp.Header.Get(httpcache.XFromCache) != "")
	}
	// Output:
	// Saturn, from the cache: false
	// Saturn, from the cache: true
}
