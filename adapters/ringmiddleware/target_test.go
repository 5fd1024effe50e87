package ringmiddleware

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// sendRaw sends a request whose target http.Client would not send, and returns the body of the
// response and its Cache-Status.
func sendRaw(t *testing.T, server *httptest.Server, target, host string) (body, status string) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	const request = "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"
	_, err = fmt.Fprintf(conn, request, target, host)
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(b), answer{header: resp.Header}.status()
}

// One Middleware has handlers behind http.StripPrefix and elsewhere.
func TestTarget_OfAnotherHandler(t *testing.T) {
	_, m := newMiddleware(t, Options{})
	mux := http.NewServeMux()
	mux.Handle("/api/", http.StripPrefix("/api", m.Handler(says("api", fresh))))
	mux.Handle("/", m.Handler(says("site", fresh)))
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, target := range []string{"x:/api/items", "x:///api/items", "x://u@/api/items",
		"http://shop/api/items"} {
		body, _ := sendRaw(t, server, target, "shop")
		require.Equal(t, "api", body, target)
	}
	body, _ := sendRaw(t, server, "/items", "shop")
	require.Equal(t, "site", body)
	_, status := sendRaw(t, server, "/api/items", "shop")
	require.Contains(t, status, "hit", "it is the same URL")
}

// A handler may show anything of the URL, and a later request must not get what an odd target said.
func TestTarget_AsTheHandlerSeesIt(t *testing.T) {
	for target, c := range map[string]struct{ host, later, laterHost, want string }{
		"x:/page":            {"shop", "/page", "shop", `/page /page "/page" ""`},
		"javascript:/page?q": {"shop", "/page?q", "shop", `/page?q /page?q "/page" ""`},
		"x://user@/page":     {"shop", "/page", "shop", `/page /page "/page" ""`},
		"x:///page":          {"shop", "/page", "shop", `/page /page "/page" ""`},
		"x:////page":         {"shop", "//page", "shop", `//page //page "//page" ""`},
		"http://shop":        {"shop", "/", "shop", `/ / "/" ""`},
		"http://shop?a/b":    {"shop", "/?a/b", "shop", `/?a/b /?a/b "/" ""`},
		"x://shop/%63af\xe9": {"shop", "/caf%E9", "shop", `/caf%E9 /caf%E9 "/caf\xe9" ""`},
		"http:.org/x":        {"Shop", "/x", "shop.org", `/x /x "/x" ""`},
		"http:.org/":         {"Shop", "/", "shop.org", `/ / "/" ""`},
	} {
		t.Run(target, func(t *testing.T) {
			_, m := newMiddleware(t, Options{})
			h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				u := r.URL
				says(fmt.Sprintf("%s %s %q %q", u, r.RequestURI, u.Path, u.RawPath), fresh)(w, r)
			}))
			server := httptest.NewServer(h)
			defer server.Close()
			sendRaw(t, server, target, c.host)
			body, _ := sendRaw(t, server, c.later, c.laterHost)
			require.Equal(t, c.want, body)
		})
	}
}

// An outer handler has removed scheme and host.
func TestTarget_UserAlone(t *testing.T) {
	r := newRequest("/page")
	r.URL = &url.URL{User: url.User("user"), Path: "/page"}
	require.Equal(t, "/page", asInKey(r).URL.String())
}
