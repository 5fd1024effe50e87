package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestSecondRequestIsAHit(t *testing.T) {
	r := newRig(t, says("hello", "Cache-Control: max-age=60", "Content-Type: text/x-test", "X-Own: 1", "X-Own: 2", `ETag: "v1"`))
	first, second := r.get("/a?b=c"), r.get("/a?b=c")
	r.wantAsked(1)
	for _, a := range []answer{first, second} {
		if a.code != 200 || a.body != "hello" || a.header.Get("Content-Type") != "text/x-test" ||
			a.header.Get("ETag") != `"v1"` || strings.Join(a.header.Values("X-Own"), " ") != "1 2" {
			t.Errorf("answer %+v", a)
		}
	}
	if got := first.header.Get("Cache-Status"); got != "ringcache; fwd=uri-miss" {
		t.Errorf("Cache-Status of the first is %q", got)
	}
	if got := second.header.Get("Cache-Status"); !strings.HasPrefix(got, "ringcache; hit; ttl=") {
		t.Errorf("Cache-Status of the second is %q", got)
	}
	if second.header.Get("Age") == "" || second.header.Get("Content-Length") != "5" {
		t.Errorf("header of the second: %v", second.header)
	}
	r.get("/a?b=d") // another URL
	r.wantAsked(2)
}

func TestWhatIsNotKept(t *testing.T) {
	for name, header := range map[string][]string{
		"no word":             {},
		"no-store":            {"Cache-Control: no-store, max-age=60"},
		"no-cache":            {"Cache-Control: no-cache, max-age=60"},
		"private":             {"Cache-Control: max-age=60", "Cache-Control: Private"},
		"private, a field":    {`Cache-Control: private="set-cookie, x", max-age=60`},
		"max-age=0":           {"Cache-Control: max-age=0"},
		"not a number":        {"Cache-Control: max-age=soon"},
		"negative":            {"Cache-Control: max-age=-60"},
		"max-age in quotes":   {`Cache-Control: other="max-age=60, max-age=60"`},
		"the first counts":    {"Cache-Control: max-age=0, max-age=60"},
		"s-maxage goes first": {"Cache-Control: max-age=60, s-maxage=0"},
		"a cookie":            {"Cache-Control: max-age=60", "Set-Cookie: a=b"},
		"varies by anything":  {"Cache-Control: max-age=60", "Vary: Accept, *"},
		"a trailer":           {"Cache-Control: max-age=60", "Trailer: X-Sum"},
		"behind a quote":      {`Cache-Control: max-age=60, other="a\"b", no-store`},
		"old already":         {"Cache-Control: max-age=60", "Age: 60"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, says("hello", header...))
			r.get("/")
			if a := r.get("/"); a.body != "hello" || a.code != 200 {
				t.Errorf("answer %+v", a)
			}
			r.wantAsked(2)
			if n := r.front.cache.Len(); n != 0 {
				t.Errorf("%d entries in the cache", n)
			}
		})
	}
}

func TestRequestsThatPass(t *testing.T) {
	for name, header := range map[string]string{
		"credentials": "Authorization: Basic YTpi",
		"a range":     "Range: bytes=0-1",
		"no-store":    "Cache-Control: no-store",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, says("hello", "Cache-Control: max-age=60"))
			for range 2 {
				if a := r.get("/", header); a.header.Get("Cache-Status") != "ringcache; fwd=bypass" {
					t.Errorf("answer %+v", a)
				}
			}
			r.wantAsked(2)
			if n := r.front.cache.Len(); n != 0 {
				t.Errorf("%d entries in the cache", n)
			}
		})
	}
}

func TestNoCacheFetchesAnew(t *testing.T) {
	var version atomic.Int64
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		says(fmt.Sprint(version.Add(1)), "Cache-Control: max-age=60")(w, req)
	})
	r.get("/")
	if a := r.get("/", "Cache-Control: no-cache"); a.body != "2" {
		t.Errorf("with no-cache, the body is %q", a.body)
	}
	if a := r.get("/"); a.body != "2" {
		t.Errorf("afterwards, the body is %q", a.body)
	}
	r.wantAsked(2)
}

// The entry lives for as long as the response is good, and its age is what has
// passed of that.
func TestTimeToLive(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"max-age=60":                           60 * time.Second,
		"max-age=60, s-maxage=600":             600 * time.Second,
		`public, max-age="90"`:                 90 * time.Second,
		"max-age=99999999999999999999":         365 * 24 * time.Hour,
		"max-age=2147483648, must-revalidate":  365 * 24 * time.Hour,
		"max-age=5, stale-while-revalidate=90": 5 * time.Second,
	} {
		r := newRig(t, says("hello", "Cache-Control: "+header))
		r.get("/")
		// A minute for a slow machine, except where less is at stake.
		least := max(want-time.Minute, 0)
		if left, ok := r.front.cache.TTL(r.key("/")); !ok || left > want || left <= least {
			t.Errorf("%s: TTL is %v, %v; want a little below %v", header, left, ok, want)
		}
	}
}

func TestAge(t *testing.T) {
	r := newRig(t, says("hello", "Cache-Control: max-age=1000", "Age: 100"))
	r.get("/")
	if left, _ := r.front.cache.TTL(r.key("/")); left > 900*time.Second || left < 800*time.Second {
		t.Errorf("TTL of a response that was 100 s old is %v, want 900 s", left)
	}
	// As if 300 seconds had passed, and then all.
	r.front.cache.Touch(r.key("/"), 700*time.Second)
	a := r.get("/")
	if age := seconds(a.header.Get("Age")); age < 300*time.Second || age > 400*time.Second {
		t.Errorf("Age is %q, want 300", a.header.Get("Age"))
	}
	if len(a.header.Values("Age")) != 1 {
		t.Errorf("Age is there %d times", len(a.header.Values("Age")))
	}
	r.wantAsked(1)
	r.front.cache.Touch(r.key("/"), -1)
	r.get("/")
	r.wantAsked(2)
}

func TestNotModified(t *testing.T) {
	for _, c := range []struct {
		etag, have string
		want       int
	}{
		{`"v1"`, `"v1"`, 304},
		{`"v1"`, `W/"v1"`, 304},
		{`W/"v1"`, `"v1"`, 304},
		{`"v1"`, `"v0", "v,1","v1"`, 304},
		{`"v1"`, `*`, 304},
		{`"v1"`, `"v2"`, 200},
		{`"v1"`, `"v1`, 200},
		{`"v1"`, `""`, 200},
		{`"v1"`, `"x, "v1", "`, 200},
	} {
		t.Run(c.etag+" "+c.have, func(t *testing.T) {
			want := c.want
			r := newRig(t, says("hello", "Cache-Control: max-age=60", "ETag: "+c.etag, "Content-Encoding: identity"))
			for _, cached := range []bool{false, true} {
				a := r.get("/", "If-None-Match: "+c.have)
				if a.code != want || a.header.Get("ETag") != c.etag || a.header.Get("Cache-Control") != "max-age=60" {
					t.Errorf("cached %v: answer %+v, want code %d", cached, a, want)
				}
				if want == 304 && (a.body != "" || hasAny(a.header, "Content-Type", "Content-Encoding")) {
					t.Errorf("cached %v: 304 with content: %+v", cached, a)
				}
			}
			// A client that has the response gets it into the cache for others.
			if a := r.get("/"); a.body != "hello" || a.header.Get("Age") == "" {
				t.Errorf("without a condition: %+v", a)
			}
			r.wantAsked(1)
			n, bytes := r.front.count.notModified.Load(), r.front.count.spared.Load()
			if (n == 2) != (want == 304) || bytes != 5*n {
				t.Errorf("%d answers of 304 counted, in place of %d bytes", n, bytes)
			}
		})
	}
}

func TestConditionsDoNotReachTheServer(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		if hasAny(req.Header, "If-None-Match", "If-Modified-Since") {
			w.WriteHeader(304)
			return
		}
		says("hello", "Cache-Control: max-age=60", `ETag: "v2"`)(w, req)
	})
	a := r.get("/", `If-None-Match: "v1"`, "If-Modified-Since: Mon, 02 Jan 2006 15:04:05 GMT")
	if a.code != 200 || a.body != "hello" {
		t.Errorf("answer %+v", a)
	}
}

func TestETagIsMade(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		says("body of "+req.URL.Path, "Cache-Control: max-age=60")(w, req)
	})
	for _, path := range []string{"/a", "/b"} {
		if a := r.get(path, "If-None-Match: W/"); a.code != 200 { // there is none yet
			t.Errorf("answer %+v", a)
		}
	}
	a, b := r.get("/a").header.Get("ETag"), r.get("/b").header.Get("ETag")
	if len(a) != 26 || a == b {
		t.Errorf("ETags %s and %s", a, b)
	}
	if got := r.get("/a", "If-None-Match: "+a); got.code != 304 {
		t.Errorf("answer %+v", got)
	}
	r.wantAsked(2)
}

// Of a response that varies, the variant asked for last is kept.
func TestVary(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		says("in "+req.Header.Get("Accept-Language"), "Cache-Control: max-age=60", "Vary: accept-language, X-Other")(w, req)
	})
	for i, step := range []struct {
		lang  string
		fwd   string
		asked int64
	}{
		{"en", "fwd=uri-miss", 1},
		{"en", "hit", 1},
		{"de", "fwd=vary-miss", 2},
		{"de", "hit", 2},
		{"en", "fwd=vary-miss", 3},
	} {
		a := r.get("/", "Accept-Language: "+step.lang)
		if a.body != "in "+step.lang || !strings.Contains(a.header.Get("Cache-Status"), step.fwd) {
			t.Errorf("step %d: answer %+v, want %s", i, a, step.fwd)
		}
		r.wantAsked(step.asked)
	}
	r.get("/", "Accept-Language: en", "X-Other: 1")
	r.wantAsked(4)
}

func TestHead(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		if req.Method == http.MethodGet {
			fmt.Fprint(w, "hello")
		}
	})
	r.do(http.MethodHead, "/")
	r.get("/") // the answer to HEAD was not taken for the page
	r.wantAsked(2)
	if a := r.do(http.MethodHead, "/"); a.code != 200 || a.body != "" || a.header.Get("Content-Length") != "5" || a.header.Get("Age") == "" {
		t.Errorf("answer %+v", a)
	}
	r.wantAsked(2)
}

func TestChangesRemove(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.RawQuery == "" && req.Method == http.MethodPut {
			w.WriteHeader(http.StatusConflict)
			return
		}
		says("hello", "Cache-Control: max-age=60")(w, req)
	})
	r.get("/a")
	r.do(http.MethodOptions, "/a") // changes nothing
	r.do(http.MethodPut, "/a")     // has failed
	r.get("/a")
	r.wantAsked(3)
	r.do(http.MethodPost, "/a")
	r.get("/a")
	r.wantAsked(5)
}

func TestOtherCodes(t *testing.T) {
	for code, kept := range map[int]bool{404: true, 301: true, 500: false, 302: false} {
		r := newRig(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			w.Header().Set("ETag", `"v1"`)
			w.WriteHeader(code)
			fmt.Fprint(w, "sorry")
		})
		for range 2 {
			if a := r.get("/", "If-None-Match: *"); a.code != code || a.body != "sorry" {
				t.Errorf("code %d: answer %+v", code, a)
			}
		}
		r.wantAsked(map[bool]int64{true: 1, false: 2}[kept])
	}
}
