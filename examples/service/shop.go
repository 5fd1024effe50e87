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

// storedVersion is the version of the data in the cache's file: the JSON of products and the keys
// of the views. Increment it with every change that an older or newer version of the program would
// misread: a file with another version is emptied when it is opened.
const storedVersion = 1

// How long results of the database are cached. Another program may add a product that did not
// exist, so a missing product is cached for a shorter time.
const (
	liveFor   = 10 * time.Minute
	absentFor = 10 * time.Second
)

// The most products that are kept decoded on the Go heap, and the most bytes of their JSON.
const (
	memoEntries = 1000
	memoBytes   = 2 << 20
)

// shop is the database with a cache in front of it.
type shop struct {
	db       *database
	cache    *ringcache.Cache
	lists    *ringcache.Cache
	products *ringcache.Typed[int64, product]
	memo     *codec.Memoized[product]           // decodes products
	load     ringcache.LoadFunc[int64, product] // loadProduct
	cheap    *ringcache.Typed[int64, []product] // by category
}

// openShop creates the cache. It is usually warm if the directory contains the file of an earlier
// process, however that process ended.
func openShop(db *database, cfg config, dir string) (*shop, error) {
	options := ringcache.Options{
		MaxBytes:       cfg.cacheMB << 20,
		File:           cmp.Or(cfg.file, filepath.Join(dir, "shop.cache")),
		Version:        storedVersion,
		TTL:            liveFor,
		TTLJitter:      0.1,                   // entries loaded together rarely expire together
		RefreshAhead:   20 * time.Second,      // entries read in that time are loaded again
		RefreshTimeout: 2 * time.Second,       // a load that nobody waits for ends
		StaleIfError:   time.Hour,             // expired values are served while the database fails
		SoftTimeout:    50 * time.Millisecond, // and if it takes longer
	}
	if cfg.compress {
		options.Compressor = s2.New()
	}
	cache, err := ringcache.NewWithOptions(options)
	// ErrUnsupported: for example on Windows. ErrInUse: another process uses the file.
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, ringcache.ErrInUse) {
		log.Printf("start with an empty cache: %v", err)
		options.File = ""
		cache, err = ringcache.NewWithOptions(options)
	}
	if err != nil {
		return nil, err
	}
	lists := cache.Namespace("lists")
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

// product returns a product, or errNoProduct. Of many callers that ask for it at once, usually one
// asks the database.
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

// setPrice writes a price. It invalidates the cached data after the commit, even if that failed,
// because the price may have been written nonetheless; a load that is running at that time is not
// stored. It also invalidates before the commit: if the process is killed in between, an outdated
// product remains only if it was loaded again in that interval. A write that fails earlier, as all
// do while the database is down, leaves what readers still get. No write may come after the cache
// was closed: its file would keep the older product.
func (s *shop) setPrice(ctx context.Context, id, price int64) (product, error) {
	return s.db.writePrice(ctx, id, price, func() { s.forget(id) })
}

// forget removes the cached data that depends on a product. It is not known which lists contain the
// product, so all lists are removed.
func (s *shop) forget(id int64) {
	s.products.Del(id)
	s.lists.Reset()
}
