package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ringcache/ringcache"
)

// The mix of requests, per thousand. The rest are for products.
const (
	askList   = 150 // the cheapest of a category
	askAbsent = 50  // a product that does not exist
	askWrite  = 2   // a new price
)

// result is what the clients measured.
type result struct {
	requests int
	queries  int64 // of the database
	stale    int   // products older than the client knew
	times    []time.Duration
	span     time.Duration
	hits     float64         // of the cache, from 0 to 1
	cold     uint64          // hits in its cold part
	cache    ringcache.Stats // at the end; zero without a cache
}

// quantile returns a quantile of the response time.
func (r *result) quantile(q float64) time.Duration {
	if len(r.times) == 0 {
		return 0
	}
	return r.times[min(int(q*float64(len(r.times))), len(r.times)-1)]
}

// ask runs clients against a service for some time.
func ask(ctx context.Context, cfg config, s *server) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.span)
	defer cancel()
	transport := &http.Transport{MaxIdleConnsPerHost: cfg.clients}
	defer transport.CloseIdleConnections()
	clients := make([]client, cfg.clients)
	errs := make([]error, cfg.clients)
	popular := zipf(cfg.products, cfg.skew)
	before, cached, begin := s.db.queries.Load(), s.stats(), time.Now()
	var wg sync.WaitGroup
	for i := range clients {
		rnd := rand.New(rand.NewPCG(uint64(i), 1))
		clients[i] = client{
			url:     s.url,
			http:    http.Client{Transport: transport},
			rnd:     rnd,
			popular: popular,
			known:   map[int64]int64{},
		}
		wg.Go(func() { errs[i] = clients[i].run(ctx) })
	}
	wg.Wait()
	r := result{span: time.Since(begin), queries: s.db.queries.Load() - before}
	for i, err := range errs {
		if err != nil {
			return r, fmt.Errorf("client %d: %w", i, err)
		}
		r.times = append(r.times, clients[i].times...)
		r.stale += clients[i].stale
	}
	slices.Sort(r.times)
	r.requests = len(r.times)
	r.cache = s.stats()
	since := r.cache.Sub(cached)
	r.cold, r.hits = since.Compression.ColdHits, since.HitRatio()
	return r, nil
}

// warm requests products from the shop like clients do, but without HTTP, which is faster.
func warm(ctx context.Context, cfg config, s *shop) error {
	popular, rnd := zipf(cfg.products, cfg.skew), rand.New(rand.NewPCG(0, 2))
	for range cfg.warm {
		if _, err := s.product(ctx, popular.draw(rnd)); err != nil {
			return fmt.Errorf("warm the cache: %w", err)
		}
	}
	return nil
}

// client makes one request after another.
type client struct {
	url     string
	http    http.Client
	rnd     *rand.Rand
	popular popularity
	known   map[int64]int64 // the version of a product that it has written or read last
	stale   int
	times   []time.Duration
}

// run makes requests until the context ends.
func (c *client) run(ctx context.Context) error {
	for ctx.Err() == nil {
		begin := time.Now()
		if err := c.one(ctx); err != nil {
			if ctx.Err() != nil {
				return nil // its time ended while it waited
			}
			return err
		}
		c.times = append(c.times, time.Since(begin))
	}
	return nil
}

// one is a request.
func (c *client) one(ctx context.Context) error {
	id := c.popular.draw(c.rnd)
	switch n := c.rnd.IntN(1000); {
	case n < askWrite:
		price := strconv.Itoa(100 + c.rnd.IntN(9900))
		return c.product(ctx, http.MethodPut, fmt.Sprintf("/products/%d/price", id), price)
	case n < askWrite+askAbsent:
		return c.call(ctx, http.MethodGet, fmt.Sprintf("/products/%d", -id), "",
			http.StatusNotFound, nil)
	case n < askWrite+askAbsent+askList:
		return c.call(ctx, http.MethodGet, fmt.Sprintf("/categories/%d", id%categories), "",
			http.StatusOK, new([]product))
	default:
		return c.product(ctx, http.MethodGet, fmt.Sprintf("/products/%d", id), "")
	}
}

// product reads or writes a product, and checks that it is not older than at the last request.
func (c *client) product(ctx context.Context, method, path, body string) error {
	var p product
	if err := c.call(ctx, method, path, body, http.StatusOK, &p); err != nil {
		return err
	}
	if p.Version < c.known[p.ID] {
		c.stale++
	}
	c.known[p.ID] = max(c.known[p.ID], p.Version)
	return nil
}

// call makes a request, and decodes the answer to v unless that is nil.
func (c *client) call(ctx context.Context, method, path, body string, status int, v any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body) // all, so that the connection is used again
	if err != nil {
		return err
	}
	if resp.StatusCode != status {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, answer)
	}
	if v == nil {
		return nil
	}
	return json.Unmarshal(answer, v)
}
