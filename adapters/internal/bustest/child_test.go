package bustest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/adapters/ringbus"
)

// The test program is also an instance of the service, with this variable. It obeys commands on its
// standard input, each a line, and answers each with a line.
const childVariable = "RINGBUS_CHILD" // the system, the addresses of the bus and of the database

func TestMain(m *testing.M) {
	if of := os.Getenv(childVariable); of != "" {
		if err := child(strings.Fields(of)); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// The keys of the database. Each second one is in a namespace.
const numKeys = 64

var longName = strings.Repeat("n", 64<<10)

// service is an instance.
type service struct {
	db     string
	client *http.Client
	cache  [2]*ringcache.Cache // the whole one, the namespace
	bus    [2]*ringbus.Bus

	writing, reading atomic.Bool
	workers          sync.WaitGroup
	deleted          [numKeys]atomic.Int64 // the last version that Del has returned for
	reads, loads     atomic.Int64
	failed           atomic.Int64
}

// report is the answer to a command.
type report struct {
	Err                 string
	Reads, Loads        int64
	Failed              int64
	Entries, Goroutines int
	Heap                uint64 // reachable bytes of the Go heap
	Bus                 ringbus.Stats
}

func child(of []string) error {
	transport, closed, err := systems[of[0]].connect(of[1])
	if err != nil {
		return err
	}
	defer closed()
	cache := ringcache.New(256 << 20)
	defer cache.Close()
	bus := ringbus.New(cache, transport, ringbus.Options{MaxStale: 100 * time.Millisecond})
	run, cancel := context.WithCancel(context.Background())
	defer cancel()
	go bus.Run(run)
	s := &service{
		db:     "http://" + of[2],
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}},
		cache:  [2]*ringcache.Cache{cache, cache.Namespace(longName)},
		bus:    [2]*ringbus.Bus{bus, bus.Namespace(longName)},
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		command := strings.Fields(lines.Text())
		var err error
		switch command[0] {
		case "subscribed": // answers when it is
			for !bus.Stats().Subscribed {
				time.Sleep(time.Millisecond)
			}
		case "run":
			s.run()
		case "still": // no writes any more
			s.writing.Store(false)
		case "check":
			err = s.check()
		case "stop":
			s.reading.Store(false)
			s.workers.Wait()
		case "fill":
			err = s.fill(command[1])
		case "burst":
			err = s.burst(command[1])
		}
		s.answer(err)
	}
	return lines.Err()
}

// answer writes a report.
func (s *service) answer(err error) {
	var r report
	if err != nil {
		r.Err = err.Error()
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.Reads, r.Loads, r.Failed = s.reads.Load(), s.loads.Load(), s.failed.Load()
	r.Entries, r.Goroutines, r.Heap = s.cache[0].Len(), runtime.NumGoroutine(), m.HeapAlloc
	r.Bus = s.bus[0].Stats()
	_ = json.NewEncoder(os.Stdout).Encode(r)
}

// fail ends the instance: something was read that must not be.
func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "child: "+format+"\n", args...)
	os.Exit(1)
}

func key(k int) []byte { return strconv.AppendInt(nil, int64(k), 10) }

// ask reads a key of the database, or writes its next version.
func (s *service) ask(method string, k int) (int64, error) {
	req, err := http.NewRequest(method, fmt.Sprint(s.db, "/", k), nil)
	if err != nil {
		return 0, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(body), 10, 64)
}

func (s *service) run() {
	s.writing.Store(true)
	s.reading.Store(true)
	for range 4 {
		s.workers.Go(s.readAll)
	}
	for range 2 {
		s.workers.Go(s.writeAll)
	}
}

// readAll reads keys, and requires that none is older than a Del of this instance, or than a read
// of this goroutine.
func (s *service) readAll() {
	var seen [numKeys]int64
	for s.reading.Load() {
		k := rand.IntN(numKeys)
		deleted := s.deleted[k].Load()
		v, err := s.get(k)
		if err != nil {
			fail("read: %v", err)
		}
		if v < deleted || v < seen[k] {
			fail("key %d: version %d after Del of %d and a read of %d", k, v, deleted, seen[k])
		}
		seen[k] = v
		s.reads.Add(1)
		if rand.IntN(100) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

func (s *service) get(k int) (int64, error) {
	b, err := s.cache[k%2].GetOrLoad(ctx, nil, key(k),
		func(context.Context, []byte) ([]byte, time.Duration, error) {
			s.loads.Add(1)
			v, err := s.ask("GET", k)
			return strconv.AppendInt(nil, v, 10), 0, err
		})
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(b), 10, 64)
}

func (s *service) writeAll() {
	for s.writing.Load() {
		k := rand.IntN(numKeys)
		v, err := s.ask("POST", k)
		if err != nil {
			fail("write: %v", err)
		}
		del, cancel := context.WithTimeout(ctx, time.Duration(rand.IntN(100))*time.Millisecond)
		if s.bus[k%2].Del(del, key(k)) != nil {
			s.failed.Add(1)
		}
		cancel()
		for old := s.deleted[k].Load(); old < v; old = s.deleted[k].Load() {
			s.deleted[k].CompareAndSwap(old, v)
		}
		time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond)
	}
}

// check returns an error if an entry is not as in the database.
func (s *service) check() error {
	for k := range numKeys {
		b, ok := s.cache[k%2].Peek(nil, key(k))
		v, err := s.ask("GET", k)
		if err != nil {
			return err
		}
		if !ok || string(b) != strconv.FormatInt(v, 10) {
			return fmt.Errorf("key %d: %q, but it is %d", k, b, v)
		}
	}
	return nil
}

// burstKeys returns the keys of a burst.
func burstKeys(count string) (keys [][]byte) {
	n, _ := strconv.Atoi(count)
	for i := range n {
		keys = append(keys, fmt.Appendf(nil, "burst%d", i))
	}
	return keys
}

func (s *service) fill(count string) error {
	for _, k := range burstKeys(count) {
		if err := s.cache[0].Set(k, k); err != nil {
			return err
		}
	}
	return nil
}

func (s *service) burst(count string) error { return s.bus[0].Del(ctx, burstKeys(count)...) }
