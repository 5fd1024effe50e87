package neartest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// soak has writers that give keys increasing versions, readers that read them through the near
// cache, and faults: broken connections, a flushed server, a killed server. It checks two rules.
//
// Acknowledged: a reader remembers the last acknowledged version of a key, makes a round trip on
// the connection of the key, and then reads. It must read that version or a later one, or no value
// if the key was removed by that version or a later one.
//
// In order: the versions of a key that a goroutine reads never decrease.
type soak struct {
	*rig
	proxy   *proxy
	readers []client
	keys    [soakKeys]soakKey
	end     time.Time

	reads, hits, fenced, canceled, failed, trouble atomic.Int64
}

const soakKeys = 64

// soakKey is a key of the server. Every third key is a hash, whose fields all have its version.
type soakKey struct {
	name string
	hash bool

	mu      sync.Mutex // one write at a time
	version int64      // the last one that was sent
	acked   atomic.Int64
	removed atomic.Int64 // the last version that removed the key
}

var hashFields = []string{"a", "b", "c"}

// TestSoak runs the soak for ten seconds, or as long as RINGCACHE_SOAK says.
func TestSoak(t *testing.T) { eachTarget(t, testSoak) }

func testSoak(t *testing.T, target target) {
	d := 10 * time.Second
	if testing.Short() {
		d = time.Second
	}
	if s := os.Getenv("RINGCACHE_SOAK"); s != "" {
		var err error
		d, err = time.ParseDuration(s)
		require.NoError(t, err)
	}
	s := newSoak(t, target, d)
	s.run()
	t.Logf("%d reads: %d from the cache, %d after a round trip, %d canceled, %d failed; "+
		"%d troubles, %d connections cut", s.reads.Load(), s.hits.Load(), s.fenced.Load(),
		s.canceled.Load(), s.failed.Load(), s.trouble.Load(), s.proxy.cut)
	require.Positive(t, s.proxy.cut)
}

func newSoak(t *testing.T, target target, d time.Duration) *soak {
	s := &soak{rig: newRig(t, target), end: time.Now().Add(d)}
	s.proxy = startProxy(t, s.server.addr())
	cache := newCache(t)
	for _, multiplex := range []int{oneConnection, 2} { // 2: four connections
		s.readers = append(s.readers, connect(t, target, config{
			addrs:            []string{s.proxy.addr()},
			name:             "reader",
			cache:            cache,
			multiplex:        multiplex,
			keepAlive:        50 * time.Millisecond,
			connWriteTimeout: 200 * time.Millisecond,
		}))
	}
	for i := range s.keys {
		k := &s.keys[i]
		k.name, k.hash = fmt.Sprint("key", i), i%3 == 0
	}
	return s
}

func (s *soak) run() {
	var wg sync.WaitGroup
	start := func(f func()) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			f()
		}()
	}
	for range 2 {
		start(s.write)
	}
	for i := range 6 {
		start(func() { s.read(s.readers[i%len(s.readers)]) })
	}
	start(s.makeTrouble)
	wg.Wait()
}

// goOn reports whether the time is not over, or the run would prove too little.
func (s *soak) goOn() bool {
	enough := s.hits.Load() > 100 && s.fenced.Load() > 100 && s.canceled.Load() > 0
	return !s.t.Failed() && (time.Now().Before(s.end) || !enough)
}

// write gives keys new versions.
func (s *soak) write() {
	for s.goOn() {
		k := &s.keys[rand.IntN(soakKeys)]
		k.mu.Lock()
		v := k.version + 1
		k.version = v
		cmd := []string{"SET", k.name, strconv.FormatInt(v, 10)}
		switch {
		case rand.IntN(10) == 0:
			k.removed.Store(v)
			cmd = []string{"DEL", k.name}
		case k.hash:
			cmd = []string{"HSET", k.name}
			for _, f := range hashFields {
				cmd = append(cmd, f, strconv.FormatInt(v, 10))
			}
		}
		if err := s.other.do(ctx, cmd...).err; err != nil {
			s.t.Errorf("write %s: %v", k.name, err)
		}
		k.acked.Store(v)
		k.mu.Unlock()
		time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond)
	}
}

// read reads keys, and checks the rules.
func (s *soak) read(client client) {
	var seen [soakKeys]int64
	for s.goOn() {
		i := rand.IntN(soakKeys)
		k := &s.keys[i]
		var atLeast int64
		if rand.IntN(4) == 0 {
			acked := k.acked.Load()
			if roundTrip(client, k.name) != nil {
				s.failed.Add(1)
				continue
			}
			atLeast = acked
			s.fenced.Add(1)
		}
		v, ok := s.readOnce(client, k)
		switch {
		case !ok:
		case v == 0 && k.removed.Load() < atLeast:
			s.t.Errorf("%s: no value, but %d was acknowledged", k.name, atLeast)
		case v != 0 && v < atLeast:
			s.t.Errorf("%s: version %d, but %d was acknowledged", k.name, v, atLeast)
		case v != 0 && v < seen[i]:
			s.t.Errorf("%s: version %d after %d", k.name, v, seen[i])
		}
		seen[i] = max(seen[i], v)
	}
}

// readOnce returns the version of a key, 0 if it has no value, and false if the read failed.
func (s *soak) readOnce(client client, k *soakKey) (v int64, ok bool) {
	limit := patience
	hasty := rand.IntN(50) == 0
	if hasty {
		limit = time.Duration(rand.IntN(100)) * time.Microsecond
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := []string{"GET", k.name}
	if k.hash {
		cmd = []string{"HGET", k.name, hashFields[rand.IntN(3)]}
	}
	got := client.doCache(ctx, hour, cmd...)
	s.reads.Add(1)
	if got.hit {
		s.hits.Add(1)
	}
	switch {
	case got.isNil:
		return 0, true
	case got.err == nil:
		v, err := strconv.ParseInt(got.value.(string), 10, 64)
		if err != nil {
			s.t.Errorf("%s: %v", k.name, err)
		}
		return v, err == nil
	case hasty:
		s.canceled.Add(1)
	default:
		s.failed.Add(1)
	}
	return 0, false
}

// makeTrouble breaks something every now and then.
func (s *soak) makeTrouble() {
	for n := 1; s.goOn(); n++ {
		time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
		switch {
		case n%25 == 0:
			s.removeAll(func() {
				s.server.kill()
				s.server.restart()
				s.awaitServer()
			})
		case n%10 == 0:
			s.removeAll(func() { s.rig.write("FLUSHALL") })
		case n%5 == 0:
			s.proxy.freeze()
		case n%3 == 0:
			s.killReaders()
		default:
			s.proxy.drop()
		}
		s.trouble.Add(1)
	}
}

// removeAll removes all keys by a call of remove, while there are no writes: the outcome of a write
// during which the server died would be unknown.
func (s *soak) removeAll(remove func()) {
	for i := range s.keys {
		k := &s.keys[i]
		k.mu.Lock()
		defer k.mu.Unlock()
		k.version++
		k.removed.Store(k.version)
	}
	remove()
	for i := range s.keys {
		s.keys[i].acked.Store(s.keys[i].version)
	}
}
