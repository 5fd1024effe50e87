package ringmiddleware

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const stored, not = true, false

// storing is what is kept and what is not, if the same request comes twice.
var storing = []struct {
	name     string
	request  []string
	response []string
	want     bool
}{
	{"no word", nil, nil, not},
	{"max-age", nil, lines(fresh), stored},
	{"s-maxage", nil, lines("Cache-Control: s-maxage=60"), stored},
	{"upper case", nil, lines("cache-control: MAX-AGE=60"), stored},
	{"in quotes", nil, lines(`Cache-Control: max-age="60"`), stored},
	{"among others", nil, lines("Cache-Control: a, b=c , max-age=60"), stored},
	{"on a second line", nil, lines("Cache-Control: public", fresh), stored},
	{"far too long", nil, lines("Cache-Control: max-age=99999999999999999999"), stored},
	{"max-age=0", nil, lines("Cache-Control: max-age=0"), not},
	{"not a number", nil, lines("Cache-Control: max-age=soon"), not},
	{"below zero", nil, lines("Cache-Control: max-age=-60"), not},
	{"max-age within quotes", nil, lines(`Cache-Control: a="max-age=60, max-age=60"`), not},
	{"the first counts", nil, lines("Cache-Control: max-age=0, max-age=60"), not},
	{"s-maxage goes first", nil, lines("Cache-Control: max-age=60, s-maxage=0"), not},
	{"no-store", nil, lines("Cache-Control: no-store, max-age=60"), not},
	{"behind a quote", nil, lines(`Cache-Control: max-age=60, a="b\"c", no-store`), not},
	{"behind a quote without an end", nil,
		lines(`Cache-Control: max-age=60, a="b\"c, private`), not},
	{"no-store, understood", nil,
		lines("Cache-Control: must-understand, no-store, max-age=60"), not},
	{"no-cache", nil, lines("Cache-Control: no-cache, max-age=60"), not},
	{"private", nil, lines(fresh, "Cache-Control: Private"), not},
	{"private for a field", nil, lines(`Cache-Control: private="x", max-age=60`), not},
	{"must-revalidate", nil, lines("Cache-Control: max-age=60, must-revalidate"), stored},
	{"Expires ahead", nil, lines("Expires: Fri, 01 Jan 2100 00:00:00 GMT"), stored},
	{"Expires over", nil, lines("Expires: Fri, 01 Jan 2010 00:00:00 GMT"), not},
	{"Expires by its Date", nil, lines("Date: Fri, 01 Jan 2010 00:00:00 GMT",
		"Expires: Fri, 01 Jan 2010 00:01:00 GMT"), not},
	{"Expires: 0", nil, lines("Expires: 0"), not},
	{"max-age before Expires", nil, lines(fresh, "Expires: 0"), stored},
	{"Age below", nil, lines(fresh, "Age: 30"), stored},
	{"Age reached", nil, lines(fresh, "Age: 60"), not},
	{"Date long ago", nil, lines(fresh, "Date: Fri, 01 Jan 2010 00:00:00 GMT"), not},
	{"Set-Cookie", nil, lines(fresh, "Set-Cookie: a=b"), not},
	{"Vary: *", nil, lines(fresh, "Vary: Accept, *"), not},
	{"Vary", nil, lines(fresh, "Vary: Accept"), stored},
	{"Trailer", nil, lines(fresh, "Trailer: X-Sum"), not},
	{"Content-Range", nil, lines(fresh, "Content-Range: bytes 0-1/2"), not},
	{"request no-store", lines("Cache-Control: no-store"), lines(fresh), not},
	{"Pragma, which net/http reads", lines("Pragma: no-cache"), lines(fresh), not},
	{"Authorization", lines("Authorization: Basic x"), lines(fresh), not},
	{"Authorization, public", lines("Authorization: Basic x"),
		lines("Cache-Control: public, max-age=60"), stored},
	{"Authorization, s-maxage", lines("Authorization: Basic x"),
		lines("Cache-Control: s-maxage=60"), stored},
	{"Authorization, must-revalidate", lines("Authorization: Basic x"),
		lines("Cache-Control: must-revalidate, max-age=60"), stored},
	{"Cookie", lines("Cookie: a=b"), lines(fresh), stored},
	{"If-Match", lines(`If-Match: "1"`), lines(fresh), not},
	{"If-Unmodified-Since", lines("If-Unmodified-Since: Fri, 01 Jan 2100 00:00:00 GMT"),
		lines(fresh), not},
	{"Upgrade", lines("Upgrade: websocket", "Connection: Upgrade"), lines(fresh), not},
}

// Which responses are kept, by what the request and the response say (RFC 9111, section 3).
// The second request is the same as the first.
func TestRFC_Storing(t *testing.T) {
	for _, c := range storing {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Options{}, counts(c.response...))
			first, second := r.get("/", c.request...), r.get("/", c.request...)
			require.Equal(t, "1", first.body)
			if c.want {
				require.Equal(t, "1", second.body)
				require.True(t, strings.HasPrefix(second.status(), "hit; ttl="), second.status())
			} else {
				require.Equal(t, "2", second.body)
				require.NotContains(t, second.status(), "hit")
			}
			r.wantAsked(map[bool]int64{stored: 1, not: 2}[c.want])
		})
	}
}

// Options.TTL is for what says nothing, and was made for nobody in particular.
func TestRFC_TTLOption(t *testing.T) {
	for _, c := range []struct {
		name     string
		code     int
		request  []string
		response []string
		calls    int64
	}{
		{"no word", 200, nil, nil, 1},
		{"public", 200, nil, lines("Cache-Control: public"), 1},
		{"not found", 404, nil, nil, 1},
		{"found elsewhere", 302, nil, nil, 2},
		{"an error", 500, nil, nil, 2},
		{"its own word", 200, nil, lines("Cache-Control: max-age=0"), 2},
		{"Expires: 0", 200, nil, lines("Expires: 0"), 2},
		{"private", 200, nil, lines("Cache-Control: private"), 2},
		{"Cookie", 200, lines("Cookie: a=b"), nil, 2},
		{"Cookie, public", 200, lines("Cookie: a=b"), lines("Cache-Control: public"), 1},
		{"Cookie, must-revalidate", 200, lines("Cookie: a=b"),
			lines("Cache-Control: must-revalidate"), 1},
		{"Authorization", 200, lines("Authorization: Basic x"), nil, 2},
		{"Authorization, public", 200, lines("Authorization: Basic x"),
			lines("Cache-Control: public"), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Options{TTL: time.Minute}, func(w http.ResponseWriter, _ *http.Request) {
				addLines(w.Header(), c.response)
				w.WriteHeader(c.code)
			})
			for range 2 {
				require.Equal(t, c.code, r.get("/", c.request...).code)
			}
			r.wantAsked(c.calls)
		})
	}
}

// What is there for those without credentials is not for those who have some, unless the
// response says so.
func TestRFC_Audiences(t *testing.T) {
	who := map[audience][]string{
		anonymous: nil,
		unnamed:   lines("Cookie: a=b"),
		everyone:  lines("Cookie: a=b", "Authorization: Basic x"),
	}
	for response, to := range map[string]audience{
		"X-Nothing: 1":                      anonymous,
		fresh:                               unnamed,
		"Cache-Control: max-age=60, public": everyone,
	} {
		for from, request := range who {
			r := newRig(t, Options{TTL: time.Minute}, counts(response))
			r.get("/")
			want := "2"
			if from <= to {
				want = "1"
			}
			require.Equal(t, want, r.get("/", request...).body, "%s, %v", response, from)
			require.Equal(t, "1", r.get("/").body, "it is still there")
		}
	}
}

func TestRFC_StatusCodes(t *testing.T) {
	kept := map[int]bool{}
	codes := []int{200, 203, 204, 300, 301, 302, 303, 307, 308, 404, 405, 410, 414, 501}
	for _, code := range codes {
		kept[code] = true
	}
	for code := 200; code < 600; code++ {
		if http.StatusText(code) == "" {
			continue
		}
		r := newRig(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
			addLines(w.Header(), lines(fresh, `ETag: "1"`, "Location: /b"))
			w.WriteHeader(code)
			if code != 204 && code != 304 {
				_, _ = fmt.Fprint(w, "text")
			}
		})
		first, second := r.get("/"), r.get("/")
		require.Equal(t, code, first.code)
		require.Equal(t, code, second.code)
		require.Equal(t, first.body, second.body)
		require.Equal(t, first.header.Get("Content-Type"), second.header.Get("Content-Type"))
		calls := int64(2)
		if kept[code] {
			calls = 1
		}
		require.Equal(t, calls, r.asked.Load(), "code %d", code)
		if calls == 1 && code != 200 { // a condition is about a success alone
			require.Equal(t, code, r.get("/", `If-None-Match: "1"`).code)
			require.Equal(t, code, r.get("/", "Range: bytes=0-1").code)
			r.wantAsked(1)
			a := r.do(http.MethodHead, "/")
			require.Equal(t, code, a.code)
			require.Empty(t, a.body)
			r.wantAsked(1)
		}
	}
}

// A handler that changes the request, as compressors do with Accept-Encoding, must not have the
// response filed under what it has made of it.
func TestRFC_VaryIsOfTheRequestAsSent(t *testing.T) {
	for _, passed := range []bool{false, true} {
		t.Run(fmt.Sprint("after passing ", passed), func(t *testing.T) {
			keep := !passed
			r := newRig(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				lang := r.Header.Get("Accept-Language")
				r.Header.Del("Accept-Language")
				w.Header().Set("Vary", "Accept-Language")
				if keep {
					w.Header().Set("Cache-Control", "max-age=60")
				}
				_, _ = io.WriteString(w, lang)
			})
			if passed {
				r.get("/", "Accept-Language: fr")
				keep = true
			}
			require.Equal(t, "de", r.get("/", "Accept-Language: de").body)
			require.Empty(t, r.get("/").body)
			before := r.asked.Load()
			require.Equal(t, "de", r.get("/", "Accept-Language: de").body)
			r.wantAsked(before)
		})
	}
}

func TestRFC_AgeCountsFromTheHeaderOn(t *testing.T) {
	for _, date := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			takes := 30 * time.Second
			r := newTimedRig(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				if date {
					w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
				}
				w.WriteHeader(http.StatusOK)
				time.Sleep(takes)
				_, _ = io.WriteString(w, "page")
			})
			r.get("/")
			a := r.get("/")
			r.wantAsked(1)
			require.Equal(t, "30", a.header.Get("Age"))

			takes = time.Minute // stale when it is whole: kept for no time, and not for ever
			r.get("/slow")
			r.get("/slow")
			r.wantAsked(3)
		})
	}
}

func TestRFC_NamesInLowerCase(t *testing.T) {
	for name, value := range map[string]string{
		"set-cookie": "a=b", "cache-control": "private", "vary": "*",
		"content-range": "bytes 0-1/2",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{TTL: time.Minute}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()[name] = []string{value}
				_, _ = io.WriteString(w, "page")
			})
			require.Equal(t, value, r.get("/").header.Get(name))
			r.get("/")
			r.wantAsked(2)
		})
	}
}

func TestRFC_EmptyValueBeforeAnother(t *testing.T) {
	r := newRig(t, Options{TTL: time.Minute}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Set-Cookie"] = []string{"", "a=b"}
		_, _ = io.WriteString(w, "page")
	})
	r.get("/")
	r.get("/")
	r.wantAsked(2)
	require.Equal(t, everyone, audienceOf(http.Header{"Authorization": {"", "Bearer 1"}}))
}

// What outer handlers have said of a response counts for it, but not that they may encode it.
func TestStoring_OuterHeaders(t *testing.T) {
	for name, tt := range map[string]struct {
		outer http.Header
		again string // the second body, for another user
	}{
		"Vary":             {http.Header{"Vary": {"Cookie"}}, "bob"},
		"Accept-Encoding":  {http.Header{"Vary": {"accept-encoding"}}, "ann"},
		"Cache-Control":    {http.Header{"Cache-Control": {"no-store"}}, "bob"},
		"nothing":          {http.Header{}, "ann"},
		"of a later value": {http.Header{"Vary": {"Accept-Encoding, Cookie"}}, "bob"},
	} {
		_, m := newMiddleware(t, Options{TTL: time.Minute})
		h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, err := r.Cookie("user")
			require.NoError(t, err)
			w.Header().Set("Vary", "Accept")
			if name != "Cache-Control" {
				w.Header().Set("Cache-Control", "max-age=60")
			}
			_, _ = w.Write([]byte(c.Value))
		}))
		get := func(user string) *httptest.ResponseRecorder {
			w, r := httptest.NewRecorder(), newRequest("/")
			r.Header.Set("Cookie", "user="+user)
			r.Header.Set("Accept-Encoding", user)
			maps.Copy(w.Header(), tt.outer.Clone())
			w.Header().Set("Content-Type", "text/x-mine")
			h.ServeHTTP(w, r)
			require.Equal(t, "text/x-mine", w.Header().Get("Content-Type"), name)
			return w
		}
		require.Equal(t, "ann", get("ann").Body.String())
		require.Equal(t, tt.again, get("bob").Body.String(), name)
		own := get("bob").Header()["Cache-Control"][0] != "no-store"
		require.Equal(t, tt.outer["Cache-Control"] == nil, own)
	}
}
