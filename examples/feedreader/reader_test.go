package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mmcdole/gofeed"
	"github.com/ringcache/ringcache"
)

// rig is a reader, and a server that a test writes.
type rig struct {
	*testing.T
	reader *reader
	url    string

	mu    sync.Mutex
	asked []http.Header // of the requests so far
	got   []string      // titles that were delivered since they were last looked at
}

func newRig(t *testing.T, server http.HandlerFunc) *rig {
	t.Helper()
	r := &rig{T: t}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.asked = append(r.asked, req.Header)
		r.mu.Unlock()
		server(w, req)
	}))
	t.Cleanup(s.Close)
	r.url = s.URL
	r.reader = &reader{cache: ringcache.New(32 * mb), client: s.Client(),
		deliver: func(item *gofeed.Item) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.got = append(r.got, item.Title)
		}}
	t.Cleanup(func() { r.reader.cache.Close() })
	return r
}

// poll polls the feed, and checks what comes of it and which articles were
// delivered, by their titles, in any order.
func (r *rig) poll(want tally, titles ...string) {
	r.Helper()
	got, err := r.reader.poll(r.url)
	if err != nil {
		r.Error(err)
	}
	got.bytes = want.bytes
	if got != want {
		r.Errorf("%+v, want %+v", got, want)
	}
	r.wantDelivered(titles...)
}

func (r *rig) wantDelivered(titles ...string) {
	r.Helper()
	slices.Sort(r.got)
	slices.Sort(titles)
	if !slices.Equal(r.got, titles) {
		r.Errorf("delivered %q, want %q", r.got, titles)
	}
	r.got = nil
}

// wantAsked checks a header of the last request; "" means that it has none.
func (r *rig) wantAsked(name, want string) {
	r.Helper()
	got, ok := r.asked[len(r.asked)-1][name]
	if strings.Join(got, " ") != want || ok != (want != "") {
		r.Errorf("%s: %q, want %q", name, got, want)
	}
}

// rss returns a feed of articles whose titles and texts are given in turn.
func rss(parts ...string) string {
	var b strings.Builder
	b.WriteString(`<rss version="2.0"><channel><title>T</title>`)
	for i := 0; i < len(parts); i += 2 {
		fmt.Fprintf(&b, "<item><guid>id of %[1]s</guid><title>%[1]s</title>"+
			"<description>%[2]s</description></item>", parts[i], parts[i+1])
	}
	return b.String() + "</channel></rss>"
}

func TestUnchangedArticlesAreSkipped(t *testing.T) {
	var text string
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
	text = rss("A", "one", "B", "two")
	r.poll(tally{fetched: 1, added: 2}, "A", "B")
	r.poll(tally{fetched: 1, unchanged: 2})
	text = rss("C", "three", "A", "one", "B", "two, corrected")
	r.poll(tally{fetched: 1, added: 1, changed: 1, unchanged: 1}, "B", "C")
	r.poll(tally{fetched: 1, unchanged: 3})
	text = rss("C", "three")
	r.poll(tally{fetched: 1, unchanged: 1})
	text = rss("C", "three", "A", "one") // A was known before
	r.poll(tally{fetched: 1, unchanged: 2})
}

// The same articles in two feeds are articles of two feeds.
func TestFeedsAreApart(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, rss("A", "one")) })
	for _, path := range []string{"/x", "/y"} {
		if got, err := r.reader.poll(r.url + path); err != nil || got.added != 1 {
			t.Errorf("%s: %+v, %v", path, got, err)
		}
	}
	r.wantDelivered("A", "A")
}

// An article without a GUID is known by its link, or else by its title.
func TestArticlesWithoutGUID(t *testing.T) {
	var text string
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
	const item = "<item>%s<title>%s</title><description>%s</description></item>"
	feed := func(items ...string) string {
		return `<rss version="2.0"><channel>` + strings.Join(items, "") + "</channel></rss>"
	}
	link := "<link>http://feed.test/1</link>"
	c := fmt.Sprintf(item, "", "C", "three")
	text = feed(fmt.Sprintf(item, link, "A", "one"), fmt.Sprintf(item, "", "B", "two"), c)
	r.poll(tally{fetched: 1, added: 3}, "A", "B", "C")
	text = feed(fmt.Sprintf(item, link, "A2", "one"), fmt.Sprintf(item, "", "B", "more"), c)
	r.poll(tally{fetched: 1, changed: 2, unchanged: 1}, "A2", "B")
}

func TestConditionalRequests(t *testing.T) {
	var etag, modified string
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		h := w.Header()
		if etag != "" {
			h.Set("ETag", etag)
		}
		if modified != "" {
			h.Set("Last-Modified", modified)
		}
		if etag != "" && req.Header.Get("If-None-Match") == etag ||
			modified != "" && req.Header.Get("If-Modified-Since") == modified {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, rss("A", etag+modified))
	})
	const date = "Mon, 02 Jan 2006 15:04:05 GMT"
	for i, step := range []struct {
		etag, modified         string
		askedETag, askedSince  string
		fetched, known, change bool
	}{
		{etag: `"1"`, fetched: true},
		{etag: `"1"`, askedETag: `"1"`},
		{etag: `"1"`, askedETag: `"1"`},
		{etag: `"2"`, askedETag: `"1"`, fetched: true, known: true, change: true},
		{modified: date, askedETag: `"2"`, fetched: true, known: true, change: true},
		{modified: date, askedSince: date},
		{etag: `"3"`, modified: date, askedSince: date},
		{etag: "", modified: "", askedSince: date, fetched: true, known: true, change: true},
		{etag: "", modified: "", fetched: true, known: true},
		{etag: `"4"`, modified: date, fetched: true, known: true, change: true},
		{etag: `"4"`, modified: date, askedETag: `"4"`, askedSince: date},
	} {
		etag, modified = step.etag, step.modified
		var want tally
		var titles []string
		switch {
		case !step.fetched:
			want.notModified = 1
		case !step.known:
			want.fetched, want.added, titles = 1, 1, []string{"A"}
		case step.change:
			want.fetched, want.changed, titles = 1, 1, []string{"A"}
		default:
			want.fetched, want.unchanged = 1, 1
		}
		r.poll(want, titles...)
		r.wantAsked("If-None-Match", step.askedETag)
		r.wantAsked("If-Modified-Since", step.askedSince)
		if t.Failed() {
			t.Fatalf("in step %d", i)
		}
	}
}

// Validators are believed for a day.
func TestTrustEnds(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if req.Header.Get("If-None-Match") != "" { // but it lies
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, rss("A", fmt.Sprint(time.Now().UnixNano())))
	})
	r.poll(tally{fetched: 1, added: 1}, "A")
	r.poll(tally{notModified: 1})
	k := key('v', r.url)
	if left, ok := r.reader.cache.TTL(k); !ok || left > trust || left < trust-time.Minute {
		t.Errorf("validators are there for %v, %v; want %v", left, ok, trust)
	}
	r.reader.cache.Touch(k, -1) // as if the day had passed
	r.poll(tally{fetched: 1, changed: 1}, "A")
}

// A feed that could not be read must not be taken for known.
func TestBrokenFeedIsFetchedAgain(t *testing.T) {
	text := "<rss><channel><item>"
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprint(w, text)
	})
	if got, err := r.reader.poll(r.url); err == nil || !strings.Contains(err.Error(), r.url) ||
		got != (tally{}) {
		t.Errorf("a broken feed: %+v, %v", got, err)
	}
	text = rss("A", "one")
	r.poll(tally{fetched: 1, added: 1}, "A")
	r.wantAsked("If-None-Match", "") // nothing is left of the failure
}

func TestFeedThatBreaksOff(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, rss("A", "one"))
	})
	if got, err := r.reader.poll(r.url); err == nil {
		t.Errorf("half a feed was read: %+v", got)
	}
	r.wantDelivered()
}

func TestLargeFeedIsRefused(t *testing.T) {
	feed := rss("A", "one")
	for more, refused := range []bool{false, true} {
		r := newRig(t, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, feed, strings.Repeat(" ", maxFeed-len(feed)+more))
		})
		if got, err := r.reader.poll(r.url); (err != nil) != refused {
			t.Errorf("a feed of %d bytes: %+v, %v", maxFeed+more, got, err)
		}
	}
}

func TestFeedThatWantsToBeLeftAlone(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"max-age=60":          time.Minute,
		"public, max-age=60":  time.Minute,
		"max-age=2000000000":  longestWait,
		"max-age=0":           0,
		"max-age=-1":          0,
		"max-age=soon":        0,
		"max-age=99999999999": 0,
		"s-max-age=60":        0,
		"no-cache":            0,
		"60":                  0,
	} {
		r := newRig(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", header)
			fmt.Fprint(w, rss("A", "one"))
		})
		r.poll(tally{fetched: 1, added: 1}, "A")
		left, _ := r.reader.cache.TTL(key('w', r.url))
		if left > want || left < want-time.Minute/2 {
			t.Errorf("%s: left alone for %v, want %v", header, left, want)
		}
		if want == 0 {
			r.poll(tally{fetched: 1, unchanged: 1})
			continue
		}
		r.poll(tally{skipped: 1})
		if len(r.asked) != 1 {
			t.Errorf("%s: asked %d times", header, len(r.asked))
		}
		r.reader.cache.Touch(key('w', r.url), -1) // as if it had passed
		r.poll(tally{fetched: 1, unchanged: 1})
	}
}

// A 304 says anew how long it holds.
func TestWaitAfterNotModified(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if req.Header.Get("If-None-Match") != "" {
			w.Header().Set("Cache-Control", "max-age=60")
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, rss("A", "one"))
	})
	r.poll(tally{fetched: 1, added: 1}, "A")
	r.poll(tally{notModified: 1})
	r.poll(tally{skipped: 1})
}

// One feed that fails keeps nobody from the others.
func TestRoundGoesOn(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/1" {
			http.Error(w, "sorry", http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, rss(req.URL.Path, "one"))
	})
	urls := []string{r.url + "/0", r.url + "/1", "http://\x00", "http://127.0.0.1:0/", r.url + "/2"}
	got, err := r.reader.round(urls, 2)
	if err == nil || strings.Count(err.Error(), "poll feed") != 3 ||
		!strings.Contains(err.Error(), "500") {
		t.Errorf("error %v", err)
	}
	if got.fetched != 2 || got.added != 2 {
		t.Errorf("%+v", got)
	}
	r.wantDelivered("/0", "/2")
}

// What the cache has lost, or does not take, is delivered again, never left out.
func TestCacheMayForget(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if req.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, rss("A", "one", "B", "two"))
	})
	r.poll(tally{fetched: 1, added: 2}, "A", "B")
	r.poll(tally{notModified: 1})
	r.reader.cache.Del(key('v', r.url))
	r.reader.cache.Del(key('a', r.url, "id of A"))
	r.poll(tally{fetched: 1, added: 1, unchanged: 1}, "A")
	r.reader.cache.Close()
	for range 2 {
		r.poll(tally{fetched: 1, added: 2}, "A", "B")
	}
}

func TestDigestTellsPartsApart(t *testing.T) {
	seen := map[string]string{}
	for _, parts := range [][]string{{}, {""}, {"", ""}, {"ab", "c"}, {"a", "bc"}, {"abc"},
		{"abc", ""}} {
		for _, kind := range []byte{'a', 'v'} {
			k, name := string(key(kind, parts...)), fmt.Sprintf("%c %q", kind, parts)
			if other, ok := seen[k]; ok || len(k) != 17 {
				t.Errorf("the key of %s has %d bytes, and is that of %q", name, len(k), other)
			}
			seen[k] = name
		}
	}
}
