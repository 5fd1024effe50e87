package ringmiddleware

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A handler that fails is not asked by every request, as long as there is something to serve.
func TestStale_FailingUpdateIsNotRepeatedAtOnce(t *testing.T) {
	for name, fail := range map[string]http.HandlerFunc{
		"error": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
		},
		"panic":   func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"timeout": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failing := false
				o := Options{
					StaleWhileRevalidate: time.Second,
					RevalidateTimeout:    500 * time.Millisecond,
				}
				r := newTimedRig(t, o, func(w http.ResponseWriter, req *http.Request) {
					if failing {
						fail(w, req)
						return
					}
					says("page", "Cache-Control: max-age=10, stale-while-revalidate=800")(w, req)
				})
				require.Equal(t, "page", r.get("/").body)
				time.Sleep(11 * time.Second)
				failing = true
				for range 100 {
					require.Equal(t, "page", r.get("/").body)
					synctest.Wait()
					time.Sleep(time.Millisecond)
				}
				r.wantAsked(2)
				for range 10 { // pauses of RevalidateTimeout, which is less than an eighth of 800 s
					time.Sleep(time.Second)
					require.Equal(t, "page", r.get("/").body)
					synctest.Wait()
				}
				require.InDelta(t, 12, r.asked.Load(), 1)
				failing = false
				time.Sleep(2 * time.Second)
				r.get("/")
				synctest.Wait()
				require.Equal(t, "0", r.get("/").header.Get("Age"), "it is fresh again")
			})
		})
	}
}

// A proxy whose server breaks off says so by a panic, outside of a server of net/http too.
func TestStoring_ResponseThatBreaksOffOutsideOfAServer(t *testing.T) {
	asked := 0
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = io.WriteString(w, "a part")
		if asked == 1 {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler) // without the end of the chunks
		}
		_, _ = io.WriteString(w, " and the rest")
	}))
	defer origin.Close()
	target, err := url.Parse(origin.URL)
	require.NoError(t, err)
	_, m := newMiddleware(t, Options{})
	proxy := httputil.NewSingleHostReverseProxy(target)
	h := m.Handler(proxy)
	get := func() string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://example.com/", nil))
		return w.Body.String()
	}
	require.Equal(t, "a part", get())
	for range 2 {
		require.Equal(t, "a part and the rest", get())
	}
	require.Equal(t, 2, asked)
}
