package ringmiddleware

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const fresh = "Cache-Control: max-age=60"

func lines(s ...string) []string { return s }

// A hit has what the first answer had, byte for byte, and its age.
func TestRFC_HitHasTheWholeResponse(t *testing.T) {
	r := newRig(t, Options{}, says("hello", fresh, "Content-Type: text/x-test", "X-Own: 1",
		"X-Own: 2", `ETag: "v1"`, "Connection: X-Hop", "X-Hop: 1", "X-Empty: "))
	first, second := r.get("/a?b=c"), r.get("/a?b=c")
	for _, a := range []answer{first, second} {
		require.Equal(t, 200, a.code)
		require.Equal(t, "hello", a.body)
		require.Equal(t, "text/x-test", a.header.Get("Content-Type"))
		require.Equal(t, `"v1"`, a.header.Get("ETag"))
		require.Equal(t, []string{"1", "2"}, a.header.Values("X-Own"))
		require.Equal(t, []string{""}, a.header.Values("X-Empty"))
		require.Equal(t, "5", a.header.Get("Content-Length"))
	}
	require.Equal(t, "fwd=uri-miss; fwd-status=200; stored", first.status())
	require.Empty(t, first.header.Values("Age"), "it comes from the handler")
	require.Equal(t, "0", second.header.Get("Age"))
	require.Empty(t, second.header.Values("X-Hop"), "it belongs to the first connection")
	require.Equal(t, first.header.Get("Date"), second.header.Get("Date"))
	r.get("/a?b=d")
	r.wantAsked(2)
}

func TestRFC_ContentTypeIsGuessedOnce(t *testing.T) {
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		addLines(w.Header(), lines(fresh))
		if req.URL.Path == "/none" {
			w.Header()["Content-Type"] = nil
		}
		_, _ = fmt.Fprint(w, "<html>")
	})
	for _, method := range []string{http.MethodGet, http.MethodGet, http.MethodHead} {
		require.Equal(t, "text/html; charset=utf-8", r.do(method, "/").header.Get("Content-Type"))
		require.Empty(t, r.do(method, "/none").header.Values("Content-Type"))
	}
	r.wantAsked(2)
}

// If-None-Match and If-Modified-Since, both on the way to the handler and on a hit.
func TestRFC_NotModified(t *testing.T) {
	const modified = "Mon, 02 Jan 2006 15:04:05 GMT"
	for _, c := range []struct {
		name, etag, condition string
		want                  int
	}{
		{"same", `"v1"`, `If-None-Match: "v1"`, 304},
		{"weak against strong", `"v1"`, `If-None-Match: W/"v1"`, 304},
		{"strong against weak", `W/"v1"`, `If-None-Match: "v1"`, 304},
		{"in a list", `"v1"`, `If-None-Match: "v0", "v,1","v1"`, 304},
		{"any", `"v1"`, "If-None-Match: *", 304},
		{"another", `"v1"`, `If-None-Match: "v2"`, 200},
		{"empty", `"v1"`, `If-None-Match: ""`, 200},
		{"not modified", "", "If-Modified-Since: " + modified, 304},
		{"modified", "", "If-Modified-Since: Sun, 01 Jan 2006 15:04:05 GMT", 200},
		{"no date", "", "If-Modified-Since: soon", 200},
	} {
		for _, control := range []string{fresh, "Cache-Control: private, max-age=60"} {
			t.Run(c.name+" "+control, func(t *testing.T) {
				response := lines(control, "Content-Language: en", "Last-Modified: "+modified)
				if c.etag != "" {
					response = append(response, "ETag: "+c.etag)
				}
				r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
					require.False(t, control == fresh && hasAny(req.Header, conditions...))
					says("hello", response...)(w, req)
				})
				rounds := 1
				if control == fresh {
					rounds = 2 // a hit
				}
				for range rounds {
					a := r.get("/", c.condition)
					require.Equal(t, c.want, a.code)
					require.Equal(t, strings.TrimPrefix(control, "Cache-Control: "),
						a.header.Get("Cache-Control"))
					if c.etag != "" {
						require.Equal(t, c.etag, a.header.Get("ETag"))
					}
					if c.want == 304 {
						require.Empty(t, a.body)
						require.Empty(t, a.header.Get("Content-Type"))
					}
				}
				r.wantAsked(1)
				require.Equal(t, "hello", r.get("/").body, "without a condition")
			})
		}
	}
}

func TestRFC_ETagIsMade(t *testing.T) {
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		says("body of "+req.URL.Path, fresh)(w, req)
	})
	a, b := r.get("/a").header.Get("ETag"), r.get("/b").header.Get("ETag")
	require.Len(t, a, 28)
	require.Equal(t, "W/", a[:2], "an encoding in front of the cache keeps it")
	require.NotEqual(t, a, b)
	require.Equal(t, a, r.get("/a").header.Get("ETag"))
	require.Equal(t, 304, r.get("/a", "If-None-Match: "+a).code)
	require.Equal(t, 200, r.get("/b", "If-None-Match: "+a).code)
	r.wantAsked(2)
	require.True(t, r.m.Invalidate(strings.ToLower(r.url)+"/a"))
	require.Equal(t, 304, r.get("/a", "If-None-Match: "+a).code, "fetched anew, and the same")
	r.wantAsked(3)
}

func TestRFC_Vary(t *testing.T) {
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		body := "in " + req.Header.Get("Accept-Language")
		says(body, fresh, "Vary: accept-language, X-Other")(w, req)
	})
	for i, step := range []struct {
		lang, status string
		calls        int64
	}{
		{"en", "fwd=uri-miss", 1},
		{"en", "hit", 1},
		{"de", "fwd=vary-miss", 2},
		{"en", "hit", 2}, // both are there
		{"de", "hit", 2},
		{"", "fwd=vary-miss", 3},
		{"", "hit", 3},
	} {
		a := r.get("/", "Accept-Language: "+step.lang)
		require.Equal(t, "in "+step.lang, a.body, "step %d", i)
		require.Contains(t, a.status(), step.status, "step %d", i)
		r.wantAsked(step.calls)
	}
	r.get("/", "Accept-Language: en", "X-Other: 1")
	r.wantAsked(4)
	r.get("/", "X-Other: 1", "Accept-Language: en")
	r.wantAsked(4)
	r.do(http.MethodPost, "/")
	r.wantAsked(5)
	for i, lang := range []string{"en", "de", ""} {
		r.get("/", "Accept-Language: "+lang)
		r.wantAsked(int64(6 + i))
	}
}

// A handler may show its URL, which can be sent as if to a proxy, and in capital letters.
func TestRFC_URLWithHost(t *testing.T) {
	for _, control := range []string{fresh, "Cache-Control: private"} {
		_, m := newMiddleware(t, Options{})
		h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			says(req.RequestURI+" "+req.URL.String()+" "+req.Host, control)(w, req)
		}))
		for range 2 {
			for _, start := range []string{"ftp://a:b@example.com", "https://EXAMPLE.com", ""} {
				w, r := httptest.NewRecorder(), httptest.NewRequest("GET", start+"/a/%62?c", nil)
				r.TLS = nil
				http.StripPrefix("/a", h).ServeHTTP(w, r)
				require.Equal(t, "/a/%62?c /%62?c example.com", w.Body.String())
			}
		}
	}
}

// Most handlers read only the first line of a header.
func TestRFC_VaryByLines(t *testing.T) {
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		says(req.Header.Get("X-A"), fresh, "Vary: X-A")(w, req)
	})
	for range 2 {
		require.Equal(t, "1", r.get("/", "X-A: 1", "X-A: 2").body)
		require.Equal(t, "1, 2", r.get("/", "X-A: 1, 2").body)
		require.Equal(t, "2", r.get("/", "X-A: 2", "X-A: 1").body)
	}
	r.wantAsked(3)
}

// A reverse proxy removes headers that Connection names, so the response does not depend on them.
func TestRFC_HeadersOfTheConnection(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body := req.Header.Get("Accept-Language") + req.Header.Get("Cookie")
		says("in "+body, fresh, "Vary: Accept-Language, Cookie")(w, req)
	}))
	defer origin.Close()
	to, err := url.Parse(origin.URL)
	require.NoError(t, err)
	r := newRig(t, Options{}, httputil.NewSingleHostReverseProxy(to).ServeHTTP)
	for _, header := range []string{"Accept-Language: de", "Cookie: de"} {
		for _, named := range []string{"accept-language, cookie", "close, Cookie,Accept-Language"} {
			require.Equal(t, "in ", r.get("/", header, "Connection: "+named).body)
			require.Equal(t, "in de", r.get("/", header).body)
		}
	}
	r.wantAsked(6)
	for _, named := range []string{"keep-alive", "TE", "X-Absent"} {
		require.Equal(t, "in de", r.get("/", "Cookie: de", "TE: trailers", "Connection: "+named).body)
	}
	r.wantAsked(6)
}

// A response that depends on another header than those before does not hide nor show them.
func TestRFC_VaryChanges(t *testing.T) {
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		name := "X-A"
		if req.Header.Get("X-A") == "" {
			name = "X-B"
		}
		says(name+req.Header.Get(name), fresh, "Vary: "+name)(w, req)
	})
	for range 3 {
		for _, v := range []string{"1", "2"} {
			require.Equal(t, "X-A"+v, r.get("/", "X-A: "+v).body)
			require.Equal(t, "X-B"+v, r.get("/", "X-B: "+v).body)
		}
	}
	require.LessOrEqual(t, r.asked.Load(), int64(6))
}

func TestRFC_TooManyHeadersInVary(t *testing.T) {
	names := make([]string, maxVary)
	for i := range names {
		names[i] = fmt.Sprintf("X-%d", i)
	}
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		vary := strings.Join(names, ", ")
		if more := req.Header.Get("X-More"); more != "" {
			vary = "X-More, X-" + more
		}
		says("text", fresh, "Vary: "+vary)(w, req)
	})
	for range 2 {
		r.get("/a")
	}
	r.wantAsked(1)
	for i := range 3 { // together these are too many
		r.get("/a", fmt.Sprint("X-More: a", i), "X-0: 1")
		r.wantAsked(int64(2 + i))
	}
	x := r.m.store.index(strings.ToLower(r.url) + "/a")
	require.NotNil(t, x)
	require.Len(t, x.vary, maxVary+2, "it does not grow for ever")
}

func TestRFC_RequestDirectives(t *testing.T) {
	for _, c := range []struct {
		name, control string
		after         time.Duration
		hit           bool
	}{
		{"none", "", 30 * time.Second, true},
		{"no-cache", "no-cache", 0, false},
		{"max-age, younger", "max-age=40", 30 * time.Second, true},
		{"max-age, older", "max-age=20", 30 * time.Second, false},
		{"max-age=0", "max-age=0", time.Second, false},
		{"min-fresh, enough", "min-fresh=20", 30 * time.Second, true},
		{"min-fresh, too little", "min-fresh=40", 30 * time.Second, false},
		{"max-stale", "max-stale=100", 70 * time.Second, false}, // is not heeded
		{"only-if-cached", "only-if-cached", 30 * time.Second, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newTimedRig(t, Options{}, counts(fresh))
				r.get("/")
				time.Sleep(c.after)
				a := r.get("/", "Cache-Control: "+c.control)
				want := map[bool]string{true: "1", false: "2"}[c.hit]
				require.Equal(t, want, a.body)
				require.Equal(t, want, r.get("/").body, "what was fetched is kept")
			})
		})
	}
}

func TestRFC_OnlyIfCached(t *testing.T) {
	r := newRig(t, Options{}, counts(fresh))
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		a := r.do(method, "/", "Cache-Control: only-if-cached")
		require.Equal(t, 504, a.code)
	}
	r.wantAsked(0)
	r.get("/")
	require.Equal(t, "1", r.get("/", "Cache-Control: only-if-cached").body)
	r.wantAsked(1)
}

// Lifetimes and ages, as time goes by.
func TestRFC_Ages(t *testing.T) {
	for _, c := range []struct {
		name     string
		response []string
		took     time.Duration
		age      int // of the first hit, a second after the answer
		life     int // seconds for which it is a hit
	}{
		{"max-age", lines(fresh), 0, 1, 60},
		{"s-maxage", lines("Cache-Control: max-age=10, s-maxage=90"), 0, 1, 90},
		{"Age", lines(fresh, "Age: 20"), 0, 21, 40},
		{"a slow handler", lines(fresh), 10 * time.Second, 11, 50},
		{"Age and a slow handler", lines(fresh, "Age: 20"), 10 * time.Second, 31, 30},
		{"Expires", lines("Date: Sat, 01 Jan 2000 00:00:00 GMT",
			"Expires: Sat, 01 Jan 2000 00:00:30 GMT"), 0, 1, 30},
		{"Expires alone", lines("Expires: Sat, 01 Jan 2000 00:00:30 GMT"), 0, 1, 30},
		{"Date", lines(fresh, "Date: Fri, 31 Dec 1999 23:59:50 GMT"), 0, 11, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // begins with the year 2000
				r := newTimedRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
					time.Sleep(c.took)
					says("text", c.response...)(w, req)
				})
				r.get("/")
				time.Sleep(time.Second)
				a := r.get("/")
				r.wantAsked(1)
				require.Equal(t, []string{fmt.Sprint(c.age)}, a.header.Values("Age"))
				require.Equal(t, fmt.Sprintf("hit; ttl=%d", c.life-1), a.status())
				time.Sleep(time.Duration(c.life)*time.Second - time.Second - 200*time.Millisecond)
				r.get("/")
				r.wantAsked(1)
				time.Sleep(200 * time.Millisecond)
				r.get("/")
				r.wantAsked(2)
			})
		})
	}
}

func TestRFC_TTLOptionAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTimedRig(t, Options{TTL: 10 * time.Second}, counts())
		r.get("/")
		time.Sleep(9 * time.Second)
		require.Equal(t, "9", r.get("/").header.Get("Age"))
		time.Sleep(time.Second)
		require.Equal(t, "2", r.get("/").body)
	})
}

func TestRFC_Head(t *testing.T) {
	var heads atomic.Int64
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodHead {
			heads.Add(1)
		}
		says("hello", fresh)(w, req)
	})
	r.do(http.MethodHead, "/")
	require.EqualValues(t, 1, heads.Load(), "there is nothing to answer it from")
	r.get("/")
	r.wantAsked(2) // the answer to HEAD was not taken for the page
	a := r.do(http.MethodHead, "/")
	require.Equal(t, 200, a.code)
	require.Empty(t, a.body)
	require.Equal(t, "5", a.header.Get("Content-Length"))
	require.Equal(t, 304, r.do(http.MethodHead, "/", "If-None-Match: "+a.header.Get("ETag")).code)
	for _, code := range []int{200, 404} {
		w, req := &recording{}, newRequest("/")
		req.Method = http.MethodHead
		r.m.answer(w, req, &found{entry: entry{code: code, body: []byte("text")}}, "", "hit")
		require.Empty(t, w.body.String())
		require.Equal(t, "4", w.Header().Get("Content-Length"))
	}
	r.wantAsked(2)
}

func TestRFC_Ranges(t *testing.T) {
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		addLines(w.Header(), lines(fresh, `ETag: "1"`))
		http.ServeContent(w, req, "a.txt", time.Time{}, strings.NewReader("hello"))
	})
	for range 2 { // by the handler
		a := r.get("/", "Range: bytes=1-2")
		require.Equal(t, 206, a.code)
		require.Equal(t, "el", a.body)
	}
	r.wantAsked(2)
	require.Zero(t, r.cache.Len(), "nothing is said about the whole")
	require.Equal(t, "hello", r.get("/").body, "no part was taken for the whole")
	r.wantAsked(3)
	for _, c := range []struct {
		header []string
		code   int
		body   string
	}{
		{lines("Range: bytes=1-2"), 206, "el"},
		{lines("Range: bytes=-2"), 206, "lo"},
		{lines("Range: bytes=9-"), 416, "invalid range: failed to overlap\n"},
		{lines("Range: bytes=1-2", `If-Range: "1"`), 206, "el"},
		{lines("Range: bytes=1-2", `If-Range: "2"`), 200, "hello"},
		{lines("Range: bytes=1-2", `If-None-Match: "1"`), 304, ""},
	} {
		a := r.get("/", c.header...)
		require.Equal(t, c.code, a.code, "%v", c.header)
		require.Equal(t, c.body, a.body, "%v", c.header)
	}
	several := r.get("/", "Range: bytes=0-0,4-4")
	require.Equal(t, 206, several.code)
	require.Contains(t, several.header.Get("Content-Type"), "multipart/byteranges")
	r.wantAsked(3)
}

// A GET with a body asks for more than its URL says.
func TestRFC_GetWithABodyPasses(t *testing.T) {
	r := newRig(t, Options{}, counts(fresh))
	for range 2 {
		req, err := http.NewRequest(http.MethodGet, r.url, strings.NewReader("which"))
		require.NoError(t, err)
		resp, err := r.client.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	r.wantAsked(2)
}
