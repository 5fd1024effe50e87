// After is the program of ../before with ringcache.
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/ringcache/ringcache"
)

func main() {
	cache := ringcache.New(64 << 20)
	defer cache.Close() // returns the memory; Reset keeps it
	entries(cache)
	large(cache)
	files(cache)
	cache.Reset()
	fmt.Println("after Reset:", cache.Has([]byte("planet")))
}

func entries(cache *ringcache.Cache) {
	if err := cache.Set([]byte("planet"), []byte("Saturn")); err != nil {
		log.Print(err) // not stored; the key is absent
	}
	fmt.Printf("planet: %s\n", cache.Get(nil, []byte("planet")))
	v, ok := cache.HasGet(nil, []byte("moon"))
	fmt.Printf("moon: %q %v\n", v, ok)
	fmt.Println("planet is there:", cache.Has([]byte("planet")))

	var s ringcache.Stats
	cache.UpdateStats(&s)
	fmt.Println(s.GetCalls, "lookups,", s.Misses, "misses,", s.EntriesCount, "entries")
	s = ringcache.Stats{}
	fmt.Println(s.GetCalls, "after a reset")

	_ = cache.Set([]byte("comet"), []byte("Halley"))
	cache.Del([]byte("comet"))
	fmt.Println("comet is there:", cache.Has([]byte("comet")))
}

// Set stores values of up to a sixteenth of the bound.
func large(cache *ringcache.Cache) {
	page := bytes.Repeat([]byte("<p>"), 50_000)
	_ = cache.Set([]byte("page"), page)
	fmt.Println("page:", bytes.Equal(cache.Get(nil, []byte("page")), page))
}

func files(cache *ringcache.Cache) {
	dir, err := os.MkdirTemp("", "moving")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "snapshot")

	fmt.Println("saved:", cache.SaveToFile(path))
	loaded, err := ringcache.LoadFromFile(path)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("loaded: %s\n", loaded.Get(nil, []byte("planet")))
	loaded.Close()

	err = cache.Save(context.Background(), path, ringcache.SaveOptions{Concurrency: 2})
	fmt.Println("saved by two:", err)
	loaded, _, err = ringcache.Load(path, ringcache.Options{MaxBytes: 64 << 20})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("loaded: %s\n", loaded.Get(nil, []byte("planet")))
	loaded.Close()

	empty, _, err := ringcache.Load(
		filepath.Join(dir, "missing"), ringcache.Options{MaxBytes: 64 << 20})
	if err != nil {
		log.Fatal(err) // of the options; without a usable file the cache is empty
	}
	defer empty.Close()
	fmt.Println("not saved:", empty.Has([]byte("planet")))
}
