package main

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringcache/ringcache"
)

// file is one regular file under the directory. Each is handled by a single
// goroutine during the fill and only read afterwards.
type file struct {
	key    []byte // path below the directory, slashes on every system
	size   int64
	sum    uint64 // of the bytes handed to Set
	stored bool
}

// world is the cache, the files stored in it, and counters.
type world struct {
	cfg   config
	root  string // cfg.dir with links resolved
	cache *ringcache.Cache
	seed  maphash.Seed
	files []file

	stored, storedBytes  atomic.Int64
	tooLarge, unreadable atomic.Int64
	hits, misses, wrong  atomic.Int64
	readBytes            atomic.Int64
	fillTime, readTime   time.Duration
}

// newWorld makes the cache and lists the directory.
func newWorld(cfg config) (*world, error) {
	w := &world{cfg: cfg, seed: maphash.MakeSeed()}
	if err := w.list(); err != nil {
		return nil, err
	}
	cache, err := ringcache.NewWithOptions(ringcache.Options{MaxBytes: cfg.maxBytes})
	if err != nil {
		return nil, err
	}
	w.cache = cache
	return w, nil
}

// list walks the directory. It counts files and directories that cannot be read;
// if the directory itself cannot be read, that is an error.
func (w *world) list() error {
	// WalkDir does not follow a link, and some systems make src one.
	root, err := filepath.EvalSymlinks(w.cfg.dir)
	if err != nil {
		return fmt.Errorf("list %s: %w", w.cfg.dir, err)
	}
	if info, err := os.Stat(root); err == nil && !info.IsDir() {
		return fmt.Errorf("list %s: not a directory", w.cfg.dir)
	}
	w.root = root
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == root:
			return err
		case err != nil:
			w.unreadable.Add(1)
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		return w.addFile(path, d)
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", w.cfg.dir, err)
	}
	if len(w.files) == 0 {
		return fmt.Errorf("list %s: no regular file in it", w.cfg.dir)
	}
	return nil
}

// addFile notes a regular file that the walk has found.
func (w *world) addFile(path string, d fs.DirEntry) error {
	rel, err := filepath.Rel(w.root, path)
	if err != nil {
		return err
	}
	info, err := d.Info()
	if err != nil {
		w.unreadable.Add(1) // gone since the directory was read
		return nil
	}
	w.files = append(w.files, file{key: []byte(filepath.ToSlash(rel)), size: info.Size()})
	return nil
}

// fill stores every file, each goroutine taking the next one that is left.
func (w *world) fill() error {
	start := time.Now()
	var next atomic.Int64
	errs := make([]error, w.cfg.workers)
	w.parallel(func(worker int) {
		var buf bytes.Buffer
		for errs[worker] == nil {
			i := int(next.Add(1)) - 1
			if i >= len(w.files) {
				return
			}
			errs[worker] = w.store(&w.files[i], &buf)
		}
	})
	w.fillTime = time.Since(start)
	return errors.Join(errs...)
}

// store reads one file into buf and hands it to the cache, which keeps a copy.
func (w *world) store(f *file, buf *bytes.Buffer) error {
	if f.size > int64(w.cfg.maxBytes/16) {
		w.tooLarge.Add(1) // not worth reading: Set would refuse it
		return nil
	}
	buf.Reset()
	if err := readFile(buf, filepath.Join(w.root, filepath.FromSlash(string(f.key)))); err != nil {
		w.unreadable.Add(1)
		return nil
	}
	content := buf.Bytes()
	switch err := w.cache.Set(f.key, content); {
	case errors.Is(err, ringcache.ErrTooLarge):
		w.tooLarge.Add(1) // it has grown since it was listed
	case err != nil:
		return fmt.Errorf("store %s: %w", f.key, err)
	default:
		f.size = int64(len(content))
		f.sum = maphash.Bytes(w.seed, content)
		f.stored = true
		w.stored.Add(1)
		w.storedBytes.Add(f.size)
	}
	return nil
}

// readBack reads every stored file, rounds times in each goroutine, in its
// own order, and compares the result with the stored data.
func (w *world) readBack() {
	start := time.Now()
	w.parallel(func(int) {
		var hits, misses, wrong, read int64
		var buf []byte
		for range w.cfg.rounds {
			for _, i := range rand.Perm(len(w.files)) {
				f := &w.files[i]
				if !f.stored {
					continue
				}
				var ok bool
				buf, ok = w.cache.HasGet(buf[:0], f.key)
				switch {
				case !ok:
					misses++ // evicted
					continue
				case int64(len(buf)) != f.size || maphash.Bytes(w.seed, buf) != f.sum:
					wrong++
				default:
					hits++
				}
				read += int64(len(buf))
			}
		}
		w.hits.Add(hits)
		w.misses.Add(misses)
		w.wrong.Add(wrong)
		w.readBytes.Add(read)
	})
	w.readTime = time.Since(start)
}

// parallel runs do in every worker and waits for all of them.
func (w *world) parallel(do func(worker int)) {
	var wg sync.WaitGroup
	for i := range w.cfg.workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			do(i)
		}()
	}
	wg.Wait()
}

// readFile reads a whole file into buf.
func readFile(buf *bytes.Buffer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = buf.ReadFrom(f)
	return err
}
