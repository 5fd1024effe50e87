package ringhttpcache_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gregjones/httpcache"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringhttpcache"
)

// rig is a server, and a client with httpcache's transport.
type rig struct {
	t      *testing.T
	url    string
	ring   *ringcache.Cache
	client *http.Client
	bodies atomic.Int64 // that the server has sent
	asked  atomic.Int64 // requests that came to the server
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, ring: newRing(t)}
	mux := http.NewServeMux()
	mux.HandleFunc("/fresh", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		fmt.Fprint(w, "body ", r.bodies.Add(1))
	})
	mux.HandleFunc("/etag", func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Etag", `"1"`)
		if req.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, "body ", r.bodies.Add(1))
	})
	mux.HandleFunc("/no-store", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store, max-age=3600")
		fmt.Fprint(w, "body ", r.bodies.Add(1))
	})
	mux.HandleFunc("/vary", func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		w.Header().Set("Vary", "Accept-Language")
		fmt.Fprint(w, req.Header.Get("Accept-Language"), r.bodies.Add(1))
	})
	mux.HandleFunc("/empty", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		r.bodies.Add(1)
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		r.bodies.Add(1)
		_, _ = io.WriteString(w, strings.Repeat("x", tooLarge))
	})
	mux.HandleFunc("/n/{n}", func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		_, _ = io.WriteString(w, strings.Repeat(req.PathValue("n"), 10_000))
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.asked.Add(1)
		mux.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	responses := ringhttpcache.New(r.ring, ringhttpcache.Options{Prefix: "http:"})
	r.client = httpcache.NewTransport(responses).Client()
	r.client.Timeout = 10 * time.Second
	return r
}

// do sends a request, and reports whether the response came from the cache. It may run in any
// goroutine.
func (r *rig) do(method, path string, headers ...string) (body string, cached bool, err error) {
	req, err := http.NewRequest(method, r.url+path, nil)
	if err != nil {
		return "", false, err
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return "", false, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), resp.Header.Get(httpcache.XFromCache) != "", err
}

func (r *rig) require(wantBody string, wantCached bool, method, path string, headers ...string) {
	r.t.Helper()
	body, cached, err := r.do(method, path, headers...)
	require.NoError(r.t, err)
	require.Equal(r.t, wantBody, body)
	require.Equal(r.t, wantCached, cached, "from the cache")
}

func TestTransport_FreshResponse(t *testing.T) {
	r := newRig(t)
	r.require("body 1", false, "GET", "/fresh")
	r.require("body 1", true, "GET", "/fresh")
	require.EqualValues(t, 1, r.asked.Load())
	require.True(t, r.ring.Has([]byte("http:"+r.url+"/fresh")))

	r.require("body 2", false, "GET", "/fresh", "Cache-Control", "no-cache")
	r.require("body 2", true, "GET", "/fresh")
}

// What is stale is asked for by its ETag, so it must still be there.
func TestTransport_StaleResponseIsRevalidated(t *testing.T) {
	r := newRig(t)
	r.require("body 1", false, "GET", "/etag")
	for range 3 {
		r.require("body 1", true, "GET", "/etag")
	}
	require.EqualValues(t, 4, r.asked.Load())
	require.EqualValues(t, 1, r.bodies.Load())
}

func TestTransport_NoStore(t *testing.T) {
	r := newRig(t)
	r.require("body 1", false, "GET", "/no-store")
	r.require("body 2", false, "GET", "/no-store")
	require.Zero(t, r.ring.Len())
}

func TestTransport_Vary(t *testing.T) {
	r := newRig(t)
	r.require("de1", false, "GET", "/vary", "Accept-Language", "de")
	r.require("de1", true, "GET", "/vary", "Accept-Language", "de")
	r.require("en2", false, "GET", "/vary", "Accept-Language", "en")
	r.require("en2", true, "GET", "/vary", "Accept-Language", "en")
}

func TestTransport_EmptyBody(t *testing.T) {
	r := newRig(t)
	r.require("", false, "GET", "/empty")
	r.require("", true, "GET", "/empty")
	r.require("", false, "HEAD", "/empty")
	r.require("", true, "HEAD", "/empty")
}

func TestTransport_OtherMethodsInvalidateTheirOwnKey(t *testing.T) {
	r := newRig(t)
	responses := ringhttpcache.New(r.ring, ringhttpcache.Options{Prefix: "http:"})
	responses.Set("POST "+r.url+"/fresh", []byte("old"))
	r.require("body 1", false, "POST", "/fresh")
	requireMiss(t, responses, "POST "+r.url+"/fresh")
}

func TestTransport_TooLargeIsServedAndNotKept(t *testing.T) {
	r := newRig(t)
	for want := range int64(2) {
		require.Equal(t, want, r.bodies.Load())
		body, cached, err := r.do("GET", "/large")
		require.NoError(t, err)
		require.False(t, cached)
		require.Len(t, body, tooLarge)
	}
	require.Zero(t, r.ring.Len())
}

func TestTransport_DroppedIsAskedForAgain(t *testing.T) {
	r := newRig(t)
	r.require("body 1", false, "GET", "/fresh")
	r.ring.Reset()
	r.require("body 2", false, "GET", "/fresh")
	r.require("body 2", true, "GET", "/fresh")
}

// Far more than fits, by many goroutines: every body is the right one.
func TestTransport_UnderPressure(t *testing.T) {
	r := newRig(t)
	const clients, paths = 4, 800 // of 50 KB each
	var hits atomic.Int64
	failed := make(chan error, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := range paths {
				n := fmt.Sprint(10000 + (i*paths/clients+j)%paths)
				for range 2 {
					body, cached, err := r.do("GET", "/n/"+n)
					if err != nil || body != strings.Repeat(n, 10_000) {
						failed <- fmt.Errorf("%s: %.200s: %w", n, body, err)
						return
					}
					if cached {
						hits.Add(1)
					}
				}
			}
		}()
	}
	wg.Wait()
	close(failed)
	require.NoError(t, <-failed)
	require.Positive(t, hits.Load())
	var stats ringcache.Stats
	r.ring.UpdateStats(&stats)
	require.Positive(t, stats.EvictedEntries)
}
