package ringmiddleware

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// HTTP/2 and TLS: the scheme is a part of the key.
func TestHTTP2(t *testing.T) {
	r := &rig{t: t}
	r.cache, r.m = newMiddleware(t, Options{})
	server := httptest.NewUnstartedServer(r.front(func(w http.ResponseWriter, req *http.Request) {
		require.Equal(t, 2, req.ProtoMajor)
		if req.Method == http.MethodGet {
			addLines(w.Header(), lines(fresh))
			_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	r.url, r.client = server.URL, server.Client()
	for range 3 {
		a := r.get("/")
		require.Equal(t, strings.Repeat("x", 100_000), a.body)
	}
	r.wantAsked(1)
	require.NotNil(t, r.m.store.index(r.url+"/"))
	require.True(t, strings.HasPrefix(r.url, "https://"))
	r.do(http.MethodPost, "/")
	r.get("/")
	r.wantAsked(3)
}
