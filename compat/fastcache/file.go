package fastcache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"

	"github.com/ringcache/ringcache"
)

// SaveToFile is SaveToFileConcurrent with one worker.
func (c *Cache) SaveToFile(filePath string) error {
	return c.SaveToFileConcurrent(filePath, 1)
}

// SaveToFileConcurrent saves the entries to a file with the given number of workers, or with
// GOMAXPROCS workers if concurrency is not positive or is above GOMAXPROCS. The file is either
// complete or unchanged, even after a crash. If filePath is a snapshot directory of fastcache, it
// stays a directory: the file in it is snapshot.ringcache, and once that is complete, the files of
// fastcache are removed. A directory with any other content is an error. Missing parent directories
// are created. After a Reset meanwhile, the file has only later entries. It may lack a value that
// SetBig replaces meanwhile.
func (c *Cache) SaveToFileConcurrent(filePath string, concurrency int) error {
	if procs := runtime.GOMAXPROCS(0); concurrency <= 0 || concurrency > procs {
		concurrency = procs
	}
	o := ringcache.SaveOptions{Concurrency: concurrency}
	target := filePath
	old, ok := oldFiles(filePath)
	if ok { // any other directory is an error of Save
		target = inside(filePath, folderFile)
	}
	err := ringcache.ErrClosed
	for errors.Is(err, ringcache.ErrClosed) { // by a Reset, after which there is another inner
		err = c.inner.Load().Save(context.Background(), target, o)
	}
	if err != nil {
		return fmt.Errorf("fastcache: save cache to %q: %w", filePath, err)
	}
	for _, name := range old {
		err := os.Remove(inside(filePath, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) { // another save may have done it
			return fmt.Errorf("fastcache: remove old snapshot: %w", err)
		}
	}
	return nil
}

// folderFile replaces fastcache's files in its snapshot directory. Nothing outside that directory
// is written or renamed.
const folderFile = "snapshot.ringcache"

// tempFile matches the names of folderFiles that Save has not completed.
var tempFile = regexp.MustCompile(`^\.snapshot\.ringcache\.\d+\.ringcache-tmp$`)

// inside returns the path of a file in a directory. filepath.Join would cut out "..", which may
// follow a link.
func inside(folder, name string) string { return folder + string(filepath.Separator) + name }

// oldFiles returns the names of fastcache's files in a directory, and whether the directory holds a
// snapshot and nothing else.
func oldFiles(path string) (names []string, ok bool) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, false
	}
	for _, e := range entries {
		name := e.Name()
		isOld := name == metadataFile || dataFile.MatchString(name)
		isOurs := name == folderFile || tempFile.MatchString(name)
		if !e.Type().IsRegular() || !isOld && !isOurs {
			return nil, false
		}
		if isOld {
			names = append(names, name)
		}
		ok = ok || name == metadataFile || name == folderFile
	}
	return names, ok
}

// LoadFromFile returns a cache with the capacity of a snapshot, and as many of its entries as fit:
// a file or directory written by SaveToFile, or a directory written by fastcache. (Of values that
// fastcache's SetBig stored, some that fit may be lost.)
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
	path := filePath
	if info, err := os.Stat(filePath); err == nil && info.IsDir() {
		path = inside(filePath, folderFile)
	}
	c, err := loadFile(path, maxBytes)
	if path != filePath && errors.Is(err, os.ErrNotExist) {
		c, err = loadFolder(filePath, maxBytes)
		if _, is := os.Lstat(path); is == nil { // a save may have removed some of the files
			if err == nil {
				c.Reset()
			}
			c, err = loadFile(path, maxBytes)
		}
	}
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
