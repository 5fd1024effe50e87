package ringmiddleware

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// versioned is a page with a validator, and a handler that says so if it is unchanged.
type versioned struct {
	body      string
	validator string   // a header line of the page
	renewal   []string // header lines of a 304
	asked     []string // the conditions of each call
	whole     int      // how often it has sent the page
}

func (v *versioned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tag, since := r.Header.Get("If-None-Match"), r.Header.Get("If-Modified-Since")
	v.asked = append(v.asked, tag+since)
	if v.validator == "ETag: "+tag || v.validator == "Last-Modified: "+since {
		addLines(w.Header(), v.renewal)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	v.whole++
	says(v.body, v.validator, fresh, "X-Own: 1", "X-Old: 1", "Content-Type: text/x-test")(w, r)
}

const lastModified = "Last-Modified: Fri, 31 Dec 1999 00:00:00 GMT"

// A stale response is asked for with its validator, and a 304 makes it fresh again.
func TestRevalidate_Renews(t *testing.T) {
	for _, validator := range []string{`ETag: "1"`, `ETag: W/"1"`, lastModified} {
		t.Run(validator, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &versioned{body: "hello", validator: validator, renewal: lines(
					"X-Own: 2", "Cache-Control: max-age=100", "Content-Type: text/x-other")}
				r := newTimedRig(t, Options{}, v.ServeHTTP)
				tag := r.get("/").header.Get("ETag")
				time.Sleep(61 * time.Second)
				for i, want := range []string{"fwd=stale; fwd-status=304; stored", "hit; ttl=100"} {
					a := r.get("/")
					require.Equal(t, 200, a.code)
					require.Equal(t, "hello", a.body)
					require.Equal(t, want, a.status())
					require.Equal(t, tag, a.header.Get("ETag"))
					require.Equal(t, []string{"2"}, a.header.Values("X-Own"))
					require.Equal(t, "1", a.header.Get("X-Old"))
					require.Equal(t, "text/x-test", a.header.Get("Content-Type"))
					require.Equal(t, "Sat, 01 Jan 2000 00:01:01 GMT", a.header.Get("Date"))
					require.Len(t, a.header.Values("Age"), i)
				}
				require.Equal(t, 1, v.whole)
				require.NotEmpty(t, v.asked[1])
				time.Sleep(101 * time.Second)
				v.validator = `ETag: "2"`
				v.body = "new"
				require.Equal(t, "new", r.get("/").body)
				require.Equal(t, "new", r.get("/").body)
				r.wantAsked(3)
				require.Equal(t, v.asked[1], v.asked[2], "a tag that was made here is not sent")
			})
		})
	}
}

// The client's own conditions, method and range are answered from what is valid again.
func TestRevalidate_ForOtherRequests(t *testing.T) {
	for _, c := range []struct {
		name, method string
		header       []string
		code         int
		body         string
	}{
		{"same", "GET", lines(`If-None-Match: "1"`), 304, ""},
		{"another", "GET", lines(`If-None-Match: "0"`), 200, "hello"},
		{"HEAD", "HEAD", nil, 200, ""},
		{"range", "GET", lines("Range: bytes=1-2"), 206, "el"},
		{"range of the same", "GET", lines("Range: bytes=1-2", `If-Range: "1"`), 206, "el"},
		{"reload", "GET", lines("Cache-Control: no-cache"), 200, "hello"},
		{"bounded age", "GET", lines("Cache-Control: max-age=0"), 200, "hello"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &versioned{body: "hello", validator: `ETag: "1"`}
				r := newTimedRig(t, Options{}, v.ServeHTTP)
				r.get("/")
				time.Sleep(61 * time.Second)
				a := r.do(c.method, "/", c.header...)
				require.Equal(t, c.code, a.code)
				require.Equal(t, c.body, a.body)
				require.Equal(t, "hello", r.get("/").body)
				require.Equal(t, []string{"", `"1"`}, v.asked)
				require.Equal(t, 1, v.whole)
			})
		})
	}
}

// A HEAD or a range of a response that has changed stores the new one.
func TestRevalidate_ChangedForOtherRequests(t *testing.T) {
	for _, c := range []struct {
		method, header, body string
	}{{"HEAD", "X-Nothing: 1", ""}, {"GET", "Range: bytes=0-1", "ne"}} {
		synctest.Test(t, func(t *testing.T) {
			v := &versioned{body: "old", validator: `ETag: "1"`}
			r := newTimedRig(t, Options{}, v.ServeHTTP)
			r.get("/")
			v.body, v.validator = "new", `ETag: "2"`
			time.Sleep(61 * time.Second)
			require.Equal(t, c.body, r.do(c.method, "/", c.header).body)
			require.Equal(t, "new", r.get("/").body)
			require.Equal(t, 2, v.whole)
		})
	}
}

// What a 304 forbids to store, or is about another response, answers this request only.
func TestRevalidate_NotToBeStored(t *testing.T) {
	for _, renewal := range []string{
		"Cache-Control: no-store", "Cache-Control: private", "Set-Cookie: a=b", `ETag: "2"`,
	} {
		t.Run(renewal, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &versioned{body: "hello", validator: `ETag: "1"`, renewal: lines(renewal)}
				r := newTimedRig(t, Options{}, v.ServeHTTP)
				r.get("/")
				time.Sleep(61 * time.Second)
				a := r.get("/")
				require.Equal(t, "fwd=stale; fwd-status=304", a.status())
				require.Equal(t, "hello", a.body)
				require.Equal(t, `"1"`, a.header.Get("ETag"))
				require.Equal(t, "fwd=uri-miss; fwd-status=200; stored", r.get("/").status())
				require.Equal(t, []string{"", `"1"`, ""}, v.asked)
			})
		})
	}
}

// The Age of the first response is not that of the 304.
func TestRevalidate_Age(t *testing.T) {
	for renewal, left := range map[string]string{"X-Nothing: 1": "60", "Age: 30": "30"} {
		synctest.Test(t, func(t *testing.T) {
			r := newTimedRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
				if req.Header.Get("If-None-Match") != "" {
					addLines(w.Header(), lines(renewal))
					w.WriteHeader(http.StatusNotModified)
					return
				}
				says("page", fresh, `ETag: "1"`, "Age: 50")(w, req)
			})
			require.Equal(t, "50", r.get("/").header.Get("Age"))
			require.Equal(t, "hit; ttl=10", r.get("/").status())
			time.Sleep(11 * time.Second)
			r.get("/")
			require.Equal(t, "hit; ttl="+left, r.get("/").status())
		})
	}
}

// A response may change twice in the second that Last-Modified states.
func TestRevalidate_ModifiedInTheSameSecond(t *testing.T) {
	for _, c := range []struct {
		takes, ago time.Duration // of the call; from the modification to the call
		dated      bool
		asked      string // what the second call is asked
	}{
		{0, 0, false, ""}, {0, 0, true, ""}, {0, 900 * time.Millisecond, true, ""},
		{2 * time.Second, 0, true, ""}, {2 * time.Second, 0, false, ""},
		{0, 2 * time.Second, true, "If-Modified-Since"}, {0, 2 * time.Second, false, "If-Modified-Since"},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := ""
			at := time.Now().UTC().Format(http.TimeFormat)
			time.Sleep(c.ago)
			r := newTimedRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
				if req.Header.Get("If-Modified-Since") != "" {
					asked = "If-Modified-Since"
				}
				time.Sleep(c.takes)
				if c.dated {
					w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
				}
				says("page", "Cache-Control: max-age=10", "Last-Modified: "+at)(w, req)
			})
			r.get("/")
			time.Sleep(time.Minute)
			r.get("/")
			r.wantAsked(2)
			require.Equal(t, c.asked, asked, "%+v", c)
		})
	}
}

// A 304 may say that fewer clients may share the response.
func TestRevalidate_ForFewerClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTimedRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
			if req.Header.Get("If-None-Match") != "" {
				addLines(w.Header(), lines(fresh))
				w.WriteHeader(http.StatusNotModified)
				return
			}
			says("page", "Cache-Control: max-age=60, public", `ETag: "1"`)(w, req)
		})
		r.get("/")
		time.Sleep(61 * time.Second)
		a := r.get("/", "Authorization: Basic x")
		require.Equal(t, "page", a.body)
		require.Equal(t, "fwd=stale; fwd-status=304", a.status())
		require.Equal(t, "fwd=uri-miss; fwd-status=200; stored", r.get("/").status())
	})
}

// no-cache: each request asks the handler, at once, and its answer is for nobody else. As with
// Options.TTL, requests with cookies do not share them unless the response is public.
func TestRevalidate_NoCache(t *testing.T) {
	for control, cookie := range map[string]string{
		"no-cache": "X: 1", `max-age=60, no-cache="x"`: "X: 1", "no-cache, public": "Cookie: a=b",
	} {
		t.Run(control, func(t *testing.T) {
			renewed := 0
			r := newRig(t, Options{StaleIfError: time.Hour},
				func(w http.ResponseWriter, req *http.Request) {
					if req.Header.Get("If-None-Match") == `"1"` {
						renewed++
						w.WriteHeader(http.StatusNotModified)
						return
					}
					says("hello", "Cache-Control: "+control, `ETag: "1"`)(w, req)
				})
			for range 3 {
				require.Equal(t, "hello", r.get("/", cookie).body)
			}
			r.wantAsked(3)
			require.Equal(t, 2, renewed)
			if cookie == "X: 1" {
				require.Equal(t, "fwd=bypass; fwd-status=200", r.get("/", "Cookie: a=b").status())
			}
			x := r.m.store.index(lower(r.url) + "/")
			require.Less(t, x.passFrom, passNone, "nobody waits")
		})
	}
	r := newRig(t, Options{}, counts("Cache-Control: no-cache"))
	require.Equal(t, "fwd=uri-miss; fwd-status=200", r.get("/").status(), "without a validator")
}

// A stale response is of use for a day.
func TestRevalidate_KeptForADay(t *testing.T) {
	for after, asked := range map[time.Duration]string{23 * time.Hour: `"1"`, 25 * time.Hour: ""} {
		synctest.Test(t, func(t *testing.T) {
			v := &versioned{body: "hello", validator: `ETag: "1"`}
			r := newTimedRig(t, Options{}, v.ServeHTTP)
			r.get("/")
			time.Sleep(after)
			require.Equal(t, "hello", r.get("/").body)
			require.Equal(t, []string{"", asked}, v.asked)
		})
	}
}

// Those who wait for a 304 share it, and a background call renews as well.
func TestRevalidate_Shared(t *testing.T) {
	for _, o := range []Options{{}, {StaleWhileRevalidate: time.Hour}} {
		synctest.Test(t, func(t *testing.T) {
			v := &versioned{body: "hello", validator: `ETag: "1"`}
			r := newTimedRig(t, o, func(w http.ResponseWriter, req *http.Request) {
				time.Sleep(time.Second)
				v.ServeHTTP(w, req)
			})
			r.get("/")
			time.Sleep(61 * time.Second)
			answers := r.sendMany(10, http.MethodGet, "/")
			for _, a := range answers() {
				require.Equal(t, "hello", a.body)
			}
			time.Sleep(2 * time.Second)
			require.Contains(t, r.get("/").status(), "hit; ttl=5")
			require.Equal(t, []string{"", `"1"`}, v.asked)
		})
	}
}

// A handler that fails is asked under a condition too.
func TestRevalidate_Failure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		r := newTimedRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
			if n++; n == 2 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			says(fmt.Sprint(n), fresh, `ETag: "1"`)(w, req)
		})
		r.get("/")
		time.Sleep(61 * time.Second)
		require.Equal(t, 503, r.get("/").code, "nothing allows a stale response")
		require.Equal(t, "3", r.get("/").body)
	})
}

// An encoding in front of the cache leaves the tag that was made here, so a range of the one form
// must not be taken for one of the other.
func TestRevalidate_MadeTagIsNotForRanges(t *testing.T) {
	r := newRig(t, Options{}, says("hello", fresh))
	tag := r.get("/").header.Get("ETag")
	require.Equal(t, 206, r.get("/", "Range: bytes=1-2").code)
	require.Equal(t, 200, r.get("/", "Range: bytes=1-2", "If-Range: "+tag).code)
	require.Equal(t, 304, r.get("/", "If-None-Match: "+tag).code)
}

// What only this request was refused for, such as its rate, doesn't remove the response of others.
func TestReload_ErrorsOfTheClient(t *testing.T) {
	for code, removes := range map[int]bool{
		400: false, 408: false, 429: false, 401: true, 403: true, 404: true, 410: true,
	} {
		n := 0
		r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
			if n++; n == 2 {
				w.Header().Set("Cache-Control", "no-store")
				w.WriteHeader(code)
				return
			}
			says("page", fresh)(w, req)
		})
		r.get("/")
		require.Equal(t, code, r.get("/", "Cache-Control: no-cache").code)
		require.Equal(t, 200, r.get("/").code)
		require.Equal(t, removes, n == 3, code)
	}
}
