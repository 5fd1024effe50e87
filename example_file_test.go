//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package ringcache_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/ringcache/ringcache"
)

// The format of the program's values has changed. The program starts with an empty cache instead of
// misreading what it wrote before it was updated.
func ExampleOptions_version() {
	dir, err := os.MkdirTemp("", "ringcache")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	for _, version := range []uint64{1, 1, 2} {
		cache, err := ringcache.NewWithOptions(ringcache.Options{
			MaxBytes: 32 << 20,
			File:     filepath.Join(dir, "cache"),
			Version:  version,
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(version, cache.Has([]byte("user")), cache.Stats().File.DiscardedFiles)
		_ = cache.Set([]byte("user"), []byte("in the form of this version"))
		_ = cache.Close()
	}
	// Output:
	// 1 false 0
	// 1 true 0
	// 2 false 1
}
