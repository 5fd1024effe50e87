package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/ringcache/ringcache"
)

// server is the whole service: database, cache and HTTP server.
type server struct {
	db   *database
	shop *shop // nil without a cache
	http http.Server
	url  string
	ends []func() error
	done chan error
}

// serve runs the service until the context ends.
func serve(ctx context.Context, cfg config, out io.Writer) error {
	s, err := start(ctx, cfg, cfg.serve)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "serving at %s\n", s.url)
	if s.shop != nil {
		file := s.stats().File
		fmt.Fprintf(out, "cache: %d entries of an earlier run, %d records and %d files discarded\n",
			file.RecoveredEntries, file.DiscardedRecords, file.DiscardedFiles)
	}
	select {
	case <-ctx.Done():
	case err := <-s.done:
		return errors.Join(err, s.stop())
	}
	return s.stop()
}

// start opens everything and begins to serve.
func start(ctx context.Context, cfg config, addr string) (*server, error) {
	s := &server{done: make(chan error, 1)}
	if err := s.open(ctx, cfg, addr); err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

// open is start without the cleanup after an error.
func (s *server) open(ctx context.Context, cfg config, addr string) (err error) {
	dir := cfg.dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "shop"); err != nil {
			return err
		}
		s.ends = append(s.ends, func() error { return os.RemoveAll(dir) })
	}
	if s.db, err = openDatabase(ctx, dir, cfg.products); err != nil {
		return err
	}
	s.ends = append(s.ends, s.db.Close)
	mux := http.NewServeMux()
	if cfg.cached {
		err = s.addShop(mux, cfg, dir)
	} else {
		addAPI(mux, s.db)
	}
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	s.url = "http://" + l.Addr().String()
	s.http = http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { s.done <- s.http.Serve(l) }()
	return nil
}

// addShop puts the cache in front of the database, and adds its metrics and plots.
func (s *server) addShop(mux *http.ServeMux, cfg config, dir string) error {
	shop, err := openShop(s.db, cfg, dir)
	if err != nil {
		return err
	}
	s.shop = shop
	s.ends = append(s.ends, shop.cache.Close)
	end, err := addPages(mux, shop)
	if err != nil {
		return err
	}
	s.ends = append(s.ends, end)
	addAPI(mux, shop)
	return nil
}

// stop waits up to 10 s for running requests, then closes the cache, and finally the database,
// which loads of the cache use.
func (s *server) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close()) // ends the contexts of the requests that are left
	}
	return errors.Join(err, s.end())
}

// end closes everything in reverse order.
func (s *server) end() (err error) {
	for _, end := range slices.Backward(s.ends) {
		err = errors.Join(err, end())
	}
	return err
}

// stats returns the cache's statistics: zero without one.
func (s *server) stats() ringcache.Stats {
	if s.shop == nil {
		return ringcache.Stats{}
	}
	return s.shop.cache.Stats()
}
