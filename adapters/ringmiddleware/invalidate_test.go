package ringmiddleware

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

func TestInvalidate_Methods(t *testing.T) {
	for method, unsafe := range map[string]bool{
		"POST": true, "PUT": true, "DELETE": true, "PATCH": true, "UNKNOWN": true,
		"OPTIONS": false, "HEAD": false, "TRACE": false,
	} {
		for code, success := range map[int]bool{
			200: true, 201: true, 204: true, 303: true, 400: false, 404: false, 500: false,
		} {
			r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				if req.Method == http.MethodGet {
					return
				}
				if req.URL.RawQuery == "a" && code == 200 {
					return // without a word
				}
				w.WriteHeader(code)
			})
			r.get("/?a")
			r.get("/?b")
			r.do(method, "/?a")
			calls := r.asked.Load()
			require.Equal(t, !(unsafe && success), r.get("/?a").status()[:3] == "hit",
				"%s, %d", method, code)
			require.Equal(t, "hit", r.get("/?b").status()[:3])
			require.LessOrEqual(t, r.asked.Load(), calls+1)
		}
	}
}

// The answer to an unsafe request does not reach the client before the cache has forgotten.
func TestInvalidate_BeforeTheAnswer(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter){
		"a code":   func(w http.ResponseWriter) { w.WriteHeader(200) },
		"a body":   func(w http.ResponseWriter) { _, _ = fmt.Fprint(w, "done") },
		"a flush":  func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
		"a reader": func(w http.ResponseWriter) { _, _ = copyInto(w, strings.NewReader("done")) },
	} {
		t.Run(name, func(t *testing.T) {
			cache, m := newMiddleware(t, Options{})
			h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.Method == http.MethodGet {
					says("text", fresh)(w, req)
					return
				}
				require.NotNil(t, m.store.index("http://example.com/"))
				w.WriteHeader(http.StatusEarlyHints)
				require.NotNil(t, m.store.index("http://example.com/"))
				answer(w)
				require.Nil(t, m.store.index("http://example.com/"))
			}))
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
			require.Positive(t, cache.Len())
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", nil))
		})
	}
}

// A GET whose handler was called before an invalidation is answered, and not kept: with a POST,
// with Invalidate, with the cache Reset, and by another Middleware on the same cache.
func TestInvalidate_WhileFetching(t *testing.T) {
	for name, invalidate := range map[string]func(r *rig, other *Middleware){
		"POST": func(r *rig, _ *Middleware) {
			require.NoError(r.t, r.send(r.t.Context(), http.MethodPost, "/").err)
		},
		"Reset": func(r *rig, _ *Middleware) { r.cache.Reset() },
		"other": func(r *rig, other *Middleware) {
			require.True(r.t, other.Invalidate(strings.ToLower(r.url)+"/"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var version atomic.Int64
			read, answer := make(chan int64, 9), make(chan struct{})
			r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
				if req.Method == http.MethodPost {
					return
				}
				v := version.Load()
				if v == 0 {
					read <- v
					<-answer
				}
				says(fmt.Sprint(v), fresh)(w, req)
			})
			other, err := New(r.cache, Options{})
			require.NoError(t, err)
			old := r.sendMany(2, http.MethodGet, "/")
			wait(t, read)
			version.Store(1)
			invalidate(r, other)
			require.Equal(t, "1", r.send(t.Context(), http.MethodGet, "/").body,
				"it does not wait for the old one")
			close(answer)
			for _, a := range old() {
				require.NoError(t, a.err)
			}
			r.busy.Wait()
			require.Equal(t, "1", r.get("/").body)
		})
	}
}

// A handler that has panicked may have changed something.
func TestInvalidate_AfterAPanic(t *testing.T) {
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPost {
			panic(http.ErrAbortHandler)
		}
		says("text", fresh)(w, req)
	})
	r.get("/")
	require.Error(t, r.send(t.Context(), http.MethodPost, "/").err)
	r.busy.Wait()
	r.get("/")
	r.wantAsked(3)
}

// The server behind a reverse proxy may have made the change whose client has gone.
func TestInvalidate_ClientLeaves(t *testing.T) {
	_, m := newMiddleware(t, Options{})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodGet {
			says("text", fresh)(w, req)
			return
		}
		if req.URL.RawQuery != "fails" {
			leave()
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	for query, left := range map[string]bool{"?fails": true, "": false} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/"+query, nil))
		post := httptest.NewRequest("POST", "/"+query, nil)
		if !left {
			post = post.WithContext(ctx)
		}
		h.ServeHTTP(httptest.NewRecorder(), post)
		require.Equal(t, left, m.store.index("http://example.com/"+query) != nil)
	}
}

// A generation that was deleted while makeIndex worked does not come back.
func TestInvalidate_NoGenerationTwice(t *testing.T) {
	_, m := newMiddleware(t, Options{})
	seen := map[[16]byte]bool{}
	for range 1000 {
		x := m.store.makeIndex("key")
		require.NotNil(t, x)
		require.False(t, seen[x.generation])
		seen[x.generation] = true
		again := m.store.makeIndex("key")
		require.NotNil(t, again)
		require.Equal(t, x, again)
		require.True(t, m.Invalidate("key"))
		require.False(t, m.Invalidate("key"))
	}
}

// So it is with others who make and delete the index at the same time.
func TestInvalidate_NoGenerationTwiceConcurrently(t *testing.T) {
	_, m := newMiddleware(t, Options{})
	var dead sync.Map // generation to the time when it was deleted
	var clock, made atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20_000 {
				begun := clock.Add(1)
				x := m.store.makeIndex("key")
				if at, gone := dead.Load(x.generation); gone && at.(int64) < begun {
					t.Error("a generation has come back")
					return
				}
				made.Add(1)
				m.Invalidate("key")
				dead.Store(x.generation, clock.Add(1))
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 160_000, made.Load())
}

func TestInvalidate_ChangeOfADeletedIndex(t *testing.T) {
	cache, m := newMiddleware(t, Options{})
	x := m.store.makeIndex("key")
	require.NotNil(t, x)
	m.Invalidate("key")
	m.store.pass("key", x, anonymous)
	require.Zero(t, cache.Len(), "it does not come back")
	e := entry{code: 200, lifetime: minKeep}
	now := m.store.clock()
	require.False(t, m.store.put("key", x, newRequest("/"), anonymous, &e, now))
	require.Equal(t, 1, cache.Len(), "the clock")
	y := m.store.makeIndex("key")
	require.NotNil(t, y)
	require.False(t, m.store.put("key", x, newRequest("/"), anonymous, &e, now))
	require.True(t, m.store.put("key", y, newRequest("/"), anonymous, &e, now))
}

// Whatever lies in the cache under a key of ours is a miss if it is not ours.
func TestStore_ForeignBytes(t *testing.T) {
	r := newRig(t, Options{Prefix: "p"}, counts(fresh))
	key := strings.ToLower(r.url) + "/"
	r.get("/")
	x := r.m.store.index(key)
	require.NotNil(t, x)
	require.NoError(t, r.cache.Set(r.m.store.entryKey(x, newRequest("/")), []byte("foreign")))
	require.Equal(t, "2", r.get("/").body)
	require.Equal(t, "2", r.get("/").body)
	require.NoError(t, r.cache.Set(r.m.store.indexKey(key), []byte("foreign")))
	require.Equal(t, "3", r.get("/").body)
	require.Equal(t, "3", r.get("/").body)
	for i, group := range []string{"p" + lower(r.url), "c"} {
		require.NoError(t, r.cache.Set(r.m.store.groupKey(nil, group), []byte("foreign")))
		r.get("/")
		require.Equal(t, []string{"4", "4"}[i], r.get("/").body)
	}
	r.m.InvalidatePrefix(r.url)
	require.Equal(t, "5", r.get("/").body)
}

// A closed cache, or a key that it does not take, is no reason not to answer.
func TestStore_CacheThatTakesNothing(t *testing.T) {
	r := newRig(t, Options{}, counts(fresh))
	r.get("/")
	long := "/?" + strings.Repeat("x", 70_000)
	require.Equal(t, "2", r.get(long).body)
	require.Equal(t, "3", r.get(long).body)
	require.NoError(t, r.cache.Close())
	require.Equal(t, "4", r.get("/").body)
	require.Equal(t, "5", r.get("/").body)
}

// The cache may be full of other things: then responses leave, and come again.
func TestStore_Evictions(t *testing.T) {
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		says(req.URL.Path+strings.Repeat(".", 100_000), fresh, "Vary: X-A")(w, req)
	})
	for range 2 {
		for i := range 500 { // 50 MB
			path := fmt.Sprint("/", i)
			a := r.get(path)
			require.Equal(t, path+strings.Repeat(".", 100_000), a.body)
		}
	}
	require.Greater(t, r.asked.Load(), int64(500))
}

// Two on one cache do not see each other's if their prefixes differ.
func TestOptions_Prefix(t *testing.T) {
	cache := ringcache.New(32 << 20)
	defer func() { require.NoError(t, cache.Close()) }()
	for _, prefix := range []string{"", "a", "au", "auhttp://"} {
		m, err := New(cache, Options{Prefix: prefix})
		require.NoError(t, err)
		h := m.Handler(says("of "+prefix, fresh))
		for range 2 {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			require.Equal(t, "of "+prefix, w.Body.String())
		}
	}
	require.Equal(t, 4*4, cache.Len(), "index, entry, host and clock")
}

func TestOptions_Key(t *testing.T) {
	o := Options{Key: func(r *http.Request) string { return r.URL.Query().Get("id") }}
	r := newRig(t, o, counts(fresh))
	require.Equal(t, "1", r.get("/a?id=1").body)
	require.Equal(t, "1", r.get("/b?id=1&session=2").body)
	require.Equal(t, "2", r.get("/b?id=2").body)
	for range 2 {
		require.Contains(t, r.get("/").status(), "bypass")
	}
	r.wantAsked(4)
	r.do(http.MethodPost, "/")
	require.Equal(t, "1", r.get("/?id=1").body, "a key of nothing invalidates nothing")
	r.do(http.MethodPost, "/c?id=1")
	require.Equal(t, "7", r.get("/?id=1").body)
}

func TestOptions_AreChecked(t *testing.T) {
	cache := ringcache.New(32 << 20)
	defer func() { require.NoError(t, cache.Close()) }()
	for want, o := range map[string]Options{
		"Prefix":               {Prefix: "a\x00b"},
		"TTL":                  {TTL: -1},
		"StaleWhileRevalidate": {StaleWhileRevalidate: -1},
		"StaleIfError":         {StaleIfError: -1},
		"MaxBody":              {MaxBody: -1},
		"Status":               {Status: "a b"},
	} {
		_, err := New(cache, o)
		require.ErrorIs(t, err, ringcache.ErrInvalidOptions)
		require.ErrorContains(t, err, want)
	}
}

func TestNew_NilCachePanics(t *testing.T) {
	require.PanicsWithValue(t, "ringmiddleware: make middleware: cache is nil",
		func() { _, _ = New(nil, Options{}) })
}

func TestDefaultKey(t *testing.T) {
	for target, want := range map[string]string{
		"/a?b=c":                   "http://example.com/a?b=c",
		"https://HOST.org:8/A?":    "https://host.org:8/A?",
		"http://example.com/a%2fb": "http://example.com/a%2fb",
	} {
		require.Equal(t, want, DefaultKey(httptest.NewRequest("GET", target, nil)))
		require.Equal(t, want, DefaultKey(httptest.NewRequest("POST", target, nil)))
	}
	// Two handlers behind http.StripPrefix are not one.
	var keys []string
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		keys = append(keys, DefaultKey(r))
	})
	for _, prefix := range []string{"/a", "/b"} {
		for _, form := range []string{"", "http://example.com"} { // as to a server, and to a proxy
			r := httptest.NewRequest("GET", form+prefix+"/x", nil)
			http.StripPrefix(prefix, h).ServeHTTP(httptest.NewRecorder(), r)
		}
	}
	a, b := "http://example.com/x\n/a/x", "http://example.com/x\n/b/x"
	require.Equal(t, []string{a, a, b, b}, keys)
	// HTTP/2 lets spaces through, but nothing that is like the newline.
	r := httptest.NewRequest("GET", "/x", nil)
	r.URL.RawQuery, r.RequestURI = "q /a/x?q", "/x?q /a/x?q"
	require.Equal(t, "http://example.com/x?q /a/x?q", DefaultKey(r))
}

func TestDefaultKey_HostThatIsNone(t *testing.T) {
	r := newRequest("/c")
	for _, host := range []string{"host/b", "host?", "host#", `host\`, "a host"} {
		r.Host = host
		require.Empty(t, DefaultKey(r), host)
	}
}
