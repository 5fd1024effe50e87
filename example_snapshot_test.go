package ringcache_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/ringcache/ringcache"
)

func ExampleCache_SaveToFile() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "planets")

	cache := ringcache.New(32 << 20)
	if err := cache.Set([]byte("planet"), []byte("Saturn")); err != nil {
		log.Print(err)
	}
	if err := cache.SaveToFile(path); err != nil {
		log.Print(err) // the file is as it was
	}
	cache.Close()

	// The next process begins with what is there, or with nothing.
	cache = ringcache.LoadFromFileOrNew(path, 32<<20)
	defer cache.Close()
	fmt.Printf("%s\n", cache.Get(nil, []byte("planet")))
	// Output: Saturn
}

func ExampleCache_Save() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	cache := ringcache.New(32 << 20)
	defer cache.Close()
	if err := cache.Set([]byte("planet"), []byte("Saturn")); err != nil {
		log.Print(err)
	}
	// Ten seconds before the process has to end: what is hot is saved first.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err = cache.Save(ctx, filepath.Join(dir, "planets"), ringcache.SaveOptions{
		Concurrency: 4,
		Partial:     true,
		Progress: func(done, total int64) {
			if done == total {
				fmt.Println("all is saved")
			}
		},
	})
	fmt.Println(err)
	// Output:
	// all is saved
	// <nil>
}

func ExampleCache_ReadSnapshot() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "planets")
	old := ringcache.New(32 << 20)
	if err := old.Set([]byte("planet"), []byte("Saturn")); err != nil {
		log.Print(err)
	}
	if err := old.SaveToFile(path); err != nil {
		log.Print(err)
	}
	old.Close()

	// A cache with other options.
	cache, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: 64 << 20, TTL: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	defer cache.Close()
	file, err := os.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	if _, err := cache.ReadSnapshot(file); err != nil {
		log.Print(err) // what was read before stays
	}
	fmt.Printf("%s\n", cache.Get(nil, []byte("planet")))
	// Output: Saturn
}
