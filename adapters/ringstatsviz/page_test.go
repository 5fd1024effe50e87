package ringstatsviz

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/arl/statsviz"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// line is a series of a cache as the page shows it.
type line struct {
	Plot   string    `json:"plot"`
	Series string    `json:"series"`
	Values []float64 `json:"values"`
}

// lines is what a person sees of caches: the series of the plots, in order.
const lines = `[...document.querySelectorAll("#plots > div[id^='ringcache ']")].flatMap(plot =>
	plot.data.map(series => ({
		plot: plot.id, series: series.name ?? "", values: [...(series.y ?? [])],
	})))`

// still are the series that need not move under the traffic of these tests.
var still = map[string]string{
	"operations refusals too large": "all values fit",
	"operations refusals no memory": "the system refuses nothing",
	"operations refusals too short": "no TTL is below 100 ms",
	"memory memory limit":           "nobody calls Resize",
	"memory memory effective limit": "the system refuses nothing",
	"entries cold count":            "the cache has no Compressor",
	"evictions cold hits":           "the cache has no Compressor",
}

// In a browser: the page loads without an error, its plots stand still without traffic
// and move with it, and its buttons show and hide them.
func TestPage_InABrowser(t *testing.T) {
	cache := newCache(t)
	// The page begins anew with every update, so one that comes while it still draws leaves
	// the last plots as they were.
	url := serveOf(t, cache, statsviz.SendFrequency(2*time.Second))
	page := newBrowser(t, 1500, 1560) // has room for all plots of one cache
	page.do(chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS("#tag-cache + label")))

	page.until("all plots stand still", func(l line) bool {
		return len(l.Values) >= 3 && !moves(l)
	})
	traffic(t, cache)
	page.until("all plots move", func(l line) bool {
		return moves(l) || still[nameOf(l)] != ""
	})

	order := ask[[]string](page,
		`[...document.querySelectorAll("#plots > div")].map(plot => plot.id)`)
	require.Greater(t, len(order), len(plots), "Go's own are there too")
	for i, p := range plots {
		require.Equal(t, "ringcache <b>pages</b> "+p.name, order[i])
	}
	page.buttons(t, order)
	require.Empty(t, page.complaints())
}

// buttons tries those that show and hide plots.
func (p *browser) buttons(t *testing.T, order []string) {
	shown := func() int {
		return ask[int](p, `document.querySelectorAll("#plots > div:not([hidden])").length`)
	}
	click := func(tag string) {
		p.do(chromedp.Click(chromedp.CSS("#tag-" + tag + " + label")))
	}
	require.Equal(t, len(order), shown())
	click("cache")
	require.Equal(t, len(order)-len(plots), shown(), "all but those of caches")
	for _, tag := range []string{"cpu", "gc", "scheduler", "misc"} {
		click(tag)
	}
	require.Zero(t, shown())
	click("cache")
	require.Equal(t, len(plots), shown(), "only those of caches")
	p.do(chromedp.SendKeys(chromedp.CSS("#plot-search"), "hit ratio"))
	require.Equal(t, 1, shown(), "found by its title")
}

// The picture in the README: RINGCACHE_UPDATE=1 takes a minute and makes it anew.
func TestPage_Picture(t *testing.T) {
	if os.Getenv("RINGCACHE_UPDATE") == "" {
		t.Skip("makes page.png if RINGCACHE_UPDATE is set")
	}
	cache := newCache(t)
	url := serveOf(t, cache)
	page := newBrowser(t, 1500, 1560)
	page.do(chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS("#tag-cache + label")))
	time.Sleep(5 * time.Second)
	traffic(t, cache)
	time.Sleep(50 * time.Second)
	picture, err := chromedp.Run(page.ctx, chromedp.CaptureScreenshot())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("page.png", picture, 0o644))
	require.Empty(t, page.complaints())
}

// serveOf returns the address of a page with the plots of a cache.
func serveOf(t *testing.T, c *ringcache.Cache, options ...statsviz.Option) string {
	t.Helper()
	mux := http.NewServeMux()
	name := "<b>pages</b>"
	if len(options) == 0 {
		name = "pages"
	}
	page, err := Mount(mux, map[string]*ringcache.Cache{name: c}, options...)
	require.NoError(t, err)
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		assert.NoError(t, page.Close())
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL + Path
}

// traffic calls all that the plots show, in waves, until the test ends.
func traffic(t *testing.T, c *ringcache.Cache) {
	stop, done := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() {
		close(stop)
		<-done
	})
	fails := func(context.Context, []byte) ([]byte, time.Duration, error) {
		return nil, 0, errors.New("no database")
	}
	go func() {
		defer close(done)
		random := rand.New(rand.NewPCG(1, 2))
		popular := rand.NewZipf(random, 1.05, 10, 1<<20)
		value := make([]byte, 400)
		var key []byte
		for n := 0; ; n++ {
			for range 2000 + random.IntN(1000) {
				key = fmt.Append(key[:0], popular.Uint64())
				if !c.Has(key) {
					assert.NoError(t, c.Set(key, value))
				}
			}
			c.Del(key)
			key = fmt.Append(key[:0], "short-lived ", n)
			assert.NoError(t, c.SetWithTTL(key, value, 100*time.Millisecond))
			c.DeleteExpired() // drops those of earlier waves
			_, err := c.GetOrLoad(context.Background(), nil, []byte("failing"), fails)
			assert.Error(t, err)
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
}

func nameOf(l line) string {
	words := strings.Fields(l.Plot)
	return words[len(words)-1] + " " + l.Series
}

func moves(l line) bool {
	for _, v := range l.Values {
		if v != l.Values[0] {
			return true
		}
	}
	return false
}
