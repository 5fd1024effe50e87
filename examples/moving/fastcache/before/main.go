// Before uses all of fastcache that its users call. The same program with ringcache is in ../after.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/VictoriaMetrics/fastcache"
)

func main() {
	cache := fastcache.New(64 << 20)
	entries(cache)
	large(cache)
	files(cache)
	cache.Reset() // keeps the memory for other caches
	fmt.Println("after Reset:", cache.Has([]byte("planet")))
}

func entries(cache *fastcache.Cache) {
	cache.Set([]byte("planet"), []byte("Saturn"))
	fmt.Printf("planet: %s\n", cache.Get(nil, []byte("planet")))
	v, ok := cache.HasGet(nil, []byte("moon"))
	fmt.Printf("moon: %q %v\n", v, ok)
	fmt.Println("planet is there:", cache.Has([]byte("planet")))

	var s fastcache.Stats
	cache.UpdateStats(&s)
	fmt.Println(s.GetCalls, "lookups,", s.Misses, "misses,", s.EntriesCount, "entries")
	s.Reset()
	fmt.Println(s.GetCalls, "after a reset")

	cache.Set([]byte("comet"), []byte("Halley"))
	cache.Del([]byte("comet"))
	fmt.Println("comet is there:", cache.Has([]byte("comet")))
}

// Set drops values that have more than 64 KB with their key; SetBig stores them.
func large(cache *fastcache.Cache) {
	page := bytes.Repeat([]byte("<p>"), 50_000)
	cache.SetBig([]byte("page"), page)
	fmt.Println("page:", bytes.Equal(cache.GetBig(nil, []byte("page")), page))
}

func files(cache *fastcache.Cache) {
	dir, err := os.MkdirTemp("", "moving")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "snapshot")

	fmt.Println("saved:", cache.SaveToFile(path))
	loaded, err := fastcache.LoadFromFile(path)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("loaded: %s\n", loaded.Get(nil, []byte("planet")))

	fmt.Println("saved by two:", cache.SaveToFileConcurrent(path, 2))
	loaded, err = fastcache.LoadFromFileMaxBytes(path, 64<<20)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("loaded: %s\n", loaded.Get(nil, []byte("planet")))

	empty := fastcache.LoadFromFileOrNew(filepath.Join(dir, "missing"), 64<<20)
	fmt.Println("not saved:", empty.Has([]byte("planet")))
}
