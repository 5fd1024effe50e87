package ringmiddleware

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// How a call for many ends that does not end well: somebody leaves, panics, or waits for itself.

func TestCoalesce_LeaderLeaves(t *testing.T) {
	opened, calls := make(chan struct{}), make(chan *http.Request, 9)
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		calls <- req
		select {
		case <-req.Context().Done():
			http.Error(w, "you are gone", http.StatusInternalServerError)
		case <-opened:
			says("hello", fresh)(w, req)
		}
	})
	ctx, leave := context.WithCancel(context.Background())
	left := make(chan answer, 1)
	go func() { left <- r.send(ctx, http.MethodGet, "/") }()
	req := wait(t, calls)
	others := r.sendMany(3, http.MethodGet, "/")
	r.wantWaiting(3)
	leave()
	require.ErrorIs(t, wait(t, left).err, context.Canceled)
	require.Eventually(t, func() bool {
		r.m.flights.mu.Lock()
		defer r.m.flights.mu.Unlock()
		for _, f := range r.m.flights.calls {
			return !f.led
		}
		return false
	}, patience, time.Millisecond, "the server notices that the client is gone")
	require.NoError(t, req.Context().Err())
	close(opened)
	for _, a := range others() {
		require.NoError(t, a.err)
		require.Equal(t, "hello", a.body)
	}
	require.Equal(t, "hello", r.get("/").body)
	r.wantAsked(1)
}

func TestCoalesce_AllLeave(t *testing.T) {
	calls, ended := make(chan *http.Request, 9), make(chan error, 9)
	var broken atomic.Bool
	broken.Store(true)
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		calls <- req
		if broken.Load() {
			<-req.Context().Done()
			ended <- req.Context().Err()
			says("hel", fresh)(w, req)
			return
		}
		says("hello", fresh)(w, req)
	})
	ctx, leave := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { r.send(ctx, http.MethodGet, "/") })
	}
	wait(t, calls)
	r.wantWaiting(2)
	leave()
	wg.Wait()
	require.Error(t, wait(t, ended))
	r.busy.Wait()
	x := r.m.store.index(strings.ToLower(r.url) + "/")
	require.NotNil(t, x)
	require.Equal(t, passNone, x.passFrom, "nothing was learned from it")
	broken.Store(false)
	require.Equal(t, "hello", r.get("/").body)
	r.wantAsked(2)
}

func TestCoalesce_FollowerLeaves(t *testing.T) {
	r, first, _, open := startGated(t)
	ctx, leave := context.WithCancel(context.Background())
	left := make(chan answer, 1)
	go func() { left <- r.send(ctx, http.MethodGet, "/") }()
	r.wantWaiting(1)
	leave()
	require.Error(t, wait(t, left).err)
	r.wantWaiting(0)
	open()
	require.Equal(t, "1", first()[0].body)
	r.wantAsked(1)
}

// A panic breaks the connection, as it does without a cache, and nothing is stored. Those who wait
// get an error, and do not repeat it.
func TestCoalesce_Panic(t *testing.T) {
	var calm atomic.Bool
	h, calls, open := gated(func(w http.ResponseWriter, req *http.Request) {
		says("hel", fresh)(w, req)
		if !calm.Load() {
			panic("on purpose")
		}
	})
	r := newRig(t, Options{}, h)
	defer open()
	first := r.sendMany(1, http.MethodGet, "/")
	wait(t, calls)
	others := r.sendMany(3, http.MethodGet, "/")
	r.wantWaiting(3)
	open()
	require.Error(t, first()[0].err)
	for _, a := range others() {
		require.Equal(t, 500, a.code)
	}
	r.busy.Wait()
	require.Eventually(t, func() bool {
		return strings.Count(r.logged.String(), "panic serving") == 1
	}, patience, time.Millisecond)
	require.Contains(t, r.logged.String(), "on purpose")
	calm.Store(true)
	require.Equal(t, "hel", r.get("/").body)
	r.wantAsked(2)
}

// A reverse proxy panics with http.ErrAbortHandler if a response breaks off.
func TestCoalesce_AbortedIsNotKept(t *testing.T) {
	for _, flush := range []bool{false, true} {
		r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
			says("hel", fresh)(w, req)
			if flush {
				_ = http.NewResponseController(w).Flush()
			}
			panic(http.ErrAbortHandler)
		})
		for range 2 {
			require.Error(t, r.send(context.Background(), http.MethodGet, "/").err)
		}
		require.GreaterOrEqual(t, r.asked.Load(), int64(2)) // the client may try again
	}
}

// A request that has waited for too long is told so, if its client is still there.
func TestCoalesce_DeadlineOfAFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, calls, open := gated(counts(fresh))
		_, m := newMiddleware(t, Options{})
		limited := http.TimeoutHandler(m.Handler(h), time.Second, "late")
		var first, second recording
		go limited.ServeHTTP(&first, newRequest("/"))
		<-calls
		done := make(chan struct{})
		go func() { defer close(done); limited.ServeHTTP(&second, newRequest("/")) }()
		<-done
		require.Equal(t, 503, second.code)
		open()
		synctest.Wait()
	})
}

// A handler that is behind the cache twice does not wait for itself.
func TestCoalesce_NestedDoesNotWaitForItself(t *testing.T) {
	_, m := newMiddleware(t, Options{})
	h := m.Handler(m.Handler(says("page", fresh)))
	done := make(chan *httptest.ResponseRecorder)
	go func() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, newRequest("/"))
		done <- w
	}()
	require.Equal(t, "page", wait(t, done).Body.String())
}

// Pages that request each other do not wait for each other, whichever request came first.
func TestCoalesce_PagesOfPages(t *testing.T) {
	for _, length := range []int{1, 2, 5} {
		for _, crosswise := range []bool{false, true} {
			cache, m := newMiddleware(t, Options{})
			other, err := New(cache, Options{Prefix: "other"})
			require.NoError(t, err)
			var begun sync.WaitGroup
			if crosswise {
				begun.Add(length)
			}
			var servers [2]http.Handler
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var at, deep int
				_, _ = fmt.Sscanf(r.URL.Path, "/%d", &at)
				_, _ = fmt.Sscanf(r.Header.Get("Depth"), "%d", &deep)
				if crosswise && deep == 0 {
					begun.Done()
					begun.Wait()
				}
				if deep < 3*length { // a handler that never ends does not end behind a cache either
					at = (at + 1) % length
					part := httptest.NewRequest(http.MethodGet, fmt.Sprint("/", at), nil)
					part.Header.Set("Depth", fmt.Sprint(deep+1))
					servers[at%2].ServeHTTP(httptest.NewRecorder(), part.WithContext(r.Context()))
				}
				says("page", fresh)(w, r)
			})
			servers = [2]http.Handler{m.Handler(h), other.Handler(h)}
			ended := make(chan string, length)
			for at := range length {
				if at > 0 && !crosswise {
					ended <- "page"
					continue
				}
				go func() {
					rec := httptest.NewRecorder()
					req := httptest.NewRequest(http.MethodGet, fmt.Sprint("/", at), nil)
					servers[at%2].ServeHTTP(rec, req)
					ended <- rec.Body.String()
				}()
			}
			for range length {
				require.Equal(t, "page", wait(t, ended))
			}
		}
	}
}
