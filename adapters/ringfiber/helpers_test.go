package ringfiber_test

import (
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringfiber"
)

var _ fiber.Storage = (*ringfiber.Storage)(nil)

const (
	cacheSize = 32 << 20
	tooLarge  = cacheSize/16 + 1 // for a value
	hour      = time.Hour
	patience  = 10 * time.Second // what takes longer fails
)

// newCache returns the smallest cache, which is closed at the end of the test.
func newCache(t testing.TB) *ringcache.Cache {
	cache := ringcache.New(cacheSize)
	t.Cleanup(func() { cache.Close() })
	return cache
}

// serve has an app listen on a free port, and returns a client of it that keeps cookies.
func serve(t testing.TB, app *fiber.App) *client {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		ended <- app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true})
	}()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		require.NoError(t, app.ShutdownWithTimeout(patience))
		require.NoError(t, <-ended)
	})
	return &client{t: t, url: "http://" + listener.Addr().String(), http: &http.Client{
		Transport: transport, Jar: jar, Timeout: patience,
	}}
}

type client struct {
	t    testing.TB
	url  string
	http *http.Client
}

// reply is what came of a request.
type reply struct {
	status int
	header http.Header
	body   string
}

// do sends a request with headers, given as name and value in turns. It may run in any
// goroutine.
func (c *client) do(method, path string, headers ...string) (reply, error) {
	req, err := http.NewRequest(method, c.url+path, strings.NewReader(""))
	if err != nil {
		return reply{}, err
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body)}, err
}

func (c *client) must(method, path string, headers ...string) reply {
	c.t.Helper()
	r, err := c.do(method, path, headers...)
	require.NoError(c.t, err)
	return r
}

func (c *client) get(path string, headers ...string) reply {
	c.t.Helper()
	return c.must(http.MethodGet, path, headers...)
}
