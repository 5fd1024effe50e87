package fastcache

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/ringcache/ringcache"
)

// SaveToFile is SaveToFileConcurrent with one worker.
func (c *Cache) SaveToFile(filePath string) error {
	return c.SaveToFileConcurrent(filePath, 1)
}

// SaveToFileConcurrent saves the entries to a file with the given number of workers, or with
// GOMAXPROCS workers if concurrency is not positive or is above GOMAXPROCS. The file is either
// complete or unchanged, even after a crash. If filePath is a snapshot directory of fastcache,
// it is renamed to filePath.ringcache-folder and removed once the file has been written; a
// crash in between leaves both under different names. A directory with any other content is an
// error. Missing parent directories are created.
func (c *Cache) SaveToFileConcurrent(filePath string, concurrency int) error {
	if procs := runtime.GOMAXPROCS(0); concurrency <= 0 || concurrency > procs {
		concurrency = procs
	}
	dir := filepath.Dir(filePath)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("fastcache: make folder %q: %w", dir, err)
	}
	o := ringcache.SaveOptions{Concurrency: concurrency}
	target := filePath
	if isSnapshotFolder(filePath) { // any other is an error of Save
		target += ".ringcache-file"
	}
	if err := c.inner.Load().Save(context.Background(), target, o); err != nil {
		return fmt.Errorf("fastcache: save cache to %q: %w", filePath, err)
	}
	if target == filePath {
		return nil
	}
	old := filePath + ".ringcache-folder"
	if err := os.Rename(filePath, old); err != nil {
		return fmt.Errorf("fastcache: move %q to %q: %w", filePath, old, err)
	}
	if err := os.Rename(target, filePath); err != nil {
		return fmt.Errorf("fastcache: move %q to %q: %w", target, filePath, err)
	}
	if err := os.RemoveAll(old); err != nil {
		return fmt.Errorf("fastcache: remove folder %q: %w", old, err)
	}
	return nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isSnapshotFolder reports whether a directory contains only a snapshot of fastcache.
func isSnapshotFolder(path string) bool {
	entries, err := os.ReadDir(path)
	if err != nil {
		return false
	}
	found := false
	for _, e := range entries {
		isMetadata := e.Name() == metadataFile
		if !e.Type().IsRegular() || !isMetadata && !dataFile.MatchString(e.Name()) {
			return false
		}
		found = found || isMetadata
	}
	return found
}

// LoadFromFile returns a cache with the entries and the capacity of a snapshot: a file
// written by SaveToFile, or a directory written by fastcache itself.
func LoadFromFile(filePath string) (*Cache, error) {
	return load(filePath, 0)
}

// LoadFromFileMaxBytes is LoadFromFile, but returns an error if the capacity of the
// snapshot differs from that of New(maxBytes).
func LoadFromFileMaxBytes(filePath string, maxBytes int) (*Cache, error) {
	return load(filePath, maxBytes)
}

// LoadFromFileOrNew is LoadFromFileMaxBytes, but returns New(maxBytes) instead of an
// error.
func LoadFromFileOrNew(filePath string, maxBytes int) *Cache {
	if c, err := load(filePath, maxBytes); err == nil {
		return c
	}
	return New(maxBytes)
}

// load loads a snapshot of the capacity that maxBytes means, of any if it is 0.
func load(filePath string, maxBytes int) (*Cache, error) {
	from := loadFile
	if isFolder(filePath) {
		from = loadFolder
	}
	c, err := from(filePath, maxBytes)
	if err != nil {
		return nil, fmt.Errorf("fastcache: load cache from %q: %w", filePath, err)
	}
	return c, nil
}

// loadFile loads a file that SaveToFile wrote.
func loadFile(filePath string, maxBytes int) (*Cache, error) {
	inner, err := ringcache.LoadFromFile(filePath)
	if err != nil {
		return nil, err
	}
	var s ringcache.Stats
	inner.UpdateStats(&s)
	capacity := int(s.MaxBytesSize)
	if err := checkCapacity(capacity, maxBytes); err != nil {
		_ = inner.Close()
		return nil, err
	}
	return around(inner, capacity), nil
}

// checkCapacity is an error unless maxBytes means capacity, or is 0.
func checkCapacity(capacity, maxBytes int) error {
	if maxBytes <= 0 || capacity == wholeChunks(maxBytes) {
		return nil
	}
	return fmt.Errorf("cache file contains unexpected number of bucket chunks; got %d; want %d",
		capacity/minCapacity, wholeChunks(maxBytes)/minCapacity)
}
