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

// waiting returns how many requests wait for the flights that are under way.
func (r *rig) waiting() int {
	r.m.flights.mu.Lock()
	defer r.m.flights.mu.Unlock()
	n := 0
	for _, f := range r.m.flights.calls {
		n += f.waiting
	}
	return n
}

// wantWaiting waits until so many requests wait.
func (r *rig) wantWaiting(n int) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.waiting() == n }, patience, time.Millisecond)
}

// sendMany sends n requests at once, and returns a function that waits for their answers.
func (r *rig) sendMany(n int, method, path string, header ...string) func() []answer {
	answers := make([]answer, n)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = r.send(context.Background(), method, path, header...) })
	}
	return func() []answer { wg.Wait(); return answers }
}

// gated returns a handler whose calls wait for the gate, and a channel that tells of each.
func gated(handler http.HandlerFunc) (h http.HandlerFunc, calls chan *http.Request, gate func()) {
	calls, opened := make(chan *http.Request, 1000), make(chan struct{})
	h = func(w http.ResponseWriter, r *http.Request) {
		calls <- r
		<-opened
		handler(w, r)
	}
	return h, calls, sync.OnceFunc(func() { close(opened) })
}

func TestCoalesce_OneCallForMany(t *testing.T) {
	h, calls, open := gated(counts(fresh))
	r := newRig(t, Options{}, h)
	defer open()
	first := r.sendMany(1, http.MethodGet, "/")
	wait(t, calls)
	others := r.sendMany(20, http.MethodGet, "/")
	r.wantWaiting(20)
	open()
	for _, a := range append(first(), others()...) {
		require.NoError(t, a.err)
		require.Equal(t, "1", a.body)
	}
	for _, a := range others() {
		require.Equal(t, "fwd=uri-miss; collapsed", a.status())
		require.Equal(t, "0", a.header.Get("Age"))
	}
	r.wantAsked(1)
}

// However requests fall, the handler is called once for what it allows to be kept.
func TestCoalesce_Storm(t *testing.T) {
	for round := range 30 {
		r := newRig(t, Options{}, counts(fresh))
		answers := r.sendMany(32, http.MethodGet, fmt.Sprint("/", round))
		for _, a := range answers() {
			require.NoError(t, a.err)
			require.Equal(t, "1", a.body)
		}
		r.wantAsked(1)
	}
}

// Those who wait have a condition each, and get the answer to it.
func TestCoalesce_ConditionsAreOfEach(t *testing.T) {
	h, calls, open := gated(says("hello", fresh, `ETag: "1"`))
	r := newRig(t, Options{}, h)
	defer open()
	first := r.sendMany(1, http.MethodGet, "/", `If-None-Match: "1"`)
	wait(t, calls)
	has := r.sendMany(1, http.MethodGet, "/", `If-None-Match: "1"`)
	hasNot := r.sendMany(1, http.MethodGet, "/", `If-None-Match: "2"`)
	r.wantWaiting(2)
	open()
	require.Equal(t, 304, first()[0].code)
	require.Equal(t, 304, has()[0].code)
	require.Equal(t, 200, hasNot()[0].code)
	require.Equal(t, "hello", hasNot()[0].body)
	r.wantAsked(1)
}

// The one whose request is with the handler goes away; the others get the response.
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

// When nobody waits any more, the handler is told, and what it then says is not kept.
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
	x, ok := r.m.store.index(strings.ToLower(r.url) + "/")
	require.True(t, ok)
	require.Equal(t, passNone, x.passFrom, "nothing was learned from it")
	broken.Store(false)
	require.Equal(t, "hello", r.get("/").body)
	r.wantAsked(2)
}

// One of those who wait goes away, and nobody else feels it.
func TestCoalesce_FollowerLeaves(t *testing.T) {
	h, calls, open := gated(counts(fresh))
	r := newRig(t, Options{}, h)
	defer open()
	first := r.sendMany(1, http.MethodGet, "/")
	wait(t, calls)
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

// What must not be shared goes to nobody else: the others ask for themselves, side by side.
func TestCoalesce_PrivateIsNotShared(t *testing.T) {
	for name, header := range map[string]string{
		"private": "Cache-Control: private, max-age=60", "no-store": "Cache-Control: no-store",
		"a cookie": "Set-Cookie: a=b", "no word": "X-Nothing: 1",
	} {
		t.Run(name, func(t *testing.T) {
			lines := lines(header)
			if name == "a cookie" {
				lines = append(lines, fresh)
			}
			h, calls, open := gated(counts(lines...))
			r := newRig(t, Options{}, h)
			defer open()
			first := r.sendMany(1, http.MethodGet, "/")
			wait(t, calls)
			others := r.sendMany(5, http.MethodGet, "/")
			r.wantWaiting(5)
			open()
			seen := map[string]bool{}
			for _, a := range append(first(), others()...) {
				require.NoError(t, a.err)
				require.NotContains(t, a.status(), "collapsed")
				seen[a.body] = true
			}
			require.Len(t, seen, 6, "each has its own")
			r.wantAsked(6)
			r.busy.Wait()

			x, ok := r.m.store.index(strings.ToLower(r.url) + "/")
			require.True(t, ok)
			require.Equal(t, anonymous, x.passFrom)
		})
	}
}

// The others need not wait for the body of what is not shared, nor for its handler's end.
func TestCoalesce_OthersGoAsSoonAsTheHeaderSaysSo(t *testing.T) {
	var n atomic.Int64
	release, first := make(chan struct{}), make(chan struct{})
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		if n.Add(1) == 1 {
			<-first
			says("a", "Cache-Control: private")(w, req)
			<-release
			return
		}
		says("b", "Cache-Control: private")(w, req)
	})
	slow := r.sendMany(1, http.MethodGet, "/")
	require.Eventually(t, func() bool { return n.Load() == 1 }, patience, time.Millisecond)
	others := r.sendMany(3, http.MethodGet, "/")
	r.wantWaiting(3)
	close(first)
	for _, a := range others() {
		require.Equal(t, "b", a.body)
	}
	close(release)
	require.Equal(t, "a", slow()[0].body)
}

// Where the last answer was not to be shared, nobody waits in vain.
func TestCoalesce_NobodyWaitsForWhatIsPrivate(t *testing.T) {
	h, calls, open := gated(says("mine", "Cache-Control: private"))
	var n atomic.Int64
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		if n.Add(1) > 1 {
			h(w, req)
			return
		}
		says("mine", "Cache-Control: private")(w, req)
	})
	defer open()
	r.get("/")
	both := r.sendMany(2, http.MethodGet, "/")
	wait(t, calls)
	wait(t, calls) // while the first one is still there
	open()
	for _, a := range both() {
		require.Equal(t, "mine", a.body)
	}
}

// A request that has looked before another one's response was stored looks again.
func TestCoalesce_LooksAgainBeforeItCalls(t *testing.T) {
	_, m := newMiddleware(t, Options{})
	calls := 0
	h := &handler{m, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		says("text", fresh, "Vary: Accept")(w, r)
	})}
	q := newQuery(newRequest("/"), "key")
	require.True(t, h.fetch(&recording{}, q, nil, nothing, "uri-miss", false))
	require.False(t, h.fetch(&recording{}, q, nil, nothing, "uri-miss", false))
	require.Equal(t, 1, calls)
	require.Empty(t, m.flights.calls)
}

// What others are answered with is not in the buffer of the one who leads.
func TestCoalesce_OldResponseIsACopy(t *testing.T) {
	_, m := newMiddleware(t, Options{})
	q := newQuery(newRequest("/"), "key")
	var follower *flight
	h := &handler{m, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x, _ := m.store.index("key")
		follower, _ = m.flights.board(r.Context(), flightKey(m.store, q, x))
		w.WriteHeader(http.StatusServiceUnavailable)
	})}
	buf := []byte("old")
	old := &found{entry: entry{code: 200, ifError: time.Hour, body: buf}}
	w := &recording{}
	require.True(t, h.fetch(w, q, old, ifError, "stale", false))
	require.Equal(t, "old", w.body.String())
	copy(buf, "new")
	require.Equal(t, "old", string(follower.result.response.body))
}

// Once an answer may be kept, requests wait for each other again.
func TestCoalesce_AfterPassing(t *testing.T) {
	var control atomic.Value
	control.Store("Cache-Control: private")
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		says("text", control.Load().(string))(w, req)
	})
	key := strings.ToLower(r.url) + "/"
	passFrom := func() audience {
		x, ok := r.m.store.index(key)
		require.True(t, ok)
		return x.passFrom
	}
	r.get("/", "Authorization: Basic x")
	require.Equal(t, everyone, passFrom(), "nothing is known about the others")
	r.get("/", "Cookie: a=b")
	require.Equal(t, unnamed, passFrom())
	r.get("/")
	require.Equal(t, anonymous, passFrom())
	control.Store(fresh)
	r.get("/")
	require.Equal(t, unnamed, passFrom())
	control.Store("Cache-Control: max-age=60, public")
	r.get("/", "Authorization: Basic x")
	require.Equal(t, passNone, passFrom())
}

// A handler that expects conditions for what is never kept gets them.
func TestCoalesce_PassingKeepsConditions(t *testing.T) {
	r := newRig(t, Options{}, func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(304)
			return
		}
		says("mine", "Cache-Control: private")(w, req)
	})
	require.Equal(t, "mine", r.get("/").body)
	require.Equal(t, 304, r.get("/", `If-None-Match: "1"`).code)
}

// Before it is known what the response depends on, all wait for one. Then each variant is
// fetched once.
func TestCoalesce_Variants(t *testing.T) {
	h, calls, open := gated(func(w http.ResponseWriter, req *http.Request) {
		says("in "+req.Header.Get("Accept-Language"), fresh, "Vary: Accept-Language")(w, req)
	})
	r := newRig(t, Options{}, h)
	defer open()
	languages := []string{"en", "de", "fr"}
	var all []func() []answer
	for i, lang := range languages {
		all = append(all, r.sendMany(4, http.MethodGet, "/", "Accept-Language: "+lang))
		if i == 0 {
			wait(t, calls)
		}
	}
	r.wantWaiting(11)
	open()
	for i, answers := range all {
		for _, a := range answers() {
			require.NoError(t, a.err)
			require.Equal(t, "in "+languages[i], a.body)
		}
	}
	r.wantAsked(3)
}

// Requests with credentials do not wait for those without, nor the other way round.
func TestCoalesce_AudiencesApart(t *testing.T) {
	h, calls, open := gated(func(w http.ResponseWriter, req *http.Request) {
		if who := req.Header.Get("Authorization"); who != "" {
			says("for "+who, "Cache-Control: private")(w, req)
			return
		}
		says("for all", fresh)(w, req)
	})
	r := newRig(t, Options{}, h)
	defer open()
	mine := r.sendMany(1, http.MethodGet, "/", "Authorization: Basic x")
	wait(t, calls)
	public := r.sendMany(5, http.MethodGet, "/")
	wait(t, calls)
	r.wantWaiting(4)
	open()
	require.Equal(t, "for Basic x", mine()[0].body)
	for _, a := range public() {
		require.Equal(t, "for all", a.body)
	}
	r.wantAsked(2)
}

// A request that wants nothing older than itself does not join one that is under way.
func TestCoalesce_NoCacheGoesAlone(t *testing.T) {
	h, calls, open := gated(counts(fresh))
	r := newRig(t, Options{}, h)
	defer open()
	first := r.sendMany(1, http.MethodGet, "/")
	wait(t, calls)
	second := r.sendMany(1, http.MethodGet, "/", "Cache-Control: no-cache")
	wait(t, calls)
	open()
	first()
	second()
	r.wantAsked(2)
}

// A panic breaks the connection, as it does without a cache, and nothing is kept. Those who
// wait ask for themselves.
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
	for _, a := range append(first(), others()...) {
		require.Error(t, a.err)
	}
	r.busy.Wait()
	require.Eventually(t, func() bool {
		return strings.Count(r.logged.String(), "panic serving") == 4
	}, patience, time.Millisecond)
	require.Contains(t, r.logged.String(), "on purpose")
	calm.Store(true)
	require.Equal(t, "hel", r.get("/").body)
	r.wantAsked(5)
}

// http.ErrAbortHandler is how a reverse proxy gives up a response that has broken off.
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

// Who has waited for too long is told so, if there is somebody left to tell.
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

// A handler that is twice behind the cache does not wait for itself.
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

// Pages that are made of each other do not wait for each other, whoever began them: the request
// that would close the circle goes to the handler, as without a cache.
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
				if deep < 3*length { // a handler that has no end of its own has none behind a cache
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
					servers[at%2].ServeHTTP(rec, httptest.NewRequest(http.MethodGet, fmt.Sprint("/", at), nil))
					ended <- rec.Body.String()
				}()
			}
			for range length {
				require.Equal(t, "page", wait(t, ended))
			}
		}
	}
}
