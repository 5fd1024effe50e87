package ringdebug

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// newCache returns a small cache, which is closed when the test ends.
func newCache(t *testing.T, o ringcache.Options) *ringcache.Cache {
	t.Helper()
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 20
	}
	c, err := ringcache.NewWithOptions(o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

// server is a real server with a page.
type server struct {
	t   *testing.T
	url string
}

// serve starts a server with the page at a path.
func serve(t *testing.T, h *Handler) *server {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/debug/ringcache", h)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return &server{t, s.URL + "/debug/ringcache"}
}

// pageOf returns a server with a page about one cache, which is named pages.
func pageOf(t *testing.T, c *ringcache.Cache, reads *Reads, o Options) (*server, *Handler) {
	t.Helper()
	h := New(o)
	require.NoError(t, h.Add("pages", c, reads))
	return serve(t, h), h
}

// answered is an answer whose body was read.
type answered struct {
	*http.Response
	body string
}

// do sends a request whose query has the names and values.
func (s *server) do(method string, query ...string) answered {
	s.t.Helper()
	values := url.Values{}
	for i := 0; i < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	request, err := http.NewRequest(method, s.url+"?"+values.Encode(), nil)
	require.NoError(s.t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	return answered{response, string(body)}
}

// html returns the HTML for a query that has to succeed.
func (s *server) html(query ...string) string {
	s.t.Helper()
	a := s.do(http.MethodGet, query...)
	require.Equal(s.t, http.StatusOK, a.StatusCode, a.body)
	require.Equal(s.t, "text/html; charset=utf-8", a.Header.Get("Content-Type"))
	return a.body
}

// json returns the JSON for a query that has to have that status.
func (s *server) json(status int, query ...string) (p page) {
	s.t.Helper()
	a := s.do(http.MethodGet, append(query, "format", "json")...)
	require.Equal(s.t, status, a.StatusCode, a.body)
	require.Equal(s.t, "application/json", a.Header.Get("Content-Type"))
	require.NoError(s.t, json.Unmarshal([]byte(a.body), &p), a.body)
	return p
}

// during has watches of the page last as long as fn, and take that for the time asked for.
func (h *Handler) during(fn func()) {
	h.wait = func(_ context.Context, d time.Duration) (time.Duration, error) {
		fn()
		return d, nil
	}
}

func set(t *testing.T, in interface{ Set(k, v []byte) error }, k, v string) {
	t.Helper()
	require.NoError(t, in.Set([]byte(k), []byte(v)))
}
