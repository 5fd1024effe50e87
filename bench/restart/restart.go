// Package restart measures how long a cache takes to have its entries again after its process
// was killed: ringcache from Options.File, fastcache from a snapshot saved beforehand.
package restart

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/VictoriaMetrics/fastcache"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/load"
)

// Stores are the names of the caches that can be measured.
var Stores = []string{"ringcache", "fastcache"}

// The names of the metrics.
const (
	Open = "until it is open, ms" // until the cache has its entries
	Back = "share of the entries" // of the entries
	Gets = "first 1,000 Gets, ms"
)

// Metrics are the figures of a run by their names.
type Metrics map[string]float64

// Task is what a process measures.
type Task struct {
	Store   string
	Entries int
	Victim  string // the folder, for the process that fills a cache and is killed
}

var format = load.Format{KeySize: 16, ValueSize: 100}

// filled is the name of the file that says that all entries were set before the kill.
const filled = "filled"

// firstGets is how many Gets are timed in the cache that was opened.
const firstGets = 1000

// Seconds estimates how long t takes.
func (t Task) Seconds() float64 { return 0.5 + 3e-6*float64(t.Entries) }

// Do performs t. The process fills no cache itself: it starts another one, which does that
// and dies.
func (t Task) Do(ctx context.Context) (Metrics, error) {
	if t.Victim != "" {
		return nil, t.die()
	}
	dir, err := os.MkdirTemp("", "ringcache-restart-")
	if err != nil {
		return nil, fmt.Errorf("restart: make folder: %w", err)
	}
	m, err := t.after(ctx, dir)
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		return nil, fmt.Errorf("restart: measure %s: %w", t.Store, err)
	}
	return m, nil
}

// after kills a process and opens what it has left.
func (t Task) after(ctx context.Context, dir string) (Metrics, error) {
	victim := t
	victim.Victim = dir
	killed := cli.Again(ctx, struct{ Restart Task }{victim}, new(Metrics))
	if _, err := os.Stat(filepath.Join(dir, filled)); err != nil {
		return nil, errors.Join(errors.New("the process has not filled its cache"), killed)
	}
	start := time.Now()
	c, err := t.open(dir)
	if err != nil {
		return nil, err
	}
	m := Metrics{Open: milliseconds(start)}
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

// die fills a cache, says so, and kills its own process.
func (t Task) die() error {
	c, err := t.open(t.Victim)
	if err != nil {
		return err
	}
	key, value := make([]byte, format.KeySize), make([]byte, format.ValueSize)
	for id := range uint64(t.Entries) {
		format.Key(key, id)
		format.Value(value, id, 0)
		if err := c.Set(key, value); err != nil {
			return err
		}
	}
	if f, ok := c.(fast); ok {
		if err := f.SaveToFileConcurrent(snapshot(t.Victim), 0); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(t.Victim, filled), nil, 0o600); err != nil {
		return err
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	return self.Kill()
}

// cache is what both have.
type cache interface {
	Set(k, v []byte) error
	HasGet(dst, k []byte) ([]byte, bool)
	Close() error
}

func (t Task) open(dir string) (cache, error) {
	maxBytes := max(t.Entries*2*(format.Bytes()+32), 32<<20)
	if t.Store == Stores[1] {
		return fast{fastcache.LoadFromFileOrNew(snapshot(dir), maxBytes)}, nil
	}
	return ringcache.NewWithOptions(ringcache.Options{
		MaxBytes: maxBytes, File: filepath.Join(dir, "cache"),
	})
}

func snapshot(dir string) string { return filepath.Join(dir, "snapshot") }

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

// fast is fastcache with the methods of cache.
type fast struct{ *fastcache.Cache }

func (f fast) Set(k, v []byte) error {
	f.Cache.Set(k, v)
	return nil
}

func (f fast) Close() error {
	f.Reset()
	return nil
}
