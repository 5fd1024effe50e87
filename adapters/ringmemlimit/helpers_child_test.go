package ringmemlimit

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringcache/ringcache"
)

// The test program is also the program under test, which joins a cgroup and swings its heap.

const (
	childVariable = "RINGMEMLIMIT_CHILD" // the folder of the cgroup
	fixedVariable = "RINGMEMLIMIT_FIXED" // set: nobody follows, and the cache has this bound

	childLimit = 1 << 30   // of the cgroup
	swingBytes = 300 << 20 // how far the heap swings
	swings     = 3
	interval   = 50 * time.Millisecond
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child is the program: a cache that is always filled, and a heap that grows by 300 MB and falls
// again.
func child(dir string) error {
	pid := strconv.Itoa(os.Getpid())
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(pid), 0o644); err != nil {
		return err
	}
	if fixed, err := strconv.Atoi(os.Getenv(fixedVariable)); err == nil {
		cache := ringcache.New(fixed)
		go fill(cache)
		waitUntilFull(cache)
		grow(func() {})
		return nil // that it came so far is a surprise
	}
	cache := ringcache.New(childLimit)
	defer cache.Close()
	h, err := newHost("")
	if err != nil {
		return err
	}
	heapLimit.take()
	record := &record{sources: system(cache, h)}
	controller, err := startWith(record.record(), Options{})
	if err != nil {
		return err
	}
	go fill(cache)
	for range swings {
		waitUntilFull(cache)
		grown := controller.Stats().Grown
		grow(record.waitForReading)
		runtime.GC()
		for controller.Stats().Grown == grown {
			time.Sleep(time.Millisecond) // until the heap has given back what it had
		}
	}
	controller.Close()
	slog.Info("child has ended", "stats", controller.Stats(), "readings", len(record.all))
	return record.check()
}

// fill sets new entries of 1 KB.
func fill(cache *ringcache.Cache) {
	value := make([]byte, 1000)
	for i := uint64(0); cache.Set(binary.LittleEndian.AppendUint64(nil, i), value) == nil; i++ {
	}
}

// waitUntilFull returns when the cache evicts.
func waitUntilFull(cache *ringcache.Cache) {
	for from := cache.Stats().EvictedEntries; cache.Stats().EvictedEntries < from+1000; {
		time.Sleep(time.Millisecond)
	}
}

// grow makes objects of 1 MB, each of which takes the time to compute it, and drops them. It calls
// pause after each 32 of them.
func grow(pause func()) {
	var live [][]byte
	sum := sha256.Sum256(nil)
	for i := range swingBytes >> 20 {
		if i%32 == 31 {
			pause()
		}
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += len(sum) {
			copy(b[i:], sum[:])
		}
		sum = sha256.Sum256(b)
		live = append(live, b)
	}
	runtime.KeepAlive(live)
}

// record has what the controller has read.
type record struct {
	sources
	levels []level
	heap   int64
	held   int64
	all    []moment
	count  atomic.Int64 // of readings
}

// waitForReading returns after a reading that has begun after the call. However busy the machine
// is, the heap so grows by no more than 32 MB between two readings.
func (r *record) waitForReading() {
	for from := r.count.Load(); r.count.Load() < from+2; {
		time.Sleep(time.Millisecond)
	}
}

// moment is a reading: the room by the definition in the README, and the bound at that time.
type moment struct {
	at          time.Time
	room, bound int64
}

// record makes the sources tell r what they say.
func (r *record) record() sources {
	s := r.sources
	s.interval = interval
	s.levels = func() (_ []level, err error) {
		r.levels, err = r.sources.levels()
		return r.levels, err
	}
	s.heap = func() int64 {
		r.heap = r.sources.heap()
		return r.heap
	}
	s.cache = func() resizable { return recorded{r.sources.cache(), r} }
	return s
}

// recorded is a cache whose Stats end a reading.
type recorded struct {
	resizable
	r *record
}

func (c recorded) Stats() ringcache.Stats {
	s := c.resizable.Stats()
	c.r.held = min(max(c.r.held, int64(s.ReservedBytes)), int64(s.MaxBytesSize))
	for _, l := range c.r.levels {
		rest := max(l.used-c.r.held, c.r.heap)
		room := int64(defaultShare*float64(l.limit)) - rest
		c.r.all = append(c.r.all, moment{time.Now(), room, int64(s.MaxBytesSize)})
	}
	c.r.count.Add(1)
	return s
}

// check says whether the bound was ever lower than the room that there was all the time before,
// or higher than the room at the reading before, by more than the hysteresis.
func (r *record) check() error {
	const step = childLimit/stepShare + 1
	var gap time.Duration // the longest between two readings
	for i, m := range r.all[1:] {
		gap = max(gap, m.at.Sub(r.all[i].at))
	}
	for i, m := range r.all[1:] {
		before, least := r.all[:i+1], int64(math.MaxInt64)
		for _, e := range before {
			if m.at.Sub(e.at) <= 2*(holdIntervals*interval+gap) {
				least = min(least, e.room)
			}
		}
		if m.bound < least-step {
			return fmt.Errorf("reading %d: bound %d, but there was room for %d", i+1, m.bound, least)
		}
		if most := before[i].room + step; m.bound > most {
			return fmt.Errorf("reading %d: bound %d, but there was room for %d", i+1, m.bound, most)
		}
	}
	return nil
}
