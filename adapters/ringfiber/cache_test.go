package ringfiber_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gofiber/fiber/v3"
	fibercache "github.com/gofiber/fiber/v3/middleware/cache"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringfiber"
)

// pages is an app behind fiber's cache middleware. Each page says how often its handler has run.
type pages struct {
	*client
	cache *ringcache.Cache
	runs  atomic.Int64
}

func servePages(t *testing.T) *pages {
	p := &pages{cache: newCache(t)}
	app := fiber.New()
	app.Use(fibercache.New(fibercache.Config{
		Expiration:           hour,
		StoreResponseHeaders: true,
		Storage: ringfiber.New(p.cache, ringfiber.Options{
			Prefix: "page:", Responses: true,
		}),
	}))
	app.Get("/empty", func(c fiber.Ctx) error {
		p.runs.Add(1)
		return c.SendStatus(fiber.StatusNoContent)
	})
	app.Get("/vary", func(c fiber.Ctx) error {
		c.Vary("Accept-Language")
		return c.SendString(fmt.Sprint(c.Get("Accept-Language"), p.runs.Add(1)))
	})
	app.Get("/size/:bytes/:fill", func(c fiber.Ctx) error {
		p.runs.Add(1)
		n, err := strconv.Atoi(c.Params("bytes"))
		if err != nil {
			return err
		}
		return c.SendString(strings.Repeat(c.Params("fill"), n))
	})
	app.Get("/page", func(c fiber.Ctx) error {
		c.Set("X-Own", "kept")
		c.Type("html")
		return c.Status(fiber.StatusNotFound).SendString(fmt.Sprint("run ", p.runs.Add(1)))
	})
	p.client = serve(t, app)
	return p
}

func (p *pages) requireX(r reply, want string) {
	p.t.Helper()
	require.Equal(p.t, want, r.header.Get("X-Cache"), "%d %.200s", r.status, r.body)
}

func TestCache_SecondRequestIsAHit(t *testing.T) {
	p := servePages(t)
	for i, want := range []string{"miss", "hit", "hit"} {
		r := p.get("/page")
		p.requireX(r, want)
		require.Equal(t, http.StatusNotFound, r.status)
		require.Equal(t, "run 1", r.body, i)
		require.Equal(t, "kept", r.header.Get("X-Own"))
		require.Contains(t, r.header.Get("Content-Type"), "text/html")
	}
	require.EqualValues(t, 1, p.runs.Load())
	p.requireX(p.get("/page", "Cache-Control", "no-store"), "")
	p.requireX(p.get("/page", "Cache-Control", "max-age=0"), "miss")
	require.Equal(t, "run 3", p.get("/page").body)
}

func TestCache_ResponseThatVaries(t *testing.T) {
	p := servePages(t)
	p.requireX(p.get("/vary", "Accept-Language", "de"), "miss")
	p.requireX(p.get("/vary", "Accept-Language", "en"), "miss")
	for lang, want := range map[string]string{"de": "de1", "en": "en2"} {
		r := p.get("/vary", "Accept-Language", lang)
		p.requireX(r, "hit")
		require.Equal(t, want, r.body)
	}
}

// fiber fails the second request if a storage ignores the empty body.
func TestCache_ResponseWithoutABody(t *testing.T) {
	p := servePages(t)
	for _, want := range []string{"miss", "hit", "hit"} {
		r := p.get("/empty")
		require.Equal(t, http.StatusNoContent, r.status, r.body)
		p.requireX(r, want)
	}
	require.EqualValues(t, 1, p.runs.Load())
	for _, want := range []string{"miss", "hit"} {
		r := p.must(http.MethodHead, "/page")
		require.Equal(t, http.StatusNotFound, r.status)
		p.requireX(r, want)
	}
}

// fiber fails requests for as long as the entry of a response lives if its body has gone.
func TestCache_BodyThatWasDropped(t *testing.T) {
	p := servePages(t)
	require.Equal(t, "run 1", p.get("/page").body)
	var bodies int
	for k := range p.cache.Keys() {
		if strings.HasSuffix(string(k), "_body") {
			bodies++
			p.cache.Del(k)
		}
	}
	require.Equal(t, 1, bodies, "fiber has other names for bodies now")
	r := p.get("/page")
	p.requireX(r, "miss")
	require.Equal(t, "run 2", r.body)
	p.requireX(p.get("/page"), "hit")
}

func TestCache_ResponseTooLargeForTheCache(t *testing.T) {
	p := servePages(t)
	path := fmt.Sprintf("/size/%d/x", tooLarge)
	for want := range int64(3) {
		require.Equal(t, want, p.runs.Load())
		r := p.get(path)
		require.Equal(t, http.StatusOK, r.status)
		require.Len(t, r.body, tooLarge)
	}
}

// Many large bodies push each other out, while the small entries that name them stay.
func TestCache_UnderPressureNoRequestFails(t *testing.T) {
	p := servePages(t)
	const clients, paths, size = 8, 600, 100_000 // 60 MB
	var wg sync.WaitGroup
	failed := make(chan string, clients)
	for i := range clients {
		wg.Go(func() {
			for j := range paths {
				fill := fmt.Sprint(10000 + (i*paths/clients+j)%paths)
				r, err := p.do(http.MethodGet, fmt.Sprintf("/size/%d/%s", size/5, fill))
				if err != nil || r.status != http.StatusOK || !strings.HasPrefix(r.body, fill) {
					failed <- fmt.Sprintf("%v: status %d: %.200s", err, r.status, r.body)
					return
				}
			}
		})
	}
	wg.Wait()
	close(failed)
	require.Empty(t, <-failed)
	var stats ringcache.Stats
	p.cache.UpdateStats(&stats)
	require.Positive(t, stats.EvictedEntries)
}

// The cache's hit ratio is that of the requests, though a response has up to three entries.
func TestCache_HitRatioIsThatOfRequests(t *testing.T) {
	p := servePages(t)
	hits, requests := 0, 0
	for i := range 300 {
		for _, path := range []string{fmt.Sprint("/size/100/", i%30), "/vary"} {
			r := p.get(path, "Accept-Language", "de")
			if requests++; r.header.Get("X-Cache") == "hit" {
				hits++
			}
		}
	}
	stats := p.cache.Stats()
	require.Equal(t, 600-31, hits)
	require.EqualValues(t, requests, stats.GetCalls)
	require.InDelta(t, float64(hits)/float64(requests), stats.HitRatio(), 0.001)
}
