package restart

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ringcache/ringcache/bench/load"
	"github.com/ringcache/ringcache/bench/measure"
)

// save times a save, and then Sets and Gets during another one.
func (t Task) save(c cache, m measure.Metrics) error {
	runtime.GC()
	start := time.Now()
	if err := c.save(context.Background(), t.path()); err != nil {
		return err
	}
	m[Save] = milliseconds(start)
	if t.Load != Snapshot {
		return nil
	}
	size, err := sizeOf(t.path())
	if err != nil {
		return err
	}
	m[Size] = size / (1 << 20)
	return t.traffic(c, m)
}

// traffic times the Sets of one goroutine and the Gets of another while a save is under way.
func (t Task) traffic(c cache, m measure.Metrics) error {
	var saved atomic.Bool
	var group sync.WaitGroup
	var errs [3]error
	for i, metric := range []string{SaveSet, SaveGet} {
		hist := hdrhistogram.New(1, int64(time.Minute), 3)
		group.Add(1)
		go func() {
			defer group.Done()
			key, value := make([]byte, format.KeySize), make([]byte, format.ValueSize)
			var buf []byte
			rnd := load.NewRand(uint64(i))
			for !saved.Load() && errs[i] == nil {
				id := rnd.Below(uint64(t.Entries))
				format.Key(key, id)
				format.Value(value, id, 0)
				var err error
				start := time.Now()
				if metric == SaveSet {
					err = c.Set(key, value)
				} else {
					buf, _ = c.HasGet(buf[:0], key)
				}
				errs[i] = errors.Join(err, hist.RecordValue(int64(time.Since(start))))
			}
		}()
		defer func() { m[metric] = float64(hist.ValueAtQuantile(99.9)) }()
	}
	errs[2] = c.save(context.Background(), t.path())
	saved.Store(true)
	group.Wait()
	return errors.Join(errs[:]...)
}

// sizeOf returns the bytes of a file, or of all files in a folder.
func sizeOf(path string) (n float64, err error) {
	err = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += float64(info.Size())
		}
		return err
	})
	return n, err
}
