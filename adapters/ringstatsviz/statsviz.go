// Package ringstatsviz plots the statistics of caches of package [github.com/ringcache/ringcache]
// on the live page of [github.com/arl/statsviz], next to those of the Go runtime.
//
//	page, err := ringstatsviz.Mount(mux, map[string]*ringcache.Cache{"pages": pages})
package ringstatsviz

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/arl/statsviz"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/internal/metrics"
)

// Path is the URL path of the page.
const Path = "/debug/statsviz/"

// ErrInvalidName is returned by [Mount] when a name is empty or not valid UTF-8. Test for it with
// [errors.Is].
var ErrInvalidName = errors.New("name must be UTF-8 and not empty")

// Mount adds a page with live plots of the caches and of the Go runtime to mux at [Path]. For each
// cache it plots, under its name, the hit ratio, operations, memory, evictions and entries. If it
// returns an error, such as [ErrInvalidName], it has mounted nothing. It panics if a cache is nil,
// or if mux refuses a pattern.
//
// A goroutine reads the statistics, by default once a second, even if the page is not open, until
// the server that Mount returns is closed. Options are those of statsviz, such as
// [statsviz.SendFrequency] and further plots; [statsviz.Root] has no effect. Statsviz supports one
// page per program.
//
// The page does not keep a cache alive. Once a cache has been collected, its rates are 0, and its
// other plots keep their last values.
//
// The page exposes internals of the program, so do not make it public.
func Mount(
	mux *http.ServeMux, caches map[string]*ringcache.Cache, options ...statsviz.Option,
) (*statsviz.Server, error) {
	for _, name := range slices.Sorted(maps.Keys(caches)) {
		if caches[name] == nil {
			panic("ringstatsviz: plot caches: cache is nil")
		}
		plots, err := plotsOf(name, caches[name])
		if err != nil {
			return nil, fmt.Errorf("ringstatsviz: plot cache %q: %w", name, err)
		}
		options = append(options, plots...)
	}
	server, err := statsviz.NewServer(append(options, statsviz.Root(Path))...)
	if err != nil {
		return nil, fmt.Errorf("ringstatsviz: plot caches: %w", err)
	}
	page, err := pageOf(server)
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	server.Register(mux)
	mux.HandleFunc(Path+"{$}", serve("text/html; charset=utf-8", page))
	mux.HandleFunc(Path+"ringcache.js", serve("text/javascript; charset=utf-8", script))
	return server, nil
}

// plotsOf returns the plots of a cache as options.
func plotsOf(name string, cache *ringcache.Cache) ([]statsviz.Option, error) {
	if name == "" || !utf8.ValidString(name) {
		return nil, ErrInvalidName
	}
	s := newSampler(metrics.NewSource(cache))
	var options []statsviz.Option
	for _, p := range plots {
		built, err := p.config(name, s).Build()
		if err != nil {
			return nil, err
		}
		options = append(options, statsviz.TimeseriesPlot(built))
	}
	return options, nil
}

// script changes the page of statsviz: see its comments.
//
//go:embed ringcache.js
var script []byte

// pageOf returns the page of statsviz with the script before all others.
func pageOf(server *statsviz.Server) ([]byte, error) {
	request, err := http.NewRequest(http.MethodGet, Path, nil)
	if err != nil {
		return nil, err
	}
	answer := &recorder{header: http.Header{}}
	server.Index().ServeHTTP(answer, request)
	before, after, ok := bytes.Cut(answer.body.Bytes(), []byte("<head>"))
	if !ok {
		return nil, errors.New("ringstatsviz: plot caches: statsviz has no page")
	}
	head := []byte(`<head><script src="ringcache.js"></script>`)
	return slices.Concat(before, head, after), nil
}

// recorder records the body of a response.
type recorder struct {
	header http.Header
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
func (r *recorder) WriteHeader(int)             {}

func serve(contentType string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(body) // an error means that the client has gone
	}
}
