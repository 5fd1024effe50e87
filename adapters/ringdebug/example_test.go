package ringdebug_test

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringdebug"
)

func Example() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	page := ringdebug.New(ringdebug.Options{})
	if err := page.Add("pages", cache, nil); err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/debug/ringcache", page)
	server := httptest.NewServer(mux) // http.ListenAndServe("localhost:6060", mux)
	defer server.Close()

	_ = cache.SetWithTTL([]byte("planet"), []byte("Saturn"), time.Hour)
	response, err := http.Get(server.URL + "/debug/ringcache?cache=pages&key=planet&format=json")
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Entry struct {
			Key        string
			Found      bool
			ValueBytes int
			TTL        time.Duration
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		log.Fatal(err)
	}
	e := answer.Entry
	fmt.Println(response.StatusCode, e.Key, e.Found, e.ValueBytes, e.TTL.Round(time.Hour))
	// Output: 200 "planet" true 6 1h0m0s
}

// To find its hottest keys, a program reports each read. While there is no watch, a report loads
// one word.
func ExampleReads() {
	var reads ringdebug.Reads
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	get := func(dst, key []byte) []byte {
		reads.Observe(key)
		return cache.Get(dst, key)
	}

	page := ringdebug.New(ringdebug.Options{})
	if err := page.Add("pages", cache, &reads); err != nil {
		log.Fatal(err)
	}
	http.Handle("/debug/ringcache", page)
	fmt.Println(len(get(nil, []byte("planet"))))
	// Output: 0
}
