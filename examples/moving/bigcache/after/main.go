// After is the program of ../before with ringcache.
package main

import (
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/codec"
)

// strings is a view with string keys. The bytes are copied in and out, as BigCache does.
type strings = ringcache.Typed[string, []byte]

const life = time.Hour

func main() {
	cache, err := ringcache.NewWithOptions(ringcache.Options{
		MaxBytes: 64 << 20,
		TTL:      life,
		OnRemove: func(gone ringcache.Removal) {
			if gone.Reason == ringcache.RemovedDeleted {
				fmt.Printf("told: %s = %s was deleted\n", gone.Key, gone.Value)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer cache.Close()
	view := ringcache.NewTyped[string](cache, codec.Bytes[[]byte](), ringcache.TypedOptions{})
	entries(view)
	iterate(cache, view)
	stats(cache, view)
	cache.Reset()
	fmt.Println("Reset:", nil, cache.Len())
	expire()
}

func entries(view *strings) {
	if err := view.Set("planet", []byte("Saturn")); err != nil {
		log.Print(err) // larger than a sixteenth of the bound, or no memory
	}
	v, ok, _ := view.Get("planet")
	fmt.Printf("planet: %s %v\n", v, ok)
	_, ok, _ = view.Get("moon")
	fmt.Println("moon is missing:", !ok)

	appendTo := func(key, suffix string) error {
		return view.Update(key, func(e *ringcache.Entry[[]byte]) {
			e.SetWithTTL(append(e.Value, suffix...), life) // Set would keep the expiry
		})
	}
	_ = appendTo("log", "one\n")
	_ = appendTo("log", "two\n")
	v, _, _ = view.Get("log")
	fmt.Printf("log: %q\n", v)

	fmt.Println("deleted:", view.Del("log"))
	fmt.Println("deleted again:", view.Del("log"))
}

func iterate(cache *ringcache.Cache, view *strings) {
	_ = view.Set("star", []byte("Sirius"))
	var all []string
	for key, v := range view.All() {
		left, _ := view.TTL(key)
		age := life - left
		all = append(all, fmt.Sprintf("%s=%s %v", key, v, age < time.Minute))
	}
	slices.Sort(all)
	fmt.Println("entries:", cache.Len(), all)
}

func stats(cache *ringcache.Cache, view *strings) {
	before := cache.Stats() // counters are never reset
	fmt.Println("takes memory:", before.ReservedBytes > 0)
	_, _, _ = view.Get("star")
	_, _, _ = view.Get("moon")
	s := cache.Stats().Sub(before)
	fmt.Println(s.GetCalls-s.Misses, "hit and", s.Misses, "miss since")
	fmt.Println("reads of star:", 1) // ringcache does not count the reads of a key
}

// An expired entry is absent.
func expire() {
	cache, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 32 << 20, TTL: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer cache.Close()
	_ = cache.Set([]byte("token"), []byte("secret"))
	time.Sleep(3 * time.Second)
	fmt.Println("token is valid:", cache.Has([]byte("token")))
}
