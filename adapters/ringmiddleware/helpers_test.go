package ringmiddleware

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
)

// rig is a server with a cache before its handler, and a client: on 127.0.0.1, or over pipes in
// memory, in which a test may let time pass.
type rig struct {
	t      *testing.T
	m      *Middleware
	cache  *ringcache.Cache
	url    string
	client *http.Client
	asked  atomic.Int64   // calls of the handler
	busy   sync.WaitGroup // requests that the server is at
	logged lockedBuilder  // by the server
}

func newMiddleware(t *testing.T, o Options) (*ringcache.Cache, *Middleware) {
	t.Helper()
	cache := ringcache.New(32 << 20)
	t.Cleanup(func() { require.NoError(t, cache.Close()) })
	o.Status = "test"
	m, err := New(cache, o)
	require.NoError(t, err)
	return cache, m
}

// front counts the calls of the handler, and the requests.
func (r *rig) front(handler http.HandlerFunc) http.Handler {
	inner := r.m.Handler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.asked.Add(1)
		handler(w, req)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.busy.Add(1)
		defer r.busy.Done()
		inner.ServeHTTP(w, req)
	})
}

// newRig starts a server on 127.0.0.1.
func newRig(t *testing.T, o Options, handler http.HandlerFunc) *rig {
	t.Helper()
	r := &rig{t: t}
	r.cache, r.m = newMiddleware(t, o)
	server := httptest.NewUnstartedServer(r.front(handler))
	server.Config.ErrorLog = log.New(&r.logged, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	r.url, r.client = server.URL, server.Client()
	r.client.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}
	return r
}

// newTimedRig starts a server in a bubble of testing/synctest.
func newTimedRig(t *testing.T, o Options, handler http.HandlerFunc) *rig {
	t.Helper()
	r := &rig{t: t, url: "http://in.memory"}
	r.cache, r.m = newMiddleware(t, o)
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: r.front(handler), ErrorLog: log.New(&r.logged, "", 0)}
	go func() { _ = server.Serve(l) }()
	transport := &http.Transport{DialContext: l.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		require.NoError(t, server.Close())
	})
	r.client = &http.Client{Transport: transport}
	return r
}

// pipes is a listener whose connections are pipes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.once.Do(func() { close(p.closed) }); return nil }

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "in memory", Net: "unix"} }

// answer is a response that has been read.
type answer struct {
	code   int
	header http.Header
	body   string
	err    error // the answer broke off, or never came
}

// status is what the cache says has happened.
func (a answer) status() string {
	return strings.TrimPrefix(a.header.Get("Cache-Status"), "test; ")
}

// send sends a request; header lines are "Name: value".
func (r *rig) send(ctx context.Context, method, path string, header ...string) answer {
	req, err := http.NewRequestWithContext(ctx, method, r.url+path, nil)
	if err != nil {
		return answer{err: err}
	}
	addLines(req.Header, header)
	resp, err := r.client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body), err}
}

// do is send of what does not break off, and waits until the server is done with it: a client
// may have all of a response before the cache has it.
func (r *rig) do(method, path string, header ...string) answer {
	r.t.Helper()
	a := r.send(context.Background(), method, path, header...)
	require.NoError(r.t, a.err)
	r.busy.Wait()
	return a
}

func (r *rig) get(path string, header ...string) answer {
	r.t.Helper()
	return r.do(http.MethodGet, path, header...)
}

// wantAsked checks how often the handler was called so far.
func (r *rig) wantAsked(want int64) {
	r.t.Helper()
	require.Equal(r.t, want, r.asked.Load(), "calls of the handler")
}

func addLines(h http.Header, lines []string) {
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
}

// says returns a handler that answers with a body and header lines.
func says(body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		addLines(w.Header(), header)
		_, _ = fmt.Fprint(w, body)
	}
}

// counts returns a handler that answers with the number of the call.
func counts(header ...string) http.HandlerFunc {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		says(fmt.Sprint(n.Add(1)), header...)(w, r)
	}
}

// patience is how long a test waits for what has to happen.
const patience = 20 * time.Second

// wait waits for a channel.
func wait[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		require.FailNow(t, "it did not happen")
		panic("not reached")
	}
}

// lockedBuilder is a log.
type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuilder) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuilder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var errGone = errors.New("the client is gone")

// recording is a client that has a code and a body.
type recording struct {
	header http.Header
	code   int
	body   strings.Builder
	gone   bool
}

func (w *recording) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

func (w *recording) WriteHeader(code int) { w.code = code }

func (w *recording) Write(p []byte) (int, error) {
	if w.gone {
		return 0, errGone
	}
	return w.body.Write(p)
}

func newRequest(path string) *http.Request {
	r, err := http.NewRequest(http.MethodGet, "http://host"+path, nil)
	if err != nil {
		log.Panic(err)
	}
	return r
}
