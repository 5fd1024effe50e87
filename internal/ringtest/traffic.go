package ringtest

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

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/torn"
)

// Traffic is what the goroutines of a concurrent test share.
type Traffic struct {
	C     *ringcache.Cache
	Keys  int
	Usual int // nine values in ten are at most that much longer than a stamp
	Most  int // longest value

	// clock is nil in a run that keeps no history. The race detector wants such
	// runs too: a common clock orders what it would else find unordered.
	Clock *HistoryClock

	// stays tells that nothing expires or is pushed out: a miss must have a reason.
	Stays bool

	// resized tells that the cache may be too small for a value at times.
	Resized bool

	Closing atomic.Bool // set before Close is called
	Closed  atomic.Bool // set after it has returned
}

func (t *Traffic) client(id, seed uint64) *client {
	return &client{
		Traffic: t,
		id:      id,
		rnd:     NewRand(seed<<8 | id),
	}
}

func (t *Traffic) tick() uint64 {
	if t.Clock == nil {
		return 0
	}
	return t.Clock.Tick()
}

// watch asks for the gauges again and again, until stop is closed.
func (t *Traffic) watch(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		var s ringcache.Stats
		t.C.UpdateStats(&s)
		t.C.Len()
		for range 50 {
			runtime.Gosched()
		}
	}
}

// Run sends the traffic of all clients, steps operations each, and returns
// them with what they saw.
func (t *Traffic) Run(tb testing.TB, seed uint64, steps int) []*client {
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

// CheckHistories checks the history of every key, and that the run was one
// that could have gone wrong.
func (t *Traffic) CheckHistories(tb testing.TB, seed uint64, all []*client) {
	tb.Helper()
	histories := make([][]historyOp, t.Keys)
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
		if t.Stays {
			assert.NoError(tb, checkMisses(ops), "seed %d: key %d", seed, key)
		}
	}
	var s ringcache.Stats
	t.C.UpdateStats(&s)
	// Under the race detector a run is too short to fill a cache of 32 MB.
	evicted := s.EvictedEntries > 0 || RaceEnabled && t.Most >= MaxValue && !t.Resized
	if t.Stays {
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
func (t *Traffic) requireLockFree(tb testing.TB) {
	tb.Helper()
	n := Counters(t.C).Sum()
	tb.Logf("%d lookups, %d misses, %d of them under the lock", n.Lookups, n.Misses, n.Locked)
	// else writers are held up while they hold it
	if !torn.Delays && Shared(t.C).Compression == nil {
		assert.Less(tb, 10*n.Locked, n.Lookups, "lookups are to take no lock")
	}
}

// NewTraffic returns the traffic of a new cache.
func NewTraffic(t testing.TB, g Shape) *Traffic {
	// About three times as many keys as there is room for, bounded.
	keys := min(max(g.MaxBytes/64, 64), 20_000)
	return &Traffic{C: MustCache(t, g), Keys: keys, Usual: 200, Most: g.MaxBytes / 16}
}

// ConcurrentCases are the shapes for concurrent tests: one where every
// goroutine meets every other in two buckets, one in between, and the default.
func ConcurrentCases() []Shape {
	return []Shape{Tiny(2, 256, 64), Tiny(16, 4096, 16), Default(MinBytes)}
}

// ConcurrentSteps returns the number of steps of each goroutine.
func ConcurrentSteps() int {
	switch {
	case RaceEnabled:
		return 3_000
	case *LongRun:
		return 20_000
	default:
		return 6_000
	}
}

// RequireNothingHeld fails if a cache that is closed holds anything.
func RequireNothingHeld(t *testing.T, c *ringcache.Cache) {
	t.Helper()
	var s ringcache.Stats
	c.UpdateStats(&s)
	require.Zero(t, c.Len())
	require.Zero(t, s.EntriesCount+s.BytesSize+s.ReservedBytes, "%v", s)
}

// TrafficKey returns the key with that id in buf; some are long.
func TrafficKey(buf []byte, id uint32) []byte {
	size := 4
	if id%16 == 9 {
		size = 60 + int(id)%100
	}
	k := Stamp{ID: id, Size: size}.filled(buf, math.MaxUint64)
	k[0], k[1], k[2], k[3] = byte(id), byte(id>>8), byte(id>>16), byte(id>>24)
	return k
}

// client is one goroutine's part of the traffic: its randomness, its buffers
// and what it saw.
type client struct {
	*Traffic
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

func (c *client) note(key uint32, kind historyKind, version, begin uint64) {
	if c.Clock != nil {
		op := historyOp{Kind: kind, Version: version, Begin: begin, End: c.tick()}
		c.log = append(c.log, event{key, op})
	}
}

// size draws a length: small as a rule, now and then up to the longest.
func (c *client) size() int {
	switch x := c.rnd.IntN(1000); {
	case x < 5:
		return c.Most - c.rnd.IntN(c.Most/2)
	case x < 100:
		return SelfSize + c.rnd.IntN(min(4096, c.Most-SelfSize))
	default:
		return SelfSize + c.rnd.IntN(min(c.Usual, c.Most-SelfSize))
	}
}

// popular draws a key, that of rank r with a probability in proportion to r^-0.7.
func (c *client) popular() uint32 {
	return uint32(float64(c.Keys) * math.Pow(c.rnd.Float64(), 1/(1-0.7)))
}

func (c *client) step() error {
	id := c.popular()
	c.key = TrafficKey(c.key, id)
	switch x := c.rnd.IntN(100); {
	case x < 35:
		return c.set(id)
	case x < 39:
		begin := c.tick()
		c.C.Del(c.key)
		c.note(id, opRemoved, 0, begin)
		return nil
	case x < 41:
		begin := c.tick()
		got, ok := c.C.GetAndDel(c.dst[:0], c.key)
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
		if !c.C.Has(c.key) {
			c.note(id, opMissed, 0, begin)
		}
		return nil
	default:
		begin := c.tick()
		got, ok := c.C.HasGet(c.dst[:0], c.key)
		c.dst = got
		return c.read(id, got, ok, begin)
	}
}

func (c *client) reset() {
	begin := c.tick()
	c.C.Reset()
	c.resets = append(c.resets, historyOp{Kind: opRemoved, Begin: begin, End: c.tick()})
}

func (c *client) set(id uint32) error {
	c.version++
	s := Stamp{ID: id, Version: c.id<<40 | c.version, Size: c.size()}
	c.val = s.Value(c.val)
	wasClosed := c.Closed.Load()
	begin := c.tick()
	err := c.write()
	clear(c.val) // a cache that kept it would show zeros
	if c.Resized && errors.Is(err, ringcache.ErrTooLarge) {
		c.note(id, opRemoved, 0, begin)
		return nil
	}
	c.note(id, opWrote, s.Version, begin)
	if err != nil && !(errors.Is(err, ringcache.ErrClosed) && c.Closing.Load()) {
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
		return c.C.SetWithTTL(c.key, c.val, c.someTTL())
	case 3:
		return c.C.Update(c.key, func(e *Entry) { e.SetWithTTL(c.val, c.someTTL()) })
	case 1:
		_, err = c.C.SetIfChanged(c.key, c.val)
	case 2:
		err = c.C.Update(c.key, Store(c.val))
	default:
		err = c.C.Set(c.key, c.val)
	}
	return err
}

func (c *client) someTTL() time.Duration {
	ttls := []time.Duration{0, time.Hour, 150 * time.Millisecond}
	if c.Stays {
		ttls = ttls[:2]
	}
	return ttls[c.rnd.IntN(len(ttls))]
}

// live makes a call about times to live, which changes no value.
func (c *client) live() error {
	switch c.rnd.IntN(4) {
	case 0:
		c.C.DeleteExpired()
	case 1:
		c.C.TTL(c.key)
	default:
		c.C.Touch(c.key, c.someTTL())
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
	s, err := ReadStamp(got)
	if err != nil {
		return fmt.Errorf("read key %d: %w", id, err)
	}
	if s.ID != id {
		return fmt.Errorf("read key %d: got the value of another: %v", id, s)
	}
	c.note(id, opRead, s.Version, begin)
	return nil
}

func (c *client) view(id uint32) error {
	var err error
	begin := c.tick()
	ok := View(c.C, c.key, func(v []byte) {
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
	id := func(i int) uint32 { return (first + uint32(i/2)) % uint32(c.Keys) } // each twice
	for i := range keys {
		keys[i] = TrafficKey(nil, id(i))
	}
	begin := c.tick()
	c.dst, _ = c.C.GetBatch(c.dst[:0], keys, c.vals)
	for i, v := range c.vals {
		if err := c.read(id(i), v, v != nil, begin); err != nil {
			return fmt.Errorf("value %d of a batch: %w", i, err)
		}
	}
	return nil
}

const clients = 8

// event is an operation on a key.
type event struct {
	key uint32
	op  historyOp
}
