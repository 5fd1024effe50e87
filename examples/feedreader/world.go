package main

import (
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mmcdole/gofeed"
	"github.com/ringcache/ringcache"
)

// world is a server of feeds, and two readers: one with a cache, and for
// comparison one whose cache is emptied before every round.
type world struct {
	cfg    config
	server *server
	urls   []string
	stop   []func() error

	remembers, forgets subscriber
	rounds             []tally // of the reader that remembers
}

// subscriber is a reader with its costs.
type subscriber struct {
	reader    *reader
	sum       tally
	words     atomic.Int64 // in the articles that were delivered
	text      atomic.Int64 // their bytes
	took      time.Duration
	allocated uint64 // bytes of the Go heap, those of the server included
}

// newWorld starts the server and makes the readers.
func newWorld(cfg config) (w *world, err error) {
	w = &world{cfg: cfg}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.server, err = newServer(cfg.feeds, cfg.articles); err != nil {
		return w, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return w, fmt.Errorf("start the server: %w", err)
	}
	s := &http.Server{Handler: w.server, ReadHeaderTimeout: 10 * time.Second}
	w.stop = append(w.stop, s.Close)
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Print(err)
		}
	}()
	for i := range cfg.feeds {
		w.urls = append(w.urls, "http://"+l.Addr().String()+feedPath(i))
	}
	for _, sub := range []*subscriber{&w.remembers, &w.forgets} {
		if err = w.subscribe(sub); err != nil {
			return w, err
		}
	}
	return w, nil
}

// subscribe makes a reader whose articles go to sub.
func (w *world) subscribe(sub *subscriber) error {
	cache, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: w.cfg.maxBytes})
	if err != nil {
		return err
	}
	t := &http.Transport{MaxIdleConnsPerHost: w.cfg.workers}
	w.stop = append(w.stop, cache.Close, func() error { t.CloseIdleConnections(); return nil })
	sub.reader = &reader{
		cache:   cache,
		client:  &http.Client{Transport: t, Timeout: 30 * time.Second},
		deliver: sub.work,
	}
	return nil
}

// close stops everything in reverse order.
func (w *world) close() {
	for i := range w.stop {
		_ = w.stop[len(w.stop)-1-i]()
	}
}

// work simulates the work of a program on a new article.
func (sub *subscriber) work(item *gofeed.Item) {
	words := 0
	for part := range strings.SplitSeq(item.Description+item.Content, "<") {
		_, text, ok := strings.Cut(part, ">")
		if !ok {
			text = part // before the first tag
		}
		words += len(strings.Fields(text))
	}
	sub.words.Add(int64(words))
	sub.text.Add(int64(len(item.Title) + len(item.Description) + len(item.Content)))
}

// pollAll makes all rounds. Both readers see the same feeds.
func (w *world) pollAll() error {
	for round := range w.cfg.rounds {
		if round > 0 {
			if err := w.server.advance(); err != nil {
				return err
			}
		}
		t, err := w.poll(&w.remembers)
		if err != nil {
			return err
		}
		w.rounds = append(w.rounds, t)
		w.forgets.reader.cache.Reset()
		if _, err := w.poll(&w.forgets); err != nil {
			return err
		}
	}
	return nil
}

// poll makes a round of one reader.
func (w *world) poll(sub *subscriber) (tally, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	t, err := sub.reader.round(w.urls, w.cfg.workers)
	sub.took += time.Since(start)
	runtime.ReadMemStats(&after)
	sub.allocated += after.TotalAlloc - before.TotalAlloc
	sub.sum.add(t)
	return t, err
}
