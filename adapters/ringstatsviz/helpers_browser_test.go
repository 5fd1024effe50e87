package ringstatsviz

import (
	"context"
	"iter"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// browser is a page in a headless Chromium.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu      sync.Mutex
	console []string
}

// newBrowser starts a Chromium. Without one the test is skipped, but not in CI.
func newBrowser(t *testing.T, width, height int) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("RINGCACHE_CI") == "" {
		t.Skip("chromium is not installed: apt-get install chromium")
	}
	require.NoError(t, err)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(width, height),
		chromedp.WSURLReadTimeout(time.Minute))
	ctx, stop := context.WithTimeout(context.Background(), 9*time.Minute)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	b := &browser{t: t, ctx: ctx}
	b.do(chromedp.EmulateViewport(int64(width), int64(height)))
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

// complaints returns all that hear has kept. To be sure that it listens and is not behind,
// the page complains once more, and this is waited for.
func (b *browser) complaints() []string {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](`console.error("that is all")`))
	var all []string
	require.Eventually(b.t, func() bool {
		all = b.heard()
		return len(all) > 0 && strings.Contains(all[len(all)-1], "that is all")
	}, time.Minute, 10*time.Millisecond)
	return all[:len(all)-1]
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, actions...), "console: %q", b.heard())
}

// ask returns the value of an expression in the page.
func ask[T any](b *browser, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	require.NoError(b.t, err, "console: %q", b.heard())
	return value
}

// until waits for a time at which all series of the cache's plots are ok, and tells what
// the page shows if that does not come within four minutes.
func (b *browser) until(what string, ok func(l line) bool) {
	b.t.Helper()
	want := 0
	for _, p := range plots {
		want += len(p.config("", new(sampler)).Series)
	}
	var all []line
	notOK := func(l line) bool { return !ok(l) }
	for range 480 {
		all = ask[[]line](b, lines)
		if len(all) == want && !slices.ContainsFunc(all, notOK) {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
	require.Fail(b.t, "not so: "+what, "console: %q\n%v", b.heard(), all)
}
