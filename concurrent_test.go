package ringcache

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/internal/delay"
)

// traffic is what the goroutines of a concurrent test share.
type traffic struct {
	c    *Cache
	keys int
	most int // longest value

	// clock is nil in a run that keeps no history. The race detector wants such
	// runs too: a common clock orders what it would else find unordered.
	clock *historyClock

	// stays tells that nothing expires or is pushed out: a miss must have a reason.
	stays bool

	// resized tells that the cache may be too small for a value at times.
	resized bool

	closing atomic.Bool // set before Close is called
	closed  atomic.Bool // set after it has returned
}

// client is one goroutine's part of the traffic: its randomness, its buffers
// and what it saw.
type client struct {
	*traffic
	id      uint64
	rnd     *rand.Rand
	version uint64
	key     []byte
	val     []byte
	dst     []byte
	vals    [][]byte

	log          []event
	resets       []historyOp
	hits, misses int
}

// event is an operation on a key.
type event struct {
	key uint32
	op  historyOp
}

func (t *traffic) client(id, seed uint64) *client {
	return &client{
		traffic: t,
		id:      id,
		rnd:     newRand(seed<<8 | id),
	}
}

func (t *traffic) tick() uint64 {
	if t.clock == nil {
		return 0
	}
	return t.clock.Tick()
}

func (c *client) note(key uint32, kind historyKind, version, begin uint64) {
	if c.clock != nil {
		op := historyOp{Kind: kind, Version: version, Begin: begin, End: c.tick()}
		c.log = append(c.log, event{key, op})
	}
}

// trafficKey returns the key with that id in buf; some are long.
func trafficKey(buf []byte, id uint32) []byte {
	size := 4
	if id%16 == 9 {
		size = 60 + int(id)%100
	}
	k := stamp{id: id, size: size}.filled(buf, math.MaxUint64)
	k[0], k[1], k[2], k[3] = byte(id), byte(id>>8), byte(id>>16), byte(id>>24)
	return k
}

// size draws a length: small as a rule, now and then up to the longest.
func (c *client) size() int {
	switch x := c.rnd.IntN(1000); {
	case x < 2:
		return c.most - c.rnd.IntN(c.most/2)
	case x < 100:
		return selfSize + c.rnd.IntN(min(4096, c.most-selfSize))
	default:
		return selfSize + c.rnd.IntN(min(200, c.most-selfSize))
	}
}

// popular draws a key, that of rank r with a probability in proportion to r^-0.7.
func (c *client) popular() uint32 {
	return uint32(float64(c.keys) * math.Pow(c.rnd.Float64(), 1/(1-0.7)))
}

func (c *client) step() error {
	id := c.popular()
	c.key = trafficKey(c.key, id)
	switch x := c.rnd.IntN(100); {
	case x < 35:
		return c.set(id)
	case x < 39:
		begin := c.tick()
		c.c.Del(c.key)
		c.note(id, opRemoved, 0, begin)
		return nil
	case x < 41:
		begin := c.tick()
		got, ok := c.c.GetAndDel(c.dst[:0], c.key)
		c.dst = got
		c.note(id, opRemoved, 0, begin)
		if !ok {
			return nil
		}
		return c.read(id, got, ok, begin)
	case x < 42:
		return c.live()
	case x < 46:
		return c.view(id)
	case x < 49:
		return c.batch(id)
	case x < 50:
		begin := c.tick()
		if !c.c.Has(c.key) {
			c.note(id, opMissed, 0, begin)
		}
		return nil
	default:
		begin := c.tick()
		got, ok := c.c.HasGet(c.dst[:0], c.key)
		c.dst = got
		return c.read(id, got, ok, begin)
	}
}

func (c *client) reset() {
	begin := c.tick()
	c.c.Reset()
	c.resets = append(c.resets, historyOp{Kind: opRemoved, Begin: begin, End: c.tick()})
}

func (c *client) set(id uint32) error {
	c.version++
	s := stamp{id: id, version: c.id<<40 | c.version, size: c.size()}
	c.val = s.value(c.val)
	wasClosed := c.closed.Load()
	begin := c.tick()
	err := c.write()
	clear(c.val) // a cache that kept it would show zeros
	if c.resized && errors.Is(err, ErrTooLarge) {
		c.note(id, opRemoved, 0, begin)
		return nil
	}
	c.note(id, opWrote, s.version, begin)
	if err != nil && !(errors.Is(err, ErrClosed) && c.closing.Load()) {
		return fmt.Errorf("set %v: %w", s, err)
	}
	if err == nil && wasClosed {
		return fmt.Errorf("set %v: no error after Close", s)
	}
	return nil
}

// write stores the value by one of the calls that do so whatever is there, or
// that a history may take for one: what is not stored cannot be read.
func (c *client) write() (err error) {
	switch c.rnd.IntN(9) {
	case 0:
		return c.c.SetWithTTL(c.key, c.val, c.someTTL())
	case 3:
		return c.c.UpdateWithTTL(c.key, c.someTTL(), func([]byte, bool) ([]byte, bool) {
			return c.val, true
		})
	case 1:
		_, err = c.c.SetIfChanged(c.key, c.val)
	case 2:
		err = c.c.Update(c.key, func([]byte, bool) ([]byte, bool) { return c.val, true })
	default:
		err = c.c.Set(c.key, c.val)
	}
	return err
}

func (c *client) someTTL() time.Duration {
	ttls := []time.Duration{0, time.Hour, 150 * time.Millisecond}
	if c.stays {
		ttls = ttls[:2]
	}
	return ttls[c.rnd.IntN(len(ttls))]
}

// live makes a call about times to live, which changes no value.
func (c *client) live() error {
	switch c.rnd.IntN(4) {
	case 0:
		c.c.DeleteExpired()
	case 1:
		c.c.TTL(c.key)
	default:
		c.c.Touch(c.key, c.someTTL())
	}
	return nil
}

func (c *client) read(id uint32, got []byte, ok bool, begin uint64) error {
	if !ok {
		c.misses++
		c.note(id, opMissed, 0, begin)
		return nil
	}
	c.hits++
	s, err := readStamp(got)
	if err != nil {
		return fmt.Errorf("read key %d: %w", id, err)
	}
	if s.id != id {
		return fmt.Errorf("read key %d: got the value of another: %v", id, s)
	}
	c.note(id, opRead, s.version, begin)
	return nil
}

func (c *client) view(id uint32) error {
	var err error
	begin := c.tick()
	ok := c.c.View(c.key, func(v []byte) {
		runtime.Gosched() // others now meet the lock
		err = c.read(id, v, true, begin)
	})
	if !ok {
		c.misses++
		c.note(id, opMissed, 0, begin)
	}
	return err
}

func (c *client) batch(first uint32) error {
	const n = 20
	c.vals = slices.Grow(c.vals[:0], n)[:n]
	keys := make([][]byte, n)
	id := func(i int) uint32 { return (first + uint32(i/2)) % uint32(c.keys) } // each twice
	for i := range keys {
		keys[i] = trafficKey(nil, id(i))
	}
	begin := c.tick()
	c.dst, _ = c.c.GetBatch(c.dst[:0], keys, c.vals)
	for i, v := range c.vals {
		if err := c.read(id(i), v, v != nil, begin); err != nil {
			return fmt.Errorf("value %d of a batch: %w", i, err)
		}
	}
	return nil
}

// watch asks for the gauges again and again, until stop is closed.
func (t *traffic) watch(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		var s Stats
		t.c.UpdateStats(&s)
		t.c.Len()
		for range 50 {
			runtime.Gosched()
		}
	}
}

const clients = 8

// run sends the traffic of all clients, steps operations each, and returns
// them with what they saw.
func (t *traffic) run(tb testing.TB, seed uint64, steps int) []*client {
	tb.Helper()
	var wg, aside sync.WaitGroup
	var all []*client
	errs := make(chan error, clients)
	for id := range uint64(clients) {
		c := t.client(id, seed)
		all = append(all, c)
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := range steps {
				if id == 0 && n == steps*2/5 {
					c.reset()
				}
				if err := c.step(); err != nil {
					errs <- fmt.Errorf("client %d, step %d: %w", id, n, err)
					return
				}
			}
		}()
	}
	stop := make(chan struct{})
	aside.Add(1)
	go func() {
		defer aside.Done()
		t.watch(stop)
	}()
	wg.Wait()
	close(stop)
	aside.Wait()
	close(errs)
	for err := range errs {
		assert.NoError(tb, err, "seed %d", seed)
	}
	return all
}

// checkHistories checks the history of every key, and that the run was one
// that could have gone wrong.
func (t *traffic) checkHistories(tb testing.TB, seed uint64, all []*client) {
	tb.Helper()
	histories := make([][]historyOp, t.keys)
	var resets []historyOp // each removes every key
	hits, misses := 0, 0
	for _, c := range all {
		hits += c.hits
		misses += c.misses
		resets = append(resets, c.resets...)
		for _, e := range c.log {
			histories[e.key] = append(histories[e.key], e.op)
		}
	}
	for key, ops := range histories {
		ops = append(ops, resets...)
		assert.NoError(tb, checkHistory(ops), "seed %d: key %d", seed, key)
		if t.stays {
			assert.NoError(tb, checkMisses(ops), "seed %d: key %d", seed, key)
		}
	}
	var s Stats
	t.c.UpdateStats(&s)
	// Under the race detector a run is too short to fill a cache of 32 MB.
	evicted := s.EvictedEntries > 0 || raceEnabled && s.MaxBytesSize >= minMaxBytes
	if t.stays {
		evicted = true
		assert.Zero(tb, s.EvictedEntries, "nothing was to be pushed out")
		t.requireLockFree(tb)
	}
	const little = "seed %d: the run proves too little"
	assert.GreaterOrEqual(tb, hits, 1000, little, seed)
	assert.GreaterOrEqual(tb, misses, 1000, little, seed)
	assert.NotEmpty(tb, resets, little, seed)
	assert.True(tb, evicted, little, seed)
}

// requireLockFree fails if more than one lookup in ten took the lock. It is for runs
// without large keys.
func (t *traffic) requireLockFree(tb testing.TB) {
	tb.Helper()
	lookups, misses := t.c.counters.Sum()
	locked := t.c.counters.Locked()
	tb.Logf("%d lookups, %d misses, %d of them under the lock", lookups, misses, locked)
	if !delay.Enabled && t.c.shared.Compression == nil { // else writers are held up while they hold it
		assert.Less(tb, 10*locked, lookups, "lookups are to take no lock")
	}
}

// concurrentCases are the shapes for concurrent tests: one where every
// goroutine meets every other in two buckets, one in between, and the default.
func concurrentCases() []geometry {
	return []geometry{tiny(2, 256, 64), tiny(16, 4096, 16), defaultGeometry(minMaxBytes)}
}

// newTraffic returns the traffic of a new cache.
func newTraffic(t testing.TB, g geometry) *traffic {
	// About three times as many keys as there is room for, bounded.
	keys := min(max(g.maxBytes/64, 64), 20_000)
	return &traffic{c: mustCache(t, g), keys: keys, most: g.maxBytes / 16}
}

// concurrentSteps is how many steps each goroutine takes.
func concurrentSteps() int {
	if raceEnabled {
		return 3_000
	}
	return 20_000
}

func TestConcurrent_Histories(t *testing.T) {
	t.Parallel()
	for _, g := range concurrentCases() {
		t.Run(describe(g), func(t *testing.T) {
			for seed := range uint64(rounds()) {
				tr := newTraffic(t, g)
				tr.clock = new(historyClock)
				tr.checkHistories(t, seed, tr.run(t, seed, concurrentSteps()))
			}
		})
	}
}

// Where there is room for everything, and nothing is large or expires, a key that was
// set is found until it is removed; and lookups hardly ever take the lock.
func TestConcurrent_HistoriesWhereNothingIsDropped(t *testing.T) {
	for _, buckets := range []int{2, 16} {
		t.Run(fmt.Sprintf("%d buckets", buckets), func(t *testing.T) {
			g := tiny(buckets, 64<<10, 1024/buckets)
			for seed := range uint64(rounds()) {
				tr := &traffic{c: mustCache(t, g), keys: 300, most: 2000, stays: true}
				tr.clock = new(historyClock)
				tr.checkHistories(t, seed, tr.run(t, seed, concurrentSteps()/2))
			}
		})
	}
}

// What comes back from the cold part is what was set last, or a miss where the Compressor fails.
func TestConcurrent_HistoriesOfTheColdPart(t *testing.T) {
	t.Parallel()
	for _, by := range []Compressor{flateCompressor{}, &badCompressor{one: 4}} {
		t.Run(by.ID(), func(t *testing.T) {
			for seed := range uint64(rounds()) {
				counting := &countingCompressor{Compressor: by}
				tr := newTraffic(t, withCold(tiny(4, 512, 64), counting))
				tr.clock = new(historyClock)
				tr.checkHistories(t, seed, tr.run(t, seed, 2*concurrentSteps()))
				s := tr.c.Stats()
				t.Logf("%d values came back, %d did not",
					counting.unpacked.Load(), s.Compression.DecompressErrors)
				require.Greater(t, counting.unpacked.Load(), uint64(10), "the run proves too little")
				_, bad := by.(*badCompressor)
				require.Equal(t, bad, s.Compression.DecompressErrors > 0)
			}
		})
	}
}

// Without a history, the goroutines share nothing but the cache.
func TestConcurrent_Unordered(t *testing.T) {
	t.Parallel()
	for _, g := range concurrentCases() {
		t.Run(describe(g), func(t *testing.T) {
			for seed := range uint64(rounds()) {
				newTraffic(t, g).run(t, seed, concurrentSteps())
			}
		})
	}
}

// Close in the middle of the traffic: no call may fault or hang, and none that
// begins later may find or store anything.
func TestConcurrent_CloseDuringTraffic(t *testing.T) {
	for _, g := range concurrentCases() {
		t.Run(describe(g), func(t *testing.T) {
			for seed := range uint64(3 * rounds()) {
				tr := newTraffic(t, g)
				var closer sync.WaitGroup
				closer.Add(1)
				go func() {
					defer closer.Done()
					for tr.c.Len() < 50 {
						runtime.Gosched()
					}
					tr.closing.Store(true)
					closeCache(t, tr.c)
					tr.closed.Store(true)
				}()
				tr.run(t, seed, 2000)
				closer.Wait()
				requireNothingHeld(t, tr.c)
			}
		})
	}
}

// requireNothingHeld fails if a cache that is closed holds anything.
func requireNothingHeld(t *testing.T, c *Cache) {
	t.Helper()
	var s Stats
	c.UpdateStats(&s)
	require.Zero(t, c.Len())
	require.Zero(t, s.EntriesCount+s.BytesSize+s.ReservedBytes, "%v", s)
}
