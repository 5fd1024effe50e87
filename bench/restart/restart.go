// Package restart measures how long a cache takes to have its entries again in a new process:
// after a kill, ringcache from Options.File and fastcache from a snapshot saved beforehand; and
// both from a snapshot, with the time to save it.
package restart

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ringcache/ringcache/bench/load"
	"github.com/ringcache/ringcache/bench/measure"
)

// The loads.
const (
	Kill     = "restart"
	Snapshot = "snapshot"
)

// The names of the metrics.
const (
	Open = "until it is open, ms" // until the cache has its entries
	Back = "share of the entries" // of the entries
	Gets = "first 1,000 Gets, ms"

	Save    = "save, ms"
	Size    = "size, MB"
	SaveSet = "Set p99.9 during a save, ns"
	SaveGet = "Get p99.9 during a save, ns"
)

// Rows are the names of all metrics, in the order of the tables.
var Rows = []string{Open, Gets, Back, Save, Size, SaveSet, SaveGet}

// Task is what a process measures.
type Task struct {
	Load    string
	Store   string
	Entries int
	Dir     string // the folder, for the process that fills a cache
}

var format = load.Format{KeySize: 16, ValueSize: 100}

// filled is the name of the file that says that all entries were set and saved.
const filled = "filled"

// firstGets is how many Gets are timed in the cache that was opened.
const firstGets = 1000

// Run performs t. The process fills no cache itself: again performs t in another process, with
// that folder, which does that, and dies where the load says so.
func (t Task) Run(again func(dir string) (measure.Metrics, error)) (measure.Metrics, error) {
	if t.Dir != "" {
		return t.fill()
	}
	dir, err := os.MkdirTemp("", "ringcache-restart-")
	if err != nil {
		return nil, fmt.Errorf("restart: make folder: %w", err)
	}
	t.Dir = dir
	m, err := t.after(again)
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		return nil, fmt.Errorf("restart: measure %s on %s: %w", t.Load, t.Store, err)
	}
	return m, nil
}

// after opens what another process has left.
func (t Task) after(again func(dir string) (measure.Metrics, error)) (measure.Metrics, error) {
	m, killed := again(t.Dir)
	if _, err := os.Stat(filepath.Join(t.Dir, filled)); err != nil {
		return nil, errors.Join(errors.New("the process has not filled its cache"), killed)
	}
	if m == nil {
		m = measure.Metrics{}
	}
	start := time.Now()
	c, err := t.open(true)
	if err != nil {
		return nil, err
	}
	m[Open] = milliseconds(start)
	rnd := load.NewRand(1)
	start = time.Now()
	for range firstGets {
		if _, err := look(c, rnd.Below(uint64(t.Entries))); err != nil {
			return nil, err
		}
	}
	m[Gets] = milliseconds(start)
	back := 0
	for id := range uint64(t.Entries) {
		found, err := look(c, id)
		if err != nil {
			return nil, err
		}
		if found {
			back++
		}
	}
	m[Back] = float64(back) / float64(t.Entries)
	return m, c.Close()
}

// fill fills a cache and saves it, unless it is in a file anyway.
func (t Task) fill() (measure.Metrics, error) {
	c, err := t.open(false)
	if err != nil {
		return nil, err
	}
	key, value := make([]byte, format.KeySize), make([]byte, format.ValueSize)
	for id := range uint64(t.Entries) {
		format.Key(key, id)
		format.Value(value, id, 0)
		if err := c.Set(key, value); err != nil {
			return nil, err
		}
	}
	m := measure.Metrics{}
	if !t.inFile() {
		if err := t.save(c, m); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(t.Dir, filled), nil, 0o600); err != nil {
		return nil, err
	}
	if t.Load == Snapshot {
		return m, c.Close()
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return nil, err
	}
	return nil, self.Kill()
}

// look reports whether the entry is there; every byte of it is compared.
func look(c cache, id uint64) (bool, error) {
	var k [16]byte
	format.Key(k[:], id)
	var buf [128]byte
	v, ok := c.HasGet(buf[:0], k[:])
	if !ok {
		return false, nil
	}
	_, err := format.Verify(v, id)
	return true, err
}

func milliseconds(since time.Time) float64 { return float64(time.Since(since).Nanoseconds()) / 1e6 }

// cache is what both have.
type cache interface {
	Set(k, v []byte) error
	HasGet(dst, k []byte) ([]byte, bool)
	save(ctx context.Context, path string) error
	Close() error
}
