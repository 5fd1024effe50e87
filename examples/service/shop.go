package main

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
	"github.com/ringcache/ringcache/compress/s2"
)

// How long an answer of the database is believed. Somebody who does not come by here may add a
// product that did not exist, so that is believed for a shorter time.
const (
	liveFor   = 10 * time.Minute
	absentFor = 10 * time.Second
)

// shop answers from the cache what the database has answered before.
type shop struct {
	db       *database
	cache    *ringcache.Cache
	lists    *ringcache.Namespace
	products *ringcache.Typed[int64, product]
	load     ringcache.LoadFunc[int64, product] // loadProduct
	cheap    *ringcache.Typed[int64, []product] // by category
}

// openShop makes the cache, which is warm if the directory has the file of an earlier one,
// however that ended.
func openShop(db *database, cfg config, dir string) (*shop, error) {
	options := ringcache.Options{
		MaxBytes:     cfg.cacheMB << 20,
		File:         cmp.Or(cfg.file, filepath.Join(dir, "shop.cache")),
		TTL:          liveFor,
		TTLJitter:    0.1,       // what was loaded together does not expire together
		StaleIfError: time.Hour, // what has expired is answered while the database fails
	}
	if cfg.compress {
		options.Compressor = s2.New()
	}
	cache, err := ringcache.NewWithOptions(options)
	if errors.Is(err, errors.ErrUnsupported) { // on Windows, say: each start is cold
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
		products: ringcache.NewTyped[int64](cache, codec.JSON[product](),
			ringcache.TypedOptions{Prefix: "product:"}),
		cheap: ringcache.NewTyped[int64](lists, codec.JSON[[]product](),
			ringcache.TypedOptions{Prefix: "cheap:"}),
	}
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

// setPrice writes to the database first, and then forgets what was cached before, also after an
// error, as the write may have been made nonetheless. A load that is under way meanwhile is not
// stored. Which lists a price is on is not known, so all go: that takes as long for a million
// as for one. (A process that is killed in between leaves what is older, for up to liveFor.)
func (s *shop) setPrice(ctx context.Context, id, price int64) (product, error) {
	p, err := s.db.setPrice(ctx, id, price)
	s.products.Del(id)
	return p, errors.Join(err, s.lists.Invalidate())
}
