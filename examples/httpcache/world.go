package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache"
)

// world is the server, the cache before it, and the clients, with what was
// counted.
type world struct {
	cfg    config
	origin *origin
	front  *handler
	url    *url.URL // of the cache
	client *http.Client
	stop   []func() error

	// serving counts the requests that handlers are busy with. A client may
	// have all of a response before the cache has stored it.
	serving sync.WaitGroup

	requests, received, wrong atomic.Int64 // of clients: number, bytes, number
	took                      time.Duration
}

// newWorld starts the server and the cache.
func newWorld(cfg config) (w *world, err error) {
	w = &world{cfg: cfg, origin: newOrigin(cfg.pages, cfg.maxAge)}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	cache, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: cfg.maxBytes})
	if err != nil {
		return w, err
	}
	w.stop = append(w.stop, cache.Close)
	originURL, err := w.listen(w.origin)
	if err != nil {
		return w, fmt.Errorf("start the server: %w", err)
	}
	w.front = &handler{next: w.proxy(originURL), cache: cache}
	if w.url, err = w.listen(w.front); err != nil {
		return w, fmt.Errorf("start the cache: %w", err)
	}
	w.client = &http.Client{Transport: w.transport(), Timeout: 30 * time.Second}
	return w, nil
}

// close stops everything, the last that was started first.
func (w *world) close() {
	for i := range w.stop {
		_ = w.stop[len(w.stop)-1-i]()
	}
}

// listen serves a handler at a free port of this machine.
func (w *world) listen(h http.Handler) (*url.URL, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	serve := func(rw http.ResponseWriter, r *http.Request) {
		w.serving.Add(1)
		defer w.serving.Done()
		h.ServeHTTP(rw, r)
	}
	server := &http.Server{Handler: http.HandlerFunc(serve), ReadHeaderTimeout: 10 * time.Second}
	w.stop = append(w.stop, server.Close)
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Print(err)
		}
	}()
	return &url.URL{Scheme: "http", Host: l.Addr().String()}, nil
}

// proxy returns the handler that passes requests on to the server.
func (w *world) proxy(to *url.URL) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: w.transport(),
	}
}

// transport keeps a connection open for each client.
func (w *world) transport() *http.Transport {
	t := &http.Transport{MaxIdleConnsPerHost: w.cfg.clients}
	w.stop = append(w.stop, func() error { t.CloseIdleConnections(); return nil })
	return t
}

// browse lets all clients ask at the same time.
func (w *world) browse() error {
	start := time.Now()
	errs := make([]error, w.cfg.clients)
	var wg sync.WaitGroup
	for i := range w.cfg.clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = w.browseAs(i)
		}()
	}
	wg.Wait()
	w.serving.Wait()
	w.took = time.Since(start)
	return errors.Join(errs...)
}

// browseAs makes the requests of client i. Every other client is German. All
// like the same pages best, and remember the ETag of each page that they have.
func (w *world) browseAs(i int) error {
	lang := []string{"en", "de"}[i%2]
	rnd := rand.New(rand.NewPCG(3, uint64(i)))
	popular := rand.NewZipf(rnd, 1.1, 1, uint64(w.cfg.pages-1))
	seen := make(map[int]string)
	for range w.cfg.requests {
		n := int(popular.Uint64())
		etag := seen[n]
		if rnd.IntN(2) == 0 { // it has been dropped meanwhile
			etag = ""
		}
		now, err := w.get(n, lang, etag)
		if err != nil {
			return fmt.Errorf("get page %d: %w", n, err)
		}
		seen[n] = now
	}
	return nil
}

// get asks for page n, if it is not the one with this ETag. It checks the answer
// and returns the ETag that the page has now.
func (w *world) get(n int, lang, etag string) (now string, err error) {
	req, err := http.NewRequest(http.MethodGet, w.url.JoinPath(pagePath(n)).String(), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept-Language", lang)
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	w.requests.Add(1)
	w.received.Add(int64(len(body)))
	now = resp.Header.Get("ETag")
	if !w.right(n, lang, etag, resp.StatusCode, now, body) {
		w.wrong.Add(1)
	}
	return now, nil
}

// right reports whether an answer is one that the server could have given.
func (w *world) right(n int, lang, asked string, code int, etag string, body []byte) bool {
	p := &w.origin.pages[n]
	wantBody, wantETag := p.in(lang)
	if wantETag != "" && etag != wantETag { // the cache may add one
		return false
	}
	if code == http.StatusNotModified {
		return asked != "" && asked == etag
	}
	return code == http.StatusOK && bytes.Equal(body, wantBody)
}
