package ringmiddleware

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func copyInto(w http.ResponseWriter, src io.Reader) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{src})
}

// Bodies up to MaxBody are kept, longer ones pass, whether or not the length is announced.
func TestStream_MaxBody(t *testing.T) {
	const most = 10_000
	for name, write := range map[string]func(w http.ResponseWriter, body string){
		"at once": func(w http.ResponseWriter, body string) { _, _ = io.WriteString(w, body) },
		"announced": func(w http.ResponseWriter, body string) {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			_, _ = io.WriteString(w, body)
		},
		"in parts": func(w http.ResponseWriter, body string) {
			for part := range strings.SplitSeq(body, " ") {
				_, _ = fmt.Fprint(w, part, " ")
			}
		},
		"by a reader": func(w http.ResponseWriter, body string) {
			_, _ = copyInto(w, strings.NewReader(body))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{MaxBody: most}, func(w http.ResponseWriter, req *http.Request) {
				var n int
				_, _ = fmt.Sscan(req.URL.RawQuery, &n)
				addLines(w.Header(), lines(fresh))
				write(w, strings.Repeat("x ", n/2)[:n-1])
			})
			for n, calls := range map[int]int64{100: 1, most - 1: 1, most + 100: 2, 10 * most: 2} {
				before := r.asked.Load()
				for range 2 {
					body := r.get(fmt.Sprint("/?", n)).body
					require.Equal(t, strings.TrimSpace(strings.Repeat("x ", n/2)[:n-1]),
						strings.TrimSpace(body))
				}
				require.Equal(t, calls, r.asked.Load()-before, "%d bytes", n)
			}
		})
	}
}

// No more than MaxBody is held back, however long the body is.
func TestStream_MemoryIsBounded(t *testing.T) {
	const most = 1000
	_, m := newMiddleware(t, Options{MaxBody: most})
	var written int
	client := &counting{}
	m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		for range 100 {
			n, err := w.Write(make([]byte, 300))
			require.NoError(t, err)
			written += n
			require.LessOrEqual(t, written-client.n, most)
			rec := w.(*recorder)
			require.LessOrEqual(t, len(rec.body), most)
		}
		require.Nil(t, w.(*recorder).body)
	})).ServeHTTP(client, newRequest("/"))
	require.Equal(t, 30_000, client.n)
}

// What is announced to be too long passes from the first byte on.
func TestStream_AnnouncedTooLongPassesAtOnce(t *testing.T) {
	_, m := newMiddleware(t, Options{MaxBody: 1000})
	client := &counting{}
	m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		addLines(w.Header(), lines(fresh, "Content-Length: 1001"))
		_, _ = w.Write(make([]byte, 1))
		require.Equal(t, 1, client.n)
	})).ServeHTTP(client, newRequest("/"))
}

// Of what was flushed, no more than MaxBody is copied either.
func TestStream_FlushedTooLongIsNotKept(t *testing.T) {
	cache, m := newMiddleware(t, Options{MaxBody: 1000})
	m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		says("a", fresh)(w, r)
		_ = http.NewResponseController(w).Flush()
		for range 5 {
			_, _ = w.Write(make([]byte, 300))
			require.LessOrEqual(t, len(w.(*recorder).body), 1000)
		}
	})).ServeHTTP(&counting{}, newRequest("/"))
	require.Equal(t, 2, cache.Len(), "index and clock alone")
}

// A client that has a flushed response gets it once more, so that it can be kept for others.
func TestStream_FlushedUnderACondition(t *testing.T) {
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("ETag", `"1"`)
		says("hello", fresh)(w, req)
		_ = http.NewResponseController(w).Flush()
	})
	require.Equal(t, "hello", r.get("/", `If-None-Match: "1"`).body)
	require.Equal(t, 304, r.get("/", `If-None-Match: "1"`).code)
	r.wantAsked(1)
}

type counting struct {
	recording
	n int
}

func (c *counting) Write(p []byte) (int, error) { c.n += len(p); return len(p), nil }

// A flushed response is sent at once, and other requests hardly wait for its end. It is stored only
// if it says how long it is fresh: Options.TTL does not apply to it.
func TestStream_Flush(t *testing.T) {
	for _, said := range []bool{true, false} {
		received := make(chan bool)
		r := newRig(t, Options{TTL: time.Minute}, func(w http.ResponseWriter, req *http.Request) {
			if said {
				addLines(w.Header(), lines(fresh))
			}
			_, _ = fmt.Fprint(w, "a")
			w.(http.Flusher).Flush()
			select {
			case <-received:
			case <-req.Context().Done(): // the test has given up
			}
			_, _ = fmt.Fprint(w, "b")
		})
		resp, err := r.client.Get(r.url)
		require.NoError(t, err)
		_, err = io.ReadFull(resp.Body, make([]byte, 1))
		require.NoError(t, err)
		second := r.sendMany(1, http.MethodGet, "/")
		asked := func() bool { return r.asked.Load() == 2 }
		require.Eventually(t, asked, patience, time.Millisecond)
		close(received)
		rest, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, "b", string(rest))
		require.Equal(t, "ab", second()[0].body)
		r.busy.Wait()
		require.Equal(t, "ab", r.get("/").body)
		r.wantAsked(map[bool]int64{true: 2, false: 3}[said])
	}
}

// A stream whose client has gone ended too early.
func TestStream_BrokenOffIsNotKept(t *testing.T) {
	ended := make(chan struct{}, 9)
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		says("a", fresh)(w, req)
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
		ended <- struct{}{}
	})
	for range 2 {
		ctx, leave := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
		require.NoError(t, err)
		resp, err := r.client.Do(req)
		require.NoError(t, err)
		_, err = io.ReadFull(resp.Body, make([]byte, 1))
		require.NoError(t, err)
		leave()
		_ = resp.Body.Close()
		wait(t, ended)
		r.busy.Wait()
	}
	r.wantAsked(2)
}

// A client that has gone is no reason to stop as long as somebody else wants the response.
func TestStream_Unsent(t *testing.T) {
	for _, wanted := range []bool{true, false} {
		cache, m := newMiddleware(t, Options{})
		ctx, leave := context.WithCancel(t.Context())
		client := &recording{}
		m.Handler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			says("a", fresh)(w, req)
			_ = http.NewResponseController(w).Flush()
			if client.gone = true; !wanted {
				leave()
				<-req.Context().Done()
			}
			n, err := fmt.Fprint(w, "b")
			if wanted {
				require.NoError(t, err)
				require.Equal(t, 1, n)
			} else {
				require.ErrorIs(t, err, errGone)
			}
		})).ServeHTTP(client, newRequest("/").WithContext(ctx))
		leave()
		require.Equal(t, map[bool]int{true: 4, false: 2}[wanted], cache.Len(),
			"index and clock, path and entry")
	}
}

func TestStream_ShortOrLongIsNotKept(t *testing.T) {
	for _, length := range []string{"10", "3"} {
		r := newRig(t, Options{}, says("hello", fresh, "Content-Length: "+length))
		for range 2 {
			_ = r.send(t.Context(), http.MethodGet, "/")
		}
		require.GreaterOrEqual(t, r.asked.Load(), int64(2))
	}
}

// Trailers reach the client, announced or not, and such a response is not kept.
func TestStream_Trailers(t *testing.T) {
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		addLines(w.Header(), lines(fresh))
		name := "X-Sum"
		if req.URL.Path == "/announced" {
			w.Header().Set("Trailer", name)
		} else {
			name = http.TrailerPrefix + name
		}
		_, _ = fmt.Fprint(w, "hello")
		if req.URL.RawQuery != "" {
			_ = http.NewResponseController(w).Flush()
		}
		w.Header().Set(name, "5")
	})
	for _, path := range []string{"/announced", "/not", "/announced?f", "/not?f"} {
		for range 2 {
			resp, err := r.client.Get(r.url + path)
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, "hello", string(body))
			if path != "/not" { // net/http loses it without a Flush, with or without a cache
				require.Equal(t, "5", resp.Trailer.Get("X-Sum"), path)
			}
		}
	}
	r.wantAsked(8)
}

func TestStream_EarlyHintsAreNoAnswer(t *testing.T) {
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		says("hello", fresh)(w, req)
	})
	for range 2 {
		a := r.get("/")
		require.Equal(t, 200, a.code)
		require.Equal(t, "hello", a.body)
		require.Equal(t, []string{"</style.css>; rel=preload"}, a.header.Values("Link"))
	}
	r.wantAsked(1)
}

func TestStream_Hijack(t *testing.T) {
	for name, hijack := range map[string]func(http.ResponseWriter) (
		net.Conn, *bufio.ReadWriter, error){
		"controller": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return http.NewResponseController(w).Hijack()
		},
		"interface": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return w.(http.Hijacker).Hijack()
		},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			t.Run(name+" "+method, func(t *testing.T) {
				o := Options{TTL: time.Minute}
				r := newRig(t, o, func(w http.ResponseWriter, _ *http.Request) {
					conn, rw, err := hijack(w)
					require.NoError(t, err)
					_, _ = rw.WriteString("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi")
					require.NoError(t, rw.Flush())
					require.NoError(t, conn.Close())
				})
				for range 2 {
					require.Equal(t, "hi", r.do(method, "/").body)
				}
				r.wantAsked(2)
				require.Empty(t, r.logged.String())
			})
		}
	}
}

// What the connection can do is within reach of the handler.
func TestStream_Controller(t *testing.T) {
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		connection := http.NewResponseController(w)
		require.NoError(t, connection.SetWriteDeadline(time.Now().Add(time.Hour)))
		require.NoError(t, connection.EnableFullDuplex())
		says("hello", fresh)(w, req)
	})
	require.Equal(t, "hello", r.get("/").body)
	require.Equal(t, "hello", r.do(http.MethodPost, "/").body)
	require.Equal(t, "hello", r.get("/", "Range: bytes=0-").body)
}

// A second WriteHeader is the mistake that it is without a cache.
func TestStream_MistakesAreReported(t *testing.T) {
	for _, control := range []string{fresh, "Cache-Control: private"} {
		r := newRig(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
			addLines(w.Header(), lines(control))
			w.WriteHeader(404)
			w.Header().Set("X-Late", "1")
			w.WriteHeader(200)
		})
		for range 2 {
			a := r.get("/")
			require.Equal(t, 404, a.code)
			require.Empty(t, a.header.Get("X-Late"))
		}
	}
	r := newRig(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
		addLines(w.Header(), lines(fresh))
		w.WriteHeader(204)
		_, err := fmt.Fprint(w, "text")
		require.ErrorIs(t, err, http.ErrBodyNotAllowed)
	})
	require.Equal(t, 204, r.get("/").code)
}

// The headers of handlers before the cache are of their request alone.
func TestStream_HeadersOfOthers(t *testing.T) {
	_, m := newMiddleware(t, Options{})
	h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		control := fresh
		if req.URL.Path == "/private" {
			control = "Cache-Control: private"
		}
		says("hello", control, "Vary: Accept", "X-Both: inner")(w, req)
	}))
	for _, path := range []string{"/", "/", "/private", "/private"} {
		for _, id := range []string{"1", "2"} {
			w := httptest.NewRecorder()
			w.Header().Set("X-Request-Id", id)
			w.Header().Set("X-Both", "outer")
			w.Header().Set("Vary", "Accept-Encoding")
			h.ServeHTTP(w, newRequest(path))
			require.Equal(t, []string{id}, w.Header()["X-Request-Id"])
			require.Equal(t, []string{"inner"}, w.Header()["X-Both"])
			require.Equal(t, []string{"Accept-Encoding", "Accept"}, w.Header()["Vary"])
		}
	}
}

// A reverse proxy flushes what has no length after each part; it is kept nevertheless.
func TestStream_ReverseProxy(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		addLines(w.Header(), lines(fresh))
		for range 3 {
			_, _ = w.Write(bytes.Repeat([]byte("x"), 5000))
			if req.URL.Path != "/whole" {
				_ = http.NewResponseController(w).Flush()
			}
		}
		if req.URL.Path == "/broken" {
			panic(http.ErrAbortHandler)
		}
	}))
	defer origin.Close()
	to, err := url.Parse(origin.URL)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	r := newRig(t, Options{}, proxy.ServeHTTP)
	for range 2 {
		require.Len(t, r.get("/parts").body, 15_000)
		require.Len(t, r.get("/whole").body, 15_000)
	}
	r.wantAsked(2)
	for range 2 {
		require.Error(t, r.send(t.Context(), http.MethodGet, "/broken").err)
	}
	r.wantAsked(4)
}

func TestStream_CookiesOfOthersStay(t *testing.T) {
	_, m := newMiddleware(t, Options{})
	inner := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "theme", Value: "dark"})
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "page")
	}))
	rec := httptest.NewRecorder()
	http.SetCookie(rec, &http.Cookie{Name: "session", Value: "1"})
	inner.ServeHTTP(rec, newRequest("/"))
	require.Equal(t, []string{"session=1", "theme=dark"}, rec.Header().Values("Set-Cookie"))
}

// httputil.ReverseProxy takes the header of an answer of 1xx away before the answer proper.
func TestStream_HeaderOfEarlyHintsIsNotOfTheAnswer(t *testing.T) {
	for _, control := range []string{fresh, "Cache-Control: private"} {
		r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("X-Hint", "1")
			w.WriteHeader(http.StatusEarlyHints)
			clear(w.Header())
			says("page", control)(w, req)
		})
		require.NotContains(t, r.get("/").header, "X-Hint")
	}
}
