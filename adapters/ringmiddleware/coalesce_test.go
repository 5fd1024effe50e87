package ringmiddleware

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
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

// startGated starts a server with a gated handler of fresh responses, and sends it a first
// request, which waits at the gate. The gate is open when the test ends.
func startGated(t *testing.T) (
	r *rig, first func() []answer, calls chan *http.Request, open func(),
) {
	t.Helper()
	h, calls, open := gated(counts(fresh))
	r = newRig(t, Options{}, h)
	t.Cleanup(open)
	first = r.sendMany(1, http.MethodGet, "/")
	wait(t, calls)
	return r, first, calls, open
}

func TestCoalesce_OneCallForMany(t *testing.T) {
	r, first, _, open := startGated(t)
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
// When nobody waits any more, the handler is told, and what it then says is not kept.
// One of those who wait goes away, and nobody else feels it.
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

			x := r.m.store.index(strings.ToLower(r.url) + "/")
			require.NotNil(t, x)
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
	require.True(t, h.fetch(&recording{}, q, nil, nil, nothing, "uri-miss", false))
	require.False(t, h.fetch(&recording{}, q, nil, nil, nothing, "uri-miss", false))
	require.Equal(t, 1, calls)
	require.Empty(t, m.flights.calls)
}

// What others are answered with is not in the buffer of the one who leads.
func TestCoalesce_OldResponseIsACopy(t *testing.T) {
	_, m := newMiddleware(t, Options{})
	q := newQuery(newRequest("/"), "key")
	var follower *flight
	h := &handler{m, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := m.store.index("key")
		follower, _ = m.flights.board(r.Context(), flightKey(m.store, q, x), m.store.clock().purged)
		w.WriteHeader(http.StatusNotModified)
	})}
	buf := []byte("old")
	old := &found{entry: entry{
		code: 200, validator: tagged, lifetime: time.Hour, body: buf,
		header: []field{{"Cache-Control", "max-age=60"}, {"Etag", `"1"`}},
	}}
	w := &recording{}
	require.True(t, h.fetch(w, q, nil, old, ifUnchanged, "stale", false))
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
		x := r.m.store.index(key)
		require.NotNil(t, x)
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
	r, first, calls, open := startGated(t)
	second := r.sendMany(1, http.MethodGet, "/", "Cache-Control: no-cache")
	wait(t, calls)
	open()
	first()
	second()
	r.wantAsked(2)
}
