// Quickstart reads users through a cache, and deletes one from it after a write.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
)

type user struct{ Name string }

func main() {
	database := map[int64]user{7: {"Ann"}} // in place of a real one

	cache := ringcache.New(64 << 20) // 64 MB
	defer cache.Close()
	users := ringcache.NewTyped[int64](cache, codec.JSON[user](),
		ringcache.TypedOptions{Prefix: "user:"})

	load := func(_ context.Context, id int64) (user, time.Duration, error) {
		if u, ok := database[id]; ok {
			return u, time.Hour, nil // cached for up to an hour
		}
		return user{}, time.Minute, ringcache.ErrAbsent // "no such user", for up to a minute
	}
	show := func(id int64) {
		u, err := users.GetOrLoad(context.Background(), id, load)
		fmt.Printf("%q %v\n", u.Name, err)
	}

	show(7) // a miss: calls load
	show(7) // a hit
	database[7] = user{"Anna"}
	users.Del(7) // after every write to the database
	show(7)
	show(8)
}
