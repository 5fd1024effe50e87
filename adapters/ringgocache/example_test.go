package ringgocache_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	gocache "github.com/eko/gocache/lib/v4/cache"
	"github.com/eko/gocache/lib/v4/store"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringgocache"
)

func Example() {
	ctx := context.Background()
	cache := ringcache.New(256 << 20) // 256 MB
	defer cache.Close()
	pages := gocache.New[string](ringgocache.New(
		cache.Namespace("pages"),
		store.WithExpiration(time.Hour), // by default
	))

	shop := store.WithTags([]string{"shop"})
	if err := pages.Set(ctx, "/globes", "Three globes", shop); err != nil {
		log.Fatal(err)
	}
	page, err := pages.Get(ctx, "/globes")
	fmt.Println(page, err)

	if err := pages.Invalidate(ctx, store.WithInvalidateTags([]string{"shop"})); err != nil {
		log.Fatal(err)
	}
	_, err = pages.Get(ctx, "/globes")
	fmt.Println(errors.Is(err, store.NotFound{}))
	// Output:
	// Three globes <nil>
	// true
}
