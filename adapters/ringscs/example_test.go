package ringscs_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"

	"github.com/alexedwards/scs/v2"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringscs"
)

func Example() {
	cache := ringcache.New(256 << 20) // 256 MB
	defer cache.Close()
	sessions := scs.New()
	sessions.Store = ringscs.New(cache, ringscs.Options{Prefix: "session:"})

	visit := func(_ http.ResponseWriter, r *http.Request) {
		sessions.Put(r.Context(), "visits", sessions.GetInt(r.Context(), "visits")+1)
	}
	server := httptest.NewServer(sessions.LoadAndSave(http.HandlerFunc(visit)))
	defer server.Close()

	jar, err := cookiejar.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	client := http.Client{Jar: jar}
	for range 3 {
		resp, err := client.Get(server.URL)
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
	}
	err = sessions.Iterate(context.Background(), func(ctx context.Context) error {
		fmt.Println("visits:", sessions.GetInt(ctx, "visits"))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: visits: 3
}
