package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ringcache/ringcache"
)

func TestLargeBodyPasses(t *testing.T) {
	body := strings.Repeat("x", maxBody)
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		says(body+req.URL.RawQuery, "Cache-Control: max-age=60")(w, req)
	})
	for range 2 {
		for _, more := range []string{"", "1"} {
			if a := r.get("/?" + more); a.body != body+more {
				t.Errorf("a body of %d bytes, want %d", len(a.body), len(body)+len(more))
			}
		}
	}
	r.wantAsked(3) // the one that is a byte longer is not kept
}

// A response that breaks off must not become what everybody gets.
func TestBrokenResponseIsNotKept(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		says("hello", "Cache-Control: max-age=60")(w, req)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	for range 2 {
		if a := r.do(http.MethodGet, "/"); a.err == nil {
			t.Errorf("answer %+v, want an error", a)
		}
	}
	r.wantAsked(2)
}

// The handler serves as a middleware as well, before one that leaves everything
// out but a header that must not be repeated.
func TestAsMiddleware(t *testing.T) {
	var asked int
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Connection", "close")
	})
	h := &handler{next: next, cache: ringcache.New(32 * mb)}
	defer h.cache.Close()
	for _, connection := range []string{"close", ""} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code != 200 || w.Header().Get("Connection") != connection {
			t.Errorf("code %d, header %v", w.Code, w.Header())
		}
	}
	if asked != 1 {
		t.Errorf("the next handler was asked %d times, want once", asked)
	}
}

// A middleware without a proxy does not notice by itself that a handler has
// written less than it said.
func TestShortResponseIsNotKept(t *testing.T) {
	h := &handler{next: says("hello", "Cache-Control: max-age=60", "Content-Length: 10"), cache: ringcache.New(32 * mb)}
	defer h.cache.Close()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	if n := h.cache.Len(); n != 0 {
		t.Errorf("%d entries in the cache", n)
	}
}

// failingWriter is a client that is gone.
type failingWriter struct{ *httptest.ResponseRecorder }

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestUnsentResponseIsNotKept(t *testing.T) {
	h := &handler{next: says("hello", "Cache-Control: max-age=60"), cache: ringcache.New(32 * mb)}
	defer h.cache.Close()
	h.ServeHTTP(failingWriter{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, "/", nil))
	if n := h.cache.Len(); n != 0 {
		t.Errorf("%d entries in the cache", n)
	}
}

// What the server has flushed comes through at once.
func TestStreamPasses(t *testing.T) {
	received := make(chan bool)
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		says("a", "Cache-Control: max-age=60")(w, req)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-received:
		case <-req.Context().Done(): // the test has given up
		}
		fmt.Fprint(w, "b")
	})
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get(r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	close(received)
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "b" {
		t.Errorf("the rest is %q, %v", rest, err)
	}
	r.world.serving.Wait()
	if a := r.get("/"); a.body != "ab" {
		t.Errorf("answer %+v", a)
	}
	r.wantAsked(1)
}

func TestEarlyHintsAreNoAnswer(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		says("hello", "Cache-Control: max-age=60")(w, req)
	})
	for range 2 {
		if a := r.get("/"); a.code != 200 || a.body != "hello" {
			t.Errorf("answer %+v", a)
		}
	}
	r.wantAsked(1)
}

// A cache that takes nothing any more is no reason not to answer.
func TestClosedCache(t *testing.T) {
	r := newRig(t, says("hello", "Cache-Control: max-age=60"))
	r.front.cache.Close()
	for range 2 {
		if a := r.get("/"); a.body != "hello" {
			t.Errorf("answer %+v", a)
		}
	}
	r.wantAsked(2)
	if n := r.front.count.stored.Load(); n != 0 {
		t.Errorf("%d stored", n)
	}
}
