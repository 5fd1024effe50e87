package ringmiddleware_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringmiddleware"
)

// One response for all orders of the parameters of a query.
func ExampleOptions() {
	key := func(r *http.Request) string {
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			return "" // bypasses the cache
		}
		u := *r.URL
		u.RawQuery = query.Encode() // sorts them by name
		return ringmiddleware.DefaultKey(&http.Request{Host: r.Host, URL: &u, TLS: r.TLS})
	}
	cache := ringcache.New(256 << 20)
	defer cache.Close()
	pages, err := ringmiddleware.New(cache, ringmiddleware.Options{Key: key})
	if err != nil {
		log.Fatal(err)
	}
	calls := 0
	h := pages.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.Header().Set("Cache-Control", "max-age=60")
	}))
	for _, path := range []string{"/items?page=1&sort=name", "/items?sort=name&page=1"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
	}
	fmt.Println(calls)
	// Output: 1
}

func Example() {
	prices := map[string]int{"/apple": 3}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{name}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("  the handler is asked for", r.URL.Path)
		w.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprintf(w, "%d euros", prices[r.URL.Path])
	})
	mux.HandleFunc("PUT /{name}", func(_ http.ResponseWriter, r *http.Request) {
		prices[r.URL.Path]++
	})

	cache := ringcache.New(256 << 20)
	defer cache.Close()
	pages, err := ringmiddleware.New(cache, ringmiddleware.Options{Status: "ringcache"})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(pages.Handler(mux))
	defer server.Close()

	for _, method := range []string{"GET", "GET", "PUT", "GET", "HEAD"} {
		req, err := http.NewRequest(method, server.URL+"/apple", nil)
		if err != nil {
			log.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			log.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		status, _, _ := strings.Cut(resp.Header.Get("Cache-Status"), "; ttl=")
		fmt.Printf("%-4s %q, %s\n", method, body, status)
	}
	// Output:
	//   the handler is asked for /apple
	// GET  "3 euros", ringcache; fwd=uri-miss; fwd-status=200; stored
	// GET  "3 euros", ringcache; hit
	// PUT  "", ringcache; fwd=method
	//   the handler is asked for /apple
	// GET  "4 euros", ringcache; fwd=uri-miss; fwd-status=200; stored
	// HEAD "", ringcache; hit
}
