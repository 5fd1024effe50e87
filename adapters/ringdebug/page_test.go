package ringdebug

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// In a browser: from all caches to one, to its hot keys, to one of these, and to a key that is
// typed in, without a complaint in the console.
func TestPage_InABrowser(t *testing.T) {
	s, _ := busy(t)
	b := newBrowser(t)
	b.do(chromedp.Navigate(s.url))
	b.click(`a[href="?cache=pages"]`)
	b.until(`document.querySelector("h1").innerText`, "ringcache / pages")
	b.click(`button[name=seconds][value="5"]`)
	b.until(`document.querySelectorAll("#hot tr").length > 10`, "true")
	b.until(`document.querySelector("#hot td").innerText`, `"/products/0"`)
	b.click(`#hot a`)
	b.until(`document.querySelector("#found").innerText`, "In the cache")
	b.until(`document.querySelector("input[name=key]").value`, "2f70726f64756374732f30")

	for selector, value := range map[string]string{"input[name=key]": `\xff<b>`, "select": "quoted"} {
		b.do(chromedp.Evaluate[chromedp.Void](
			fmt.Sprintf("document.querySelector(%q).value = %q", selector, value)))
	}
	b.click(`form button`)
	b.until(`document.querySelector("#found + table code").innerText`, `"\xff<b>"`)
	b.until(`document.querySelector("#found").innerText`, "In the cache")
	b.until(`document.querySelectorAll("b").length`, "0")
	require.Empty(t, b.complaints())
}

// The picture in the README: RINGCACHE_UPDATE=1 makes it anew.
func TestPage_Picture(t *testing.T) {
	if os.Getenv("RINGCACHE_UPDATE") == "" {
		t.Skip("makes page.png if RINGCACHE_UPDATE is set")
	}
	s, _ := busy(t)
	b := newBrowser(t)
	b.do(chromedp.Navigate(s.url + "?cache=pages&seconds=5"))
	b.until(`document.querySelectorAll("#hot tr").length > 10`, "true")
	picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("page.png", picture, 0o644))
}

// busy returns a page of two caches, one of which has traffic before the page is asked for, and
// more while that watches.
func busy(t *testing.T) (*server, *ringcache.Cache) {
	t.Helper()
	var reads Reads
	c := newCache(t, ringcache.Options{MaxBytes: 8 << 20, TTL: time.Hour})
	random := rand.New(rand.NewPCG(1, 2))
	popular := rand.NewZipf(random, 1.1, 1, 1<<16)
	tenants := []string{"tenant-1", "tenant-2", "tenant-3"}
	traffic := func(n int) {
		for i := range n {
			k := fmt.Append(nil, "/products/", popular.Uint64())
			reads.Observe(k)
			if !c.Has(k) {
				set(t, c, string(k), strings.Repeat("x", 200+random.IntN(400)))
			}
			if i%20 == 0 {
				name := tenants[i/20%len(tenants)]
				in, k := c.Namespace(name), fmt.Append(nil, "session ", random.IntN(100))
				reads.ObserveIn(name, k)
				if !in.Has(k) {
					set(t, in, string(k), strings.Repeat("x", 100+random.IntN(900)))
				}
			}
		}
	}
	traffic(200_000)
	require.ErrorIs(t, c.Set([]byte("k"), make([]byte, 1<<20)), ringcache.ErrTooLarge)
	s, h := pageOf(t, c, &reads, Options{})
	require.NoError(t, h.Add("users", newCache(t, ringcache.Options{}), nil))
	h.during(func() {
		traffic(100_000)
		set(t, c, "\xff<b>", "value") // last, since the traffic may evict it
	})
	return s, c
}

// browser is a page in a headless Chromium.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu      sync.Mutex
	console []string
}

// newBrowser starts a Chromium. Without one the test is skipped, but not in CI.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("RINGCACHE_CI") == "" {
		t.Skip("chromium is not installed: apt-get install chromium")
	}
	require.NoError(t, err)
	const width, height = 1100, 1000
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(width, height),
		chromedp.WSURLReadTimeout(2*time.Minute))
	ctx, stop := context.WithTimeout(context.Background(), 6*time.Minute)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	b := &browser{t: t, ctx: ctx}
	b.do(chromedp.EmulateViewport(width, height))
	go b.hear(chromedp.Console(ctx))
	return b
}

// hear keeps what a developer would see in red or yellow.
func (b *browser) hear(messages iter.Seq2[chromedp.ConsoleMessage, error]) {
	for message, err := range messages {
		if err != nil {
			return // the browser has gone
		}
		switch message.Type {
		case "error", "warning", chromedp.ConsoleException:
			b.mu.Lock()
			b.console = append(b.console, message.String())
			b.mu.Unlock()
		}
	}
}

// heard returns what hear has kept by now.
func (b *browser) heard() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.console)
}

// complaints returns all that hear has kept. To be sure that it listens and is not behind, the page
// complains once more, and this is waited for.
func (b *browser) complaints() []string {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](`console.error("that is all")`))
	var all []string
	require.Eventually(b.t, func() bool {
		all = b.heard()
		return len(all) > 0 && strings.Contains(all[len(all)-1], "that is all")
	}, 2*time.Minute, 10*time.Millisecond)
	return all[:len(all)-1]
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, actions...), "console: %q", b.heard())
}

// click clicks on an element as soon as it is there.
func (b *browser) click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector)))
}

// until waits up to two minutes for an expression of the page to have a value, as a string. While
// one page gives way to the next, it may have none.
func (b *browser) until(expression, want string) {
	b.t.Helper()
	require.EventuallyWithT(b.t, func(try *assert.CollectT) {
		got, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+expression+")"))
		require.NoError(try, err)
		require.Equal(try, want, got)
	}, 2*time.Minute, 20*time.Millisecond, "%s\nconsole: %q", expression, b.heard())
}
