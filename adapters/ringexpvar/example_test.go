package ringexpvar_test

import (
	"encoding/json"
	"expvar"
	"fmt"
	"log"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringexpvar"
)

func ExamplePublish() {
	cache := ringcache.New(32 << 20)
	defer cache.Close()
	if _, err := ringexpvar.Publish("pages", cache); err != nil {
		log.Fatal(err)
	}

	_ = cache.Set([]byte("/"), []byte("welcome"))
	cache.Has([]byte("/"))
	cache.Has([]byte("/missing"))

	// The variable as served under /debug/vars:
	var s ringcache.Stats
	if err := json.Unmarshal([]byte(expvar.Get("pages").String()), &s); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d entries, hit ratio %.0f %%\n", s.EntriesCount, 100*s.HitRatio())
	// Output: 1 entries, hit ratio 50 %
}

// New returns an unpublished variable, for example for a group of variables.
func ExampleNew() {
	users, sessions := ringcache.New(32<<20), ringcache.New(64<<20)
	defer users.Close()
	defer sessions.Close()

	caches := new(expvar.Map) // expvar.NewMap publishes it as well
	caches.Set("users", ringexpvar.New(users))
	caches.Set("sessions", ringexpvar.New(sessions))

	var all map[string]ringcache.Stats
	if err := json.Unmarshal([]byte(caches.String()), &all); err != nil {
		log.Fatal(err)
	}
	fmt.Println(all["users"].MaxBytesSize>>20, all["sessions"].MaxBytesSize>>20)
	// Output: 32 64
}
