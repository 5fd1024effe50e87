package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringprometheus"
	"github.com/ringcache/ringcache/adapters/ringstatsviz"
)

// source provides the data of the API: the database, or the shop in front of it.
type source interface {
	product(ctx context.Context, id int64) (product, error)
	cheapest(ctx context.Context, category int64) ([]product, error)
	setPrice(ctx context.Context, id, price int64) (product, error)
}

// addAPI adds the handlers of the API.
func addAPI(mux *http.ServeMux, src source) {
	mux.HandleFunc("GET /products/{id}", func(w http.ResponseWriter, r *http.Request) {
		withID(w, r, func(id int64) (any, error) { return src.product(r.Context(), id) })
	})
	mux.HandleFunc("GET /categories/{id}", func(w http.ResponseWriter, r *http.Request) {
		withID(w, r, func(id int64) (any, error) { return src.cheapest(r.Context(), id) })
	})
	mux.HandleFunc("PUT /products/{id}/price", func(w http.ResponseWriter, r *http.Request) {
		withID(w, r, func(id int64) (any, error) {
			var price int64
			body := http.MaxBytesReader(w, r.Body, 100)
			if err := json.NewDecoder(body).Decode(&price); err != nil || price < 0 {
				return nil, errBadPrice
			}
			return src.setPrice(r.Context(), id, price)
		})
	})
}

var errBadPrice = errors.New("the price must be a number of cents")

// withID responds with the result of fn for the id in the path.
func withID(w http.ResponseWriter, r *http.Request, fn func(id int64) (any, error)) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		http.Error(w, "the id must be a number", http.StatusBadRequest)
		return
	}
	v, err := fn(id)
	switch {
	case errors.Is(err, errNoProduct):
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.Is(err, errBadPrice):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case r.Context().Err() != nil: // nobody is there to read an answer
	case err != nil:
		log.Printf("answer %s %s: %v", r.Method, r.URL.Path, err)
		http.Error(w, "try again later", http.StatusServiceUnavailable)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // an error means that the client has gone
	}
}

// addPages adds the metrics and the plots, and returns a function that stops the plots.
func addPages(mux *http.ServeMux, s *shop) (end func() error, err error) {
	registry, caches := prometheus.NewRegistry(), ringprometheus.NewCollector()
	err = errors.Join(registry.Register(caches), caches.Register("shop", s.cache),
		registry.Register(memoCounter("hits", func() uint64 { return s.memo.Stats().Hits })),
		registry.Register(memoCounter("misses", func() uint64 { return s.memo.Stats().Misses })))
	if err != nil {
		return nil, fmt.Errorf("add metrics: %w", err)
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	page, err := ringstatsviz.Mount(mux, map[string]*ringcache.Cache{"shop": s.cache})
	if err != nil {
		return nil, fmt.Errorf("add the page: %w", err)
	}
	return page.Close, nil
}

// memoCounter is the metric of a count of the memo's, which belongs to no cache.
func memoCounter(name string, value func() uint64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "shop_memo_" + name + "_total",
		Help: "Encoded products whose value was asked for: " + name + " of the memo.",
	}, func() float64 { return float64(value()) })
}
