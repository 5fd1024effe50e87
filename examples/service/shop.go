package main

import (
	"cmp"
	"context"
	"errors"
	"log"
	"path/filepath"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/compress/s2"
)

// storedVersion is the version of what the cache's file holds: of the JSON of products and of the
// keys of the views. Raise it with every change that the program before, or the one after, would
// misread: a file of another version is emptied when it is opened.
const storedVersion = 1

// How long an answer of the database is believed. Another program may add a product that did not
// exist, so that is believed for a shorter time.
const (
	liveFor   = 10 * time.Minute
	absentFor = 10 * time.Second
)

// The decoded products that are kept on the Go heap: the most frequent ones, and the bytes of JSON
// that they were decoded from.
const (
	memoEntries = 1000
	memoBytes   = 2 << 20
)

// shop answers from the cache what the database has answered before.
type shop struct {
	db       *database
	cache    *ringcache.Cache
	lists    *ringcache.Namespace
	products *ringcache.Typed[int64, product]
	memo     *codec.Memoized[product]           // decodes products
	load     ringcache.LoadFunc[int64, product] // loadProduct
	cheap    *ringcache.Typed[int64, []product] // by category
}

// openShop makes the cache, which is warm if the directory has the file of an earlier one,
// however that ended.
func openShop(db *database, cfg config, dir string) (*shop, error) {
	options := ringcache.Options{
		MaxBytes:       cfg.cacheMB << 20,
		File:           cmp.Or(cfg.file, filepath.Join(dir, "shop.cache")),
		Version:        storedVersion,
		TTL:            liveFor,
		TTLJitter:      0.1,              // what was loaded together does not expire together
		RefreshAhead:   20 * time.Second, // what is asked for then is loaded before it expires
		RefreshTimeout: 2 * time.Second,  // a load that nobody waits for ends
		StaleIfError:   time.Hour,        // what has expired is answered while the database fails
	}
	if cfg.compress {
		options.Compressor = s2.New()
	}
	cache, err := ringcache.NewWithOptions(options)
	// ErrUnsupported: on Windows, say. ErrInUse: the process of the last deploy is still running.
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, ringcache.ErrInUse) {
		log.Printf("start with an empty cache: %v", err)
		options.File = ""
		cache, err = ringcache.NewWithOptions(options)
	}
	if err != nil {
		return nil, err
	}
	lists := cache.Namespace("lists")
	if err := lists.SetQuota(int64(options.MaxBytes / 8)); err != nil { // products keep the rest
		return nil, errors.Join(err, cache.Close())
	}
	s := &shop{
		db:    db,
		cache: cache,
		lists: lists,
		memo:  codec.Memo(codec.JSON[product](), memoEntries, memoBytes),
		cheap: ringcache.NewTyped[int64](lists, codec.JSON[[]product](),
			ringcache.TypedOptions{Prefix: "cheap:"}),
	}
	s.products = ringcache.NewTyped[int64](cache, s.memo,
		ringcache.TypedOptions{Prefix: "product:"})
	s.load = s.loadProduct
	return s, nil
}

// product returns a product, or errNoProduct. Of many that ask for it at once, one asks the
// database.
func (s *shop) product(ctx context.Context, id int64) (product, error) {
	p, err := s.products.GetOrLoad(ctx, id, s.load) // s.loadProduct here would allocate on a hit
	if errors.Is(err, ringcache.ErrAbsent) {
		return product{}, errNoProduct
	}
	return p, err
}

func (s *shop) loadProduct(ctx context.Context, id int64) (product, time.Duration, error) {
	p, err := s.db.product(ctx, id)
	if errors.Is(err, errNoProduct) {
		return product{}, absentFor, ringcache.ErrAbsent
	}
	return p, 0, err // 0: for Options.TTL
}

// cheapest returns the cheapest products of a category.
func (s *shop) cheapest(ctx context.Context, category int64) ([]product, error) {
	return s.cheap.GetOrLoad(ctx, category, s.loadCheapest)
}

func (s *shop) loadCheapest(
	ctx context.Context, category int64,
) ([]product, time.Duration, error) {
	list, err := s.db.cheapest(ctx, category)
	return list, 0, err
}

// setPrice writes a price. What was cached is forgotten after the write, also if it failed, as it
// may have been made nonetheless; a load that is under way meanwhile is not stored. It is forgotten
// before the write too: a process that is killed in between then leaves an older product only if
// that was loaded again in that moment, and for liveFor at most.
func (s *shop) setPrice(ctx context.Context, id, price int64) (product, error) {
	if err := s.forget(id); err != nil {
		return product{}, err // the cache is closed: its file would keep the older product
	}
	p, err := s.db.setPrice(ctx, id, price)
	return p, errors.Join(err, s.forget(id))
}

// forget removes what depends on a product. Which lists it is on is not known, so all of them are
// invalidated: that takes as long for a million as for one.
func (s *shop) forget(id int64) error {
	s.products.Del(id)
	return s.lists.Invalidate()
}
