package ringmiddleware

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

func TestPurge_Paths(t *testing.T) {
	for key, want := range map[string]string{
		"https://host/":             "https://host",
		"https://host/items":        "https://host",
		"https://host/items?page=1": "https://host https://host/items",
		"https://host/items?a=/b/c": "https://host https://host/items",
		"https://host/items/7":      "https://host https://host/items",
		"https://host//items//7/":   "https://host https://host//items https://host//items//7",
		"https://host/a\n/x/a":      "https://host https://host/a",
		"https://host?a":            "https://host",
		"id-7":                      "",
		"users/7/page":              "users users/7",
		"/go?to=http://x/y":         "/go",
		"a/http://x/y":              "a a/http: a/http://x",
		"":                          "",
		"://":                       "",
		"1/2/3/4/5/6/7/8/9/10": "1 1/2 1/2/3 1/2/3/4 1/2/3/4/5 1/2/3/4/5/6 1/2/3/4/5/6/7 " +
			"1/2/3/4/5/6/7/8",
	} {
		groups := pathsOf(key)
		for i, group := range groups {
			require.Equal(t, "p", group[:1])
			groups[i] = group[1:]
		}
		require.Equal(t, want, strings.Join(groups, " "), key)
	}
}

// A tag in either header; in all variants; and nothing else.
func TestPurge_Tag(t *testing.T) {
	tags := map[string][]string{
		"/a": lines("Cache-Tag: red, blue"), "/b": lines("Surrogate-Key: blue green"),
		"/c": lines("Cache-Tag: Red", "Cache-Tag: green", "Surrogate-Key: red"), "/d": nil,
	}
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		says("page", append(tags[req.URL.Path], fresh, "Vary: X-A")...)(w, req)
	})
	left := func() (hits string) {
		for _, path := range []string{"/a", "/b", "/c", "/d"} {
			for _, variant := range []string{"X-A: 1", "X-A: 2"} {
				if strings.HasPrefix(r.get(path, variant).status(), "hit") {
					hits += path
				}
			}
		}
		return hits
	}
	left()
	require.Equal(t, "/a/a/b/b/c/c/d/d", left())
	require.True(t, r.m.InvalidateTag("red"))
	require.Equal(t, "/b/b/d/d", left())
	require.Equal(t, "/a/a/b/b/c/c/d/d", left())
	require.True(t, r.m.InvalidateTag("green"))
	require.Equal(t, "/a/a/d/d", left())
	require.Equal(t, "/a/a/b/b/c/c/d/d", left())
	for _, tag := range []string{"RED", "red, blue", "", "black"} {
		require.False(t, r.m.InvalidateTag(tag))
	}
	require.Equal(t, "/a/a/b/b/c/c/d/d", left())
	require.Equal(t, []string{"red, blue"}, r.get("/a").header.Values("Cache-Tag"))
}

func TestPurge_Prefix(t *testing.T) {
	pages := strings.Fields("/ /items /items?page=1 /items/ /items/7 /items/7/x?y /items2")
	for prefix, want := range map[string]string{
		"":               "",
		"/":              "",
		"/items":         "/ /items2",
		"/items/":        "/ /items2",
		"/items?page=2":  "/ /items2",
		"/items/7":       "/ /items /items?page=1 /items/ /items2",
		"/items/7/x":     "/ /items /items?page=1 /items/ /items/7 /items2",
		"/items/7/x/y/z": strings.Join(pages, " "),
		"/item":          strings.Join(pages, " "),
	} {
		r := newRig(t, Options{}, counts(fresh))
		for _, page := range pages {
			r.get(page)
		}
		r.m.InvalidatePrefix(lower(r.url) + prefix)
		var left []string
		for _, page := range pages {
			if r.get(page, "Cache-Control: only-if-cached").code == 200 {
				left = append(left, page)
			}
		}
		require.Equal(t, want, strings.Join(left, " "), prefix)
	}
	deep := strings.Repeat("/1", 20)
	r := newRig(t, Options{}, counts(fresh))
	r.get(deep)
	require.True(t, r.m.InvalidatePrefix(lower(r.url)+deep), "with all from the eighth on")
	require.Equal(t, "2", r.get(deep).body)
}

// A call that runs during an invalidation: what it brings is neither stored nor given to those who
// ask later. If something else was invalidated, it is stored if its tag is older than the call.
func TestPurge_DuringACall(t *testing.T) {
	for _, c := range []struct {
		name, before, purge string
		stored              bool
	}{
		{"its tag, new", "", "red", false},
		{"its tag, old", "red", "red", false},
		{"another, and a new one", "", "black", false},
		{"another, and an old one", "red", "black", true},
		{"none", "", "", true},
		{"its path", "red", "path", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, calls, open := gated(counts(fresh, "Cache-Tag: red"))
			r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
				if req.URL.Path == "/before" {
					says("page", fresh, "Cache-Tag: "+c.before)(w, req)
					return
				}
				h(w, req)
			})
			defer open()
			r.get("/before")
			early := r.sendMany(1, http.MethodGet, "/a")
			wait(t, calls)
			switch c.purge {
			case "":
			case "path":
				r.m.InvalidatePrefix(lower(r.url))
			default:
				r.m.InvalidateTag(c.purge)
			}
			late := r.sendMany(1, http.MethodGet, "/a")
			if c.purge == "" {
				r.wantWaiting(1)
			} else {
				wait(t, calls) // it does not wait for the early one
			}
			open()
			status := early()[0].status()
			require.Equal(t, c.stored, strings.HasSuffix(status, "; stored"), status)
			late()
		})
	}
}

// With too many tags, or one that is too long, a response is not stored: it could not be removed.
func TestPurge_TooManyTags(t *testing.T) {
	for tags, stored := range map[string]bool{
		numbered(maxTags): true, numbered(maxTags + 1): false,
		strings.Repeat("x", 70_000): false,
	} {
		_, m := newMiddleware(t, Options{})
		h := m.Handler(says("page", fresh, "Cache-Tag: "+tags))
		var w recording
		h.ServeHTTP(&w, newRequest("/"))
		require.Equal(t, "page", w.body.String())
		require.Equal(t, stored, strings.HasSuffix(w.header.Get("Cache-Status"), "; stored"))
	}
}

// Such a response ends the stored one, which would otherwise be served until its pauses end.
func TestPurge_TooManyTagsAfterAFailure(t *testing.T) {
	for _, while := range []time.Duration{0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			f := failing{tag: "Cache-Tag: 1"}
			o := Options{StaleIfError: time.Hour, StaleWhileRevalidate: while}
			r := newTimedRig(t, o, f.ServeHTTP)
			r.get("/")
			time.Sleep(2 * time.Minute)
			f.code.Store(503)
			for range 2 {
				require.Equal(t, "page", r.get("/").body)
				time.Sleep(firstPause + slow)
			}
			f.tag = "Cache-Tag: " + numbered(maxTags+1)
			f.code.Store(0)
			r.get("/")
			time.Sleep(3 * time.Second)
			r.get("/")
			time.Sleep(2 * slow)
			require.Equal(t, "fwd=uri-miss; fwd-status=200", r.get("/").status())
		})
	}
}

func numbered(n int) string {
	var tags []string
	for i := range n {
		tags = append(tags, fmt.Sprint(i))
	}
	return strings.Join(tags, ",")
}

// Whatever is evicted, in whatever order, an invalidated response does not come back.
func TestPurge_Evictions(t *testing.T) {
	var version atomic.Int64
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		says(fmt.Sprint(version.Load()), fresh, "Cache-Tag: red")(w, req)
	})
	records := []string{"c", "tred", "p" + lower(r.url)}
	for evicted := range 1 << (2 * len(records)) {
		r.get("/")
		before := r.get("/").body
		for i, group := range records {
			if evicted>>i&1 == 1 {
				r.cache.Del(r.m.store.groupKey(nil, group))
			}
		}
		version.Add(1)
		r.m.InvalidateTag("red")
		for i, group := range records {
			if evicted>>(len(records)+i)&1 == 1 {
				r.cache.Del(r.m.store.groupKey(nil, group))
			}
		}
		require.NotEqual(t, before, r.get("/").body)
		require.Contains(t, r.get("/").status(), "hit")
	}
}

// An invalidation covers calls that began before it, even while a request makes the group's record.
func TestPurge_WhileAGroupIsMade(t *testing.T) {
	for ticks := range 2 {
		var s store
		var called clock
		left := -1 // how many ticks of the clock until the invalidation
		cache, err := ringcache.NewWithOptions(ringcache.Options{
			MaxBytes: 32 << 20,
			OnRemove: func(r ringcache.Removal) {
				if string(r.Key) != string(s.groupKey(nil, "c")) {
					return
				}
				if left--; left == -1 {
					called = s.clock()
					s.purge("tred")
				}
			},
		})
		require.NoError(t, err)
		s.cache = cache
		s.tick(false)
		left = ticks
		_, err = s.makeStamp("tred")
		require.NoError(t, err)
		require.NotZero(t, called, "the invalidation was not in between")
		_, ok := s.stamps([]string{"tred"}, called)
		require.False(t, ok, ticks)
		require.NoError(t, cache.Close())
	}
}

// A clock that is evicted during a call may begin again at an earlier time.
func TestPurge_ClockLostAndSetBack(t *testing.T) {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	s := store{cache: cache}
	called := s.tick(false)
	called.stamp += uint64(time.Hour)
	require.NoError(t, cache.Set(s.groupKey(nil, "c"), called.encode()))
	require.Equal(t, called, s.clock())

	cache.Del(s.groupKey(nil, "c"))
	s.purge("tred")
	_, err := s.makeStamp("tred")
	require.NoError(t, err)
	now := s.clock()
	require.Less(t, now.stamp, called.stamp)
	now.stamp = called.stamp + 1 // when the call ends
	require.NoError(t, cache.Set(s.groupKey(nil, "c"), now.encode()))
	_, ok := s.stamps([]string{"tred"}, called)
	require.False(t, ok)
}
