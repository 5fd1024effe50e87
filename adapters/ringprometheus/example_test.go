package ringprometheus_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringprometheus"
)

func Example() {
	registry := prometheus.NewRegistry() // or prometheus.DefaultRegisterer
	caches := ringprometheus.NewCollector()
	registry.MustRegister(caches)

	pages := ringcache.New(32 << 20)
	defer pages.Close()
	if err := caches.Register("pages", pages); err != nil {
		log.Fatal(err)
	}
	defer caches.Unregister("pages")

	_ = pages.Set([]byte("/"), []byte("welcome"))
	pages.Has([]byte("/"))
	pages.Has([]byte("/missing"))

	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))

	// Prometheus scrapes these lines:
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, "ringcache_lookups_total") {
			fmt.Print(line)
		}
	}
	// Output:
	// ringcache_lookups_total{cache="pages",result="hit"} 1
	// ringcache_lookups_total{cache="pages",result="miss"} 1
}
