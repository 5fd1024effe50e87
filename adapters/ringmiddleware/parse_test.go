package ringmiddleware

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A Kelvin sign is no k: its host has its own responses.
func TestParse_OnlyASCIIIsFolded(t *testing.T) {
	r := newRequest("/")
	r.Host = "KIOSK.example"
	require.Equal(t, "http://kiosk.example/", DefaultKey(r))
	r.Host = "\u212aiosk.example"
	require.Equal(t, "http://\u212aiosk.example/", DefaultKey(r))
	d := directivesOf(http.Header{"Cache-Control": {"No-Store, max-\u212a=1, \u00a0private"}})
	require.True(t, d.hasAny("no-store"))
	require.False(t, d.hasAny("max-k"))
	require.False(t, d.hasAny("private"), "a no-break space is no white space of HTTP")
}

func TestParse_Dates(t *testing.T) {
	want := time.Date(2050, time.August, 8, 2, 1, 18, 0, time.UTC)
	for _, value := range []string{
		"Mon, 08 Aug 2050 02:01:18 GMT", "MON, 08 AUG 2050 02:01:18 GMT",
		"Monday, 08-Aug-50 02:01:18 GMT", "Mon Aug  8 02:01:18 2050",
		"Tue, 08 Aug 2050 02:01:18 GMT",
	} {
		got, ok := date(http.Header{"Expires": {value}}, "Expires")
		require.True(t, ok, value)
		require.True(t, want.Equal(got), value)
	}
	for _, value := range []string{
		"", "0", "Mon, 08  Aug  2050 02:01:18 GMT", "Mon, 08 Aug 2050 2:01:18 GMT",
		"Mon, 8 Aug 2050 02:01:18 GMT", "Mon, 08 Aug 2050 02:01:18 UTC",
		"Mon, 08  Aug 2050 2:01:18 GMT", "Monday, 08-Aug-50 02:01:18 PST",
		"Mon Aug 8 02:01:18 2050", "Mon,  08 Aug 2050 02:01:18 GMT", "Mon,08 Aug 2050 02:01:18 GMT",
	} {
		_, ok := date(http.Header{"Expires": {value}}, "Expires")
		require.False(t, ok, value)
	}
	const good = "Mon, 08 Aug 2050 02:01:18 GMT"
	_, ok := date(http.Header{"Expires": {good, good}}, "Expires")
	require.False(t, ok, "two lines")
}

func TestParse_Age(t *testing.T) {
	for value, want := range map[string]int{
		"": 0, "7": 7, "7;foo=bar": 7, " 7 ; a=1, 9": 7, "7, 0": 7, "0, 7": 0, "7.0": 0, "-7": 0,
		"+7": 0, "abc": 0, "7a": 0, "99999999999999999999": int(maxTime / time.Second),
	} {
		got := ageOf(http.Header{"Age": {value}}, 0)
		require.Equal(t, time.Duration(want)*time.Second, got, "%q", value)
	}
}

// CDN-Cache-Control replaces Cache-Control and Expires, unless it is invalid.
func TestParse_TargetedCacheControl(t *testing.T) {
	for _, c := range []struct {
		target, control string
		life            int // in seconds; 0: the response is not stored
	}{
		{"max-age=100", "max-age=1", 100},
		{"max-age=1", "max-age=100", 1},
		{"max-age=100", "no-store", 100},
		{"max-age=100, foobar", "private", 100},
		{"max-age=99999999999", "", int(maxTime / time.Second)},
		{"max-age=10, s-maxage=100", "", 100},
		{"max-age=0", "max-age=100", 0},
		{"max-age=-1", "max-age=100", 0},
		{"no-store", "max-age=100", 0},
		{"private", "max-age=100", 0},
		{"no-cache", "max-age=100", 0},
		{`no-cache="x"`, "max-age=100", 0},
		{"no-store=?1", "max-age=100", 0},
		{"no-store=?0", "max-age=100", 0}, // it replaces Cache-Control, and has no lifetime
		{"", "max-age=100", 100},
		{`max-age="10"`, "max-age=100", 100},
		{"max-age=1.5", "max-age=100", 100},
		{"max-age", "max-age=100", 100},
		{"max-age=(10)", "max-age=100", 100},
		{"max-age=10, &&&", "max-age=100", 100},
		{"max-age=10, &&&", "no-store", 0},
		{`max-age="10"`, "no-store", 0},
		{"MaX-aGe=10", "max-age=100", 100},
		{"max-age =10", "max-age=100", 100},
	} {
		t.Run(c.target+"; "+c.control, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newTimedRig(t, Options{}, counts("CDN-Cache-Control: "+c.target,
					"Cache-Control: "+c.control, "Expires: Mon, 08 Aug 2050 02:01:18 GMT"))
				r.get("/")
				want := "fwd=uri-miss; fwd-status=200"
				if c.life > 0 {
					want = fmt.Sprintf("hit; ttl=%d", c.life)
				}
				a := r.get("/")
				require.Equal(t, want, a.status())
				require.Equal(t, c.target, a.header.Get("CDN-Cache-Control"), "it is for others too")
			})
		})
	}
}

// The lifetime of CDN-Cache-Control does not depend on Expires, and Age is subtracted from it.
func TestParse_TargetedLifetime(t *testing.T) {
	for line, want := range map[string]string{
		"Expires: Fri, 31 Dec 1999 00:00:00 GMT": "hit; ttl=3600",
		"Expires: 0":                             "hit; ttl=3600",
		"Age: 3500":                              "hit; ttl=100",
		"Age: 7200":                              "fwd=uri-miss; fwd-status=200",
	} {
		t.Run(line, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newTimedRig(t, Options{}, counts("CDN-Cache-Control: max-age=3600",
					"Cache-Control: max-age=9000", line))
				r.get("/")
				require.Equal(t, want, r.get("/").status())
			})
		})
	}
}
