package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cache is one of the processor's, for data.
type cache struct{ level, bytes int }

// cacheSizes returns the caches of the first core, as far as the system tells.
func cacheSizes() []cache {
	var caches []cache
	dirs, _ := filepath.Glob("/sys/devices/system/cpu/cpu0/cache/index*") // the pattern is right
	for _, dir := range dirs {
		level, err := strconv.Atoi(read(dir, "level"))
		kb, err2 := strconv.Atoi(strings.TrimSuffix(read(dir, "size"), "K"))
		if err == nil && err2 == nil && read(dir, "type") != "Instruction" {
			caches = append(caches, cache{level, kb << 10})
		}
	}
	return caches
}

func read(dir, name string) string {
	text, _ := os.ReadFile(filepath.Join(dir, name)) // no text is no number
	return strings.TrimSpace(string(text))
}
