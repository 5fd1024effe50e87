package ringdebug

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

func TestAdd_Errors(t *testing.T) {
	c, h := newCache(t, ringcache.Options{}), New(Options{})
	require.ErrorIs(t, h.Add("", c, nil), ErrInvalidName)
	require.ErrorIs(t, h.Add("a\xff", c, nil), ErrInvalidName)
	require.ErrorIs(t, h.Add("a\n", c, nil), ErrInvalidName)
	require.NoError(t, h.Add("pages", c, nil))
	err := h.Add("pages", c, nil)
	require.ErrorIs(t, err, ErrNameTaken)
	require.EqualError(t, err, `ringdebug: add cache "pages": name is taken`)
	h.Remove("pages")
	h.Remove("pages")
	require.NoError(t, h.Add("pages", c, nil))
	require.PanicsWithValue(t, "ringdebug: add cache: cache is nil",
		func() { _ = h.Add("none", nil, nil) })
}

// The page does not keep a cache alive.
func TestAdd_CollectedCachesDisappear(t *testing.T) {
	h := New(Options{})
	func() {
		c, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 1 << 20})
		require.NoError(t, err)
		require.NoError(t, h.Add("gone", c, nil))
		require.Len(t, h.show(), 1)
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		return len(h.show()) == 0
	}, 2*time.Minute, 10*time.Millisecond)
	c := newCache(t, ringcache.Options{})
	require.NoError(t, h.Add("gone", c, nil), "the name is free")
	require.Len(t, h.show(), 1)
}

func TestPage_AllCaches(t *testing.T) {
	h := New(Options{})
	s := serve(t, h)
	require.Contains(t, s.html(), "There are no caches")
	require.Empty(t, s.json(http.StatusOK).Caches)
	for _, name := range []string{"users", "pages"} {
		c := newCache(t, ringcache.Options{})
		set(t, c, name, "value")
		require.NoError(t, h.Add(name, c, nil))
	}
	caches := s.json(http.StatusOK).Caches
	require.Len(t, caches, 2)
	require.Equal(t, "pages", caches[0].Name)
	require.Equal(t, "users", caches[1].Name)
	require.EqualValues(t, 1, caches[1].Stats.EntriesCount)
	html := s.html()
	require.Contains(t, html, `<a href="?cache=pages">pages</a>`)
	require.Contains(t, html, `<a href="?cache=users">users</a>`)
}

// What monitors read: names, and what is in them.
func TestPage_JSON(t *testing.T) {
	onRemove := func(ringcache.Removal) {}
	c := newCache(t, ringcache.Options{TTL: time.Hour, OnRemove: onRemove})
	set(t, c, "k", "v")
	set(t, c.Namespace("small"), "k", "v")
	set(t, c.Namespace("large\n"), "k", strings.Repeat("v", 100))
	c.Has([]byte("k"))
	c.Has([]byte("none"))
	s, h := pageOf(t, c, nil, Options{})
	h.during(func() { c.Has([]byte("k")) })

	a := s.do(http.MethodGet, "cache", "pages", "format", "json", "seconds", "5")
	var p map[string]any
	require.NoError(t, json.Unmarshal([]byte(a.body), &p))
	require.NotEmpty(t, p["Time"])
	require.Len(t, p["Caches"], 1)
	report := p["Caches"].([]any)[0].(map[string]any)
	require.ElementsMatch(t, []string{"Name", "Options", "Stats", "HitRatio",
		"Notes", "Namespaces", "Watched"}, keysOf(report))
	options := report["Options"].(map[string]any)
	require.Equal(t, float64(1<<20), options["MaxBytes"])
	require.Equal(t, "S3-FIFO", options["Policy"])
	require.Equal(t, float64(time.Hour), options["TTL"])
	require.Equal(t, true, options["OnRemove"])
	require.Len(t, options, 15)
	require.Equal(t, 3., report["Stats"].(map[string]any)["GetCalls"])
	require.Contains(t, report["Stats"].(map[string]any)["Loads"], "Started")
	require.Equal(t, []any{}, report["Notes"], "a list, and not null")
	watched := report["Watched"].(map[string]any)
	require.Equal(t, 5., watched["Seconds"])
	require.Equal(t, 1., watched["Stats"].(map[string]any)["GetCalls"])
	require.Equal(t, 1., watched["HitRatio"])
	require.Nil(t, watched["HotKeys"])
	namespaces := report["Namespaces"].([]any)
	require.Len(t, namespaces, 2)
	first := namespaces[0].(map[string]any)
	require.Equal(t, `"large\n"`, first["Name"], "the largest first, as a Go string")
	require.ElementsMatch(t, []string{"Name", "HitRatio", "GetCalls", "Misses", "SetCalls",
		"DelCalls", "EntriesCount", "BytesSize"}, keysOf(first))
}

func keysOf(m map[string]any) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	return names
}

func TestPage_StatusCodes(t *testing.T) {
	c := newCache(t, ringcache.Options{})
	set(t, c, "there", "value")
	s, _ := pageOf(t, c, nil, Options{})
	for _, q := range []struct {
		status int
		query  string
	}{
		{200, ""}, {200, "cache=pages"}, {200, "cache=pages&format=html"},
		{200, "cache=pages&key=there"}, {404, "cache=pages&key=not+there"},
		{404, "cache=pages&key="}, {404, "cache=none"}, {404, "cache=none&key=there"},
		{404, "cache=pages&key=there&namespace=none"},
		{400, "cash=pages"}, {400, "format=xml"}, {400, "a=%zz"}, {400, "a;b"},
		{400, "key=there"}, {400, "cache=pages&key=k&as=hex"}, {400, "cache=pages&namespace=a"},
		{400, `cache=pages&key="`}, {400, `cache=pages&key=there&namespace="a`},
		{400, "seconds=0"}, {400, "seconds=61"}, {400, "seconds=1.5"}, {400, "seconds=-1"},
		{400, "cache=pages&key=there&seconds=1"},
	} {
		for _, format := range []string{"", "&format=json"} {
			if strings.Contains(q.query, "format=") {
				format = ""
			}
			response, err := http.Get(s.url + "?" + q.query + format)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, q.status, response.StatusCode, q.query)
			want := "text/html; charset=utf-8"
			switch {
			case format != "":
				want = "application/json"
			case q.status != 200 && !strings.Contains(q.query, "key=not+there") &&
				q.query != "cache=pages&key=":
				want = "text/plain; charset=utf-8"
			}
			require.Equal(t, want, response.Header.Get("Content-Type"), "%s%s", q.query, format)
		}
	}
}

func TestPage_MethodsAndHeaders(t *testing.T) {
	s, _ := pageOf(t, newCache(t, ringcache.Options{}), nil, Options{})
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
		a := s.do(method)
		require.Equal(t, http.StatusMethodNotAllowed, a.StatusCode, method)
		require.Equal(t, "GET, HEAD", a.Header.Get("Allow"))
	}
	get, head := s.do(http.MethodGet), s.do(http.MethodHead)
	require.NotEmpty(t, get.body)
	require.Empty(t, head.body)
	for _, a := range []answered{get, head, s.do(http.MethodGet, "cache", "none")} {
		require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
		require.Equal(t, "nosniff", a.Header.Get("X-Content-Type-Options"))
		require.Equal(t, "no-referrer", a.Header.Get("Referrer-Policy"))
		require.Equal(t, "same-origin", a.Header.Get("Cross-Origin-Resource-Policy"))
		require.Contains(t, a.Header.Get("Content-Security-Policy"), "default-src 'none'")
		require.Contains(t, a.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
		require.NotContains(t, a.Header.Get("Content-Security-Policy"), "script-src")
	}
	a := s.do(http.MethodGet, "cache", "none", "format", "json")
	require.JSONEq(t, `{"Error": "there is no cache \"none\""}`, a.body)
}

// Links and forms have no path, so the page may be anywhere.
func TestPage_UnderAnyPath(t *testing.T) {
	h := New(Options{})
	c := newCache(t, ringcache.Options{})
	require.NoError(t, h.Add("pages", c, nil))
	mux := http.NewServeMux()
	mux.Handle("/a", h)
	mux.Handle("/debug/caches/{$}", h)
	mux.Handle("/stripped/", http.StripPrefix("/stripped", h))
	real := httptest.NewServer(mux)
	defer real.Close()
	for _, path := range []string{"/a", "/debug/caches/", "/stripped/"} {
		s := &server{t, real.URL + path}
		html := s.html("cache", "pages")
		require.Contains(t, html, `<a href="?">`)
		require.NotContains(t, html, `action=`)
		require.NotContains(t, html, `href="/`)
	}
}

// A page takes nothing from the cache and gives it nothing, whatever is asked for.
func TestPage_LeavesNoTrace(t *testing.T) {
	var reads Reads
	c := newCache(t, ringcache.Options{})
	set(t, c, "k", "v")
	require.NoError(t, c.SetWithTTL([]byte("short"), []byte("v"), time.Hour))
	set(t, c.Namespace("in use"), "k", "v")
	s, h := pageOf(t, c, &reads, Options{ShowValues: true})
	h.during(func() {
		reads.Observe([]byte("k"))
		reads.ObserveIn("in use", []byte("k"))
		reads.ObserveIn("not in use", []byte("k"))
	})
	before, inUse := c.Stats(), c.Namespace("in use").Stats()
	for range 3 {
		s.html()
		s.html("cache", "pages")
		s.html("cache", "pages", "seconds", "1")
		s.html("cache", "pages", "key", "k")
		s.html("cache", "pages", "key", "short")
		s.html("cache", "pages", "key", "k", "namespace", "in use")
		s.json(http.StatusNotFound, "cache", "pages", "key", "none")
		s.do(http.MethodGet, "cache", "pages", "key", "k", "namespace", "made by the page")
	}
	require.Equal(t, before, c.Stats())
	require.Equal(t, inUse, c.Namespace("in use").Stats())
	for name := range c.Namespaces() {
		require.Equal(t, "in use", name)
	}
}

func TestPage_ClosedCache(t *testing.T) {
	c := newCache(t, ringcache.Options{})
	set(t, c, "k", "v")
	s, _ := pageOf(t, c, nil, Options{})
	require.NoError(t, c.Close())
	require.ErrorIs(t, c.Set([]byte("k"), nil), ringcache.ErrClosed)
	require.Contains(t, s.html("cache", "pages"), "pages")
	require.False(t, s.json(http.StatusNotFound, "cache", "pages", "key", "k").Entry.Found)
}

// Pages are asked for while others use the caches and the page.
func TestPage_ConcurrentTraffic(t *testing.T) {
	var reads Reads
	c := newCache(t, ringcache.Options{TTL: time.Minute})
	s, h := pageOf(t, c, &reads, Options{ShowValues: true})
	stop := make(chan struct{})
	var traffic sync.WaitGroup
	for g := range 3 {
		traffic.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				k := fmt.Append(nil, "key ", i%500)
				tenant := fmt.Sprint("tenant ", i%3)
				n := c.Namespace(tenant)
				reads.Observe(k)
				if !c.Has(k) {
					assert.NoError(t, c.Set(k, k))
				}
				reads.ObserveIn("tenant", k)
				if err := n.Set(k, k); !errors.Is(err, ringcache.ErrDropped) {
					assert.NoError(t, err)
				}
				if i%1000 == g {
					assert.NoError(t, c.DropNamespace(fmt.Sprint("tenant ", i%3)))
				}
			}
		})
	}
	h.during(runtime.Gosched)
	var clients sync.WaitGroup
	for range 3 {
		clients.Go(func() {
			other := newCache(t, ringcache.Options{})
			for range 30 {
				s.html()
				s.html("cache", "pages")
				s.do(http.MethodGet, "cache", "pages", "seconds", "1")
				s.do(http.MethodGet, "cache", "pages", "key", "key 1", "namespace", "tenant 1")
				h.Remove("other")
				_ = h.Add("other", other, nil) // taken, if another client was faster
			}
		})
	}
	clients.Wait()
	close(stop)
	traffic.Wait()
}
