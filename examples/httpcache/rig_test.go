package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ringcache/ringcache"
)

// rig is a cache before a server that a test writes, and a client.
type rig struct {
	*testing.T
	world world // for its servers
	front *handler
	url   string
	asked atomic.Int64 // requests that came to the server
}

// newRig starts a server and the cache before it.
func newRig(t *testing.T, origin http.HandlerFunc) *rig {
	t.Helper()
	r := &rig{T: t, world: world{cfg: config{clients: 1}}}
	t.Cleanup(r.world.close)
	server, err := r.world.listen(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.asked.Add(1)
		origin(w, req)
	}))
	if err != nil {
		t.Fatal(err)
	}
	r.front = &handler{next: r.world.proxy(server), cache: ringcache.New(32 * mb)}
	t.Cleanup(func() { r.front.cache.Close() })
	front, err := r.world.listen(r.front)
	if err != nil {
		t.Fatal(err)
	}
	r.url = front.String()
	return r
}

// answer is a response that has been read.
type answer struct {
	code   int
	header http.Header
	body   string
	err    error // the answer broke off
}

// do sends a request to a path, and waits until the cache is done with it;
// header lines are "Name: value".
func (r *rig) do(method, path string, header ...string) answer {
	r.Helper()
	req, err := http.NewRequest(method, r.url+path, nil)
	if err != nil {
		r.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Add(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	r.world.serving.Wait()
	return answer{resp.StatusCode, resp.Header, string(body), err}
}

// get is do for what does not break off.
func (r *rig) get(path string, header ...string) answer {
	r.Helper()
	a := r.do(http.MethodGet, path, header...)
	if a.err != nil {
		r.Fatal(a.err)
	}
	return a
}

// wantAsked checks how many requests have come to the server so far.
func (r *rig) wantAsked(want int64) {
	r.Helper()
	if got := r.asked.Load(); got != want {
		r.Errorf("the server was asked %d times, want %d", got, want)
	}
}

// key returns the key of a path.
func (r *rig) key(path string) []byte { return keyOf(strings.TrimPrefix(r.url, "http://"), path) }

// says returns a server that answers with header lines and a body.
func says(body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, line := range header {
			name, value, _ := strings.Cut(line, ": ")
			w.Header().Add(name, value)
		}
		fmt.Fprint(w, body)
	}
}
