package ringcache_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
		log.Print(err)
	}
	cache.Close()

	loaded, err := ringcache.LoadFromFile(path)
	if err != nil {
		log.Fatal(err) // Load makes an empty cache instead
	}
	defer loaded.Close()
	fmt.Printf("%s\n", loaded.Get(nil, []byte("planet")))
	// Output: Saturn
}

// A service starts with what its previous process saved, and with an empty cache the first time.
func ExampleLoad() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "planets")

	serve := func() {
		cache, report, err := ringcache.Load(path, ringcache.Options{
			MaxBytes: 32 << 20,
			TTL:      time.Hour,
		})
		if err != nil {
			log.Fatal(err) // the options are invalid
		}
		defer cache.Close()
		if report.Err != nil && !errors.Is(report.Err, fs.ErrNotExist) {
			log.Print(report.Err) // what is usable was loaded
		}
		fmt.Println("entries:", report.Entries)

		if err := cache.Set([]byte("planet"), []byte("Saturn")); err != nil {
			log.Print(err)
		}
		if err := cache.SaveToFile(path); err != nil {
			log.Print(err)
		}
	}
	serve()
	serve()
	// Output:
	// entries: 0
	// entries: 1
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
	// The process must end in ten seconds: entries that were read are saved first.
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

	// A cache that is already in use.
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
		log.Print(err) // the entries read before the error stay
	}
	fmt.Printf("%s\n", cache.Get(nil, []byte("planet")))
	// Output: Saturn
}
