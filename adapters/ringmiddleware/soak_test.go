package ringmiddleware

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// world is what the handler of the soak answers from: pages with a version each, which a POST
// counts up.
type world struct {
	pages []atomic.Int64
}

const soakPages = 24

// ServeHTTP answers with who asked, what for, and the version, and a filling made of it. What
// may be kept depends on the page.
func (wd *world) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var n int
	if _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); err != nil || n >= len(wd.pages) {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Tag", fmt.Sprint("all, page-", n))
	if r.Method == http.MethodPost {
		_, _ = fmt.Fprint(w, wd.pages[n].Add(1))
		return
	}
	version := wd.pages[n].Load()
	if rand.IntN(3) > 0 {
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
	}
	who, lang := r.Header.Get("Authorization"), r.Header.Get("Accept-Language")
	h := w.Header()
	switch n % 6 {
	case 0:
		h.Set("Cache-Control", "max-age=1000")
	case 1:
		h.Set("Cache-Control", "max-age=0, stale-while-revalidate=1000")
	case 2:
		h.Set("Cache-Control", "private, max-age=1000")
	case 3:
		h.Set("Cache-Control", "max-age=1000")
		h.Set("Set-Cookie", "user="+who)
	case 4:
		h.Set("Cache-Control", "public, max-age=1000")
		h.Set("Vary", "Accept-Language, Authorization")
	case 5:
		h.Set("Cache-Control", "max-age=1000, stale-if-error=1000")
		if rand.IntN(10) == 0 {
			panic(http.ErrAbortHandler)
		}
		if rand.IntN(10) == 0 {
			http.Error(w, "broken", http.StatusServiceUnavailable)
			return
		}
	}
	if n%6 != 4 {
		h.Set("Vary", "Accept-Language")
	}
	size := 100 << (n % 9) // up to 25 KB, some of it above MaxBody
	line := fmt.Sprintf("page %d of %q in %q, version %d\n", n, who, lang, version)
	body := strings.Repeat(line, size/len(line)+1)
	half := len(body) / 2
	_, _ = io.WriteString(w, body[:half])
	if rand.IntN(5) == 0 {
		_ = http.NewResponseController(w).Flush()
	}
	_, _ = io.WriteString(w, body[half:])
}

// check tells what is wrong with an answer to a request that began when the version of the page
// was at least since.
func check(n int, who, lang string, since int64, body string) error {
	var page int
	var of, in string
	var version int64
	first, _, _ := strings.Cut(body, "\n")
	const form = "page %d of %q in %q, version %d"
	if _, err := fmt.Sscanf(first, form, &page, &of, &in, &version); err != nil {
		return fmt.Errorf("body begins with %q: %w", first, err)
	}
	size := 100 << (n % 9)
	switch {
	case page != n:
		return fmt.Errorf("page %d for page %d", page, n)
	case of != who:
		return fmt.Errorf("page %d of %q for %q", n, of, who)
	case in != lang:
		return fmt.Errorf("page %d in %q for %q", n, in, lang)
	case version < since:
		return fmt.Errorf("page %d in version %d after %d", n, version, since)
	case body != strings.Repeat(first+"\n", size/(len(first)+1)+1):
		return fmt.Errorf("page %d is not whole, or of several answers", n)
	}
	return nil
}

// soak is a run of clients that read and change pages.
type soak struct {
	*rig
	acknowledged [soakPages]atomic.Int64 // versions that a POST was answered with

	hits, collapsed, left atomic.Int64
}

// Many clients with and without names, in several languages, read and change pages, and leave
// before they have an answer. None gets what is another's, nor what is older than a change that
// was answered before it asked.
func TestSoak(t *testing.T) {
	rounds, until := 150, time.Now().Add(time.Hour)
	if d, err := time.ParseDuration(os.Getenv("RINGCACHE_SOAK")); err == nil {
		rounds, until = 1<<30, time.Now().Add(d)
	}
	wd := &world{pages: make([]atomic.Int64, soakPages)}
	o := Options{MaxBody: 20_000, StaleWhileRevalidate: time.Second}
	s := &soak{rig: newRig(t, o, wd.ServeHTTP)}
	var wg sync.WaitGroup
	for client := range 32 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(client)))
			for i := 0; i < rounds && time.Now().Before(until); i++ {
				// Half of the time all ask for the same pages, more or less at once.
				choose := rnd
				if rnd.IntN(2) == 0 {
					choose = rand.New(rand.NewPCG(2, uint64(i/8)))
				}
				kind := []int{0, 0, 0, 1, 4, 4, 5, 5, 2, 3}[choose.IntN(10)]
				n := kind + 6*min(choose.IntN(4), choose.IntN(4))
				switch rnd.IntN(40) {
				case 0:
					s.change(n)
				case 1:
					s.purge(wd, n, rnd.IntN(4))
				default:
					s.read(n, rnd)
				}
			}
		})
	}
	wg.Wait()
	s.busy.Wait()
	t.Logf("%d calls of the handler, %d hits, %d collapsed, %d left", s.asked.Load(),
		s.hits.Load(), s.collapsed.Load(), s.left.Load())
	require.Positive(t, s.hits.Load())
	require.Positive(t, s.collapsed.Load())
	require.Zero(t, s.waiting())
	require.Eventually(t, func() bool { // revalidations in the background end
		s.m.flights.mu.Lock()
		defer s.m.flights.mu.Unlock()
		return len(s.m.flights.calls) == 0
	}, patience, time.Millisecond)
}

// change makes a new version of a page.
func (s *soak) change(n int) {
	a := s.send(context.Background(), http.MethodPost, fmt.Sprint("/", n))
	var version int64
	if _, err := fmt.Sscan(a.body, &version); err != nil {
		s.t.Errorf("POST: %+v", a)
	}
	raise(&s.acknowledged[n], version)
}

// purge makes a new version of a page, and says so by tag or prefix. Records are evicted meanwhile.
func (s *soak) purge(wd *world, n, how int) {
	version := wd.pages[n].Add(1)
	url := lower(s.url)
	for i, group := range []string{"c", fmt.Sprint("tpage-", n), "tall", "p" + url} {
		if rand.IntN(8*(i+1)) == 0 {
			s.cache.Del(s.m.store.groupKey(nil, group))
		}
	}
	switch how {
	case 0:
		s.m.InvalidateTag(fmt.Sprint("page-", n))
	case 1:
		s.m.InvalidateTag("all")
	case 2:
		s.m.InvalidatePrefix(url)
	default:
		s.m.InvalidatePrefix(fmt.Sprint(url, "/", n, "/"))
	}
	raise(&s.acknowledged[n], version)
}

// read asks for a page and checks what comes.
func (s *soak) read(n int, rnd *rand.Rand) {
	who, lang := "", []string{"en", "en", "de", ""}[rnd.IntN(4)]
	header := lines("Accept-Language: " + lang)
	if rnd.IntN(6) == 0 {
		who = fmt.Sprint("user ", rnd.IntN(3))
		header = append(header, "Authorization: "+who)
	}
	if rnd.IntN(20) == 0 {
		header = append(header, "Cache-Control: no-cache")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if rnd.IntN(10) == 0 {
		time.AfterFunc(time.Duration(rnd.IntN(1000))*time.Microsecond, cancel)
	}
	since := s.acknowledged[n].Load()
	a := s.send(ctx, http.MethodGet, fmt.Sprint("/", n), header...)
	switch {
	case ctx.Err() != nil:
		s.left.Add(1)
		return
	case n%6 == 5 && (a.err != nil || a.code == 503 || a.code == 500):
		return // as the handler sometimes does, and those who wait for its panic
	case a.err != nil || a.code != 200:
		s.t.Errorf("GET: %+v", a)
		return
	case strings.HasPrefix(a.status(), "hit"):
		s.hits.Add(1)
	case strings.Contains(a.status(), "collapsed"):
		s.collapsed.Add(1)
	}
	if err := check(n, who, lang, since, a.body); err != nil {
		s.t.Errorf("%v; %s", err, a.status())
	}
}

// raise makes v at least n.
func raise(v *atomic.Int64, n int64) {
	for old := v.Load(); old < n && !v.CompareAndSwap(old, n); old = v.Load() {
	}
}

// The checker finds what it is there for.
func TestSoak_CheckBites(t *testing.T) {
	line := "page 1 of \"user 1\" in \"en\", version 5\n"
	good := strings.Repeat(line, 200/len(line)+1)
	require.NoError(t, check(1, "user 1", "en", 5, good))
	require.Error(t, check(2, "user 1", "en", 5, good))
	require.Error(t, check(1, "user 2", "en", 5, good))
	require.Error(t, check(1, "user 1", "de", 5, good))
	require.Error(t, check(1, "user 1", "en", 6, good))
	require.Error(t, check(1, "user 1", "en", 5, good[:len(good)-1]))
	require.Error(t, check(1, "user 1", "en", 5, ""))
}
