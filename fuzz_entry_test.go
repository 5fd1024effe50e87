package ringcache

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/ringcache/ringcache/internal/workload"
)

// input is what is left of a fuzzer's bytes.
type input []byte

// take returns the next n bytes, or what there is.
func (in *input) take(n int) []byte {
	n = min(n, len(*in))
	b := (*in)[:n:n]
	*in = (*in)[n:]
	return b
}

// byte returns the next byte, 0 behind the end.
func (in *input) byte() byte {
	if b := in.take(1); len(b) > 0 {
		return b[0]
	}
	return 0
}

// number returns one of any sign and size, often near the ends of the range: of
// 64 plain bits nearly all would be huge, and none extreme.
func (in *input) number() int64 {
	var b [8]byte
	copy(b[:], in.take(8))
	shift := in.byte()
	n := int64(binary.LittleEndian.Uint64(b[:])) >> (shift % 64)
	if shift >= 0xe0 {
		n ^= math.MinInt64
	}
	return n
}

func (in *input) duration() time.Duration { return time.Duration(in.number()) }

// value returns a few bytes of the input, now and then so often that they make
// up to 8 KB.
func (in *input) value() []byte {
	size := in.byte()
	times := 1 + int(size>>5)
	if times == 8 {
		times += int(in.byte())
	}
	return bytes.Repeat(in.take(int(size%32)), times)
}

// key returns one of a few keys, some of which cross chunks.
func (in *input) key() string {
	b := in.byte() % 8
	return string(bytes.Repeat([]byte{b}, []int{0, 1, 2, 3, 60, 64, 300, 1500}[b]))
}

// addStreams adds inputs that are random bytes, and so of many operations.
func addStreams(f *testing.F, size int) {
	rnd := workload.NewRand(1)
	for i := range 12 {
		data := make([]byte, size)
		fillRandom(rnd, data)
		f.Add(byte(i*23), data)
	}
}

// roomy returns one of a few shapes that have room for roomyBytes without an
// eviction, even if all of it is under keys of the same hash.
func roomy(shape byte) geometry {
	g := tiny(4<<(shape%3), 1024, 64)
	if shape&4 != 0 {
		g.seed = [2]uint64{}
	}
	if shape&8 != 0 {
		g.policy = PolicyFIFO
	}
	if shape&16 != 0 {
		g.laterFrom = 0
	}
	return g
}

const roomyBytes = 24 << 10

// evictions returns how many entries were dropped to make room: a miss is as
// good as a hit only if there were any.
func evictions(c *Cache) uint64 {
	var s Stats
	c.UpdateStats(&s)
	return s.EvictedEntries
}

const (
	never = time.Duration(math.MaxInt64)

	// distant is the age from which on expiries may be taken for never.
	distant = 13 * 365 * 24 * time.Hour
	// lastTick is the age at which the clock stops, and marks end with it.
	lastTick = (math.MaxUint32 - 1) * tick
)

// timed is a cache with a clock that the input moves, and what it must hold.
type timed struct {
	t       *testing.T
	c       *Cache
	age     time.Duration
	ttl     time.Duration // Options.TTL
	held    map[string]timedAnswer
	written int
}

// timedAnswer is what the cache must say of a key until due.
type timedAnswer struct {
	answer
	value []byte
	due   time.Duration
}

func newTimed(t *testing.T, g geometry) *timed {
	m := &timed{t: t, ttl: g.ttl, held: map[string]timedAnswer{}}
	g.now = func() time.Duration { return m.age }
	m.c = mustCache(t, g)
	return m
}

func (m *timed) pass(d time.Duration) {
	if d < 0 {
		d = ^d
	}
	m.age += min(d, never-m.age)
}

func (m *timed) due(ttl time.Duration) time.Duration {
	if ttl == 0 || ttl > never-m.age {
		return never
	}
	return m.age + ttl
}

// stored notes a write of the key, and judges its error.
func (m *timed) stored(k string, v []byte, ttl time.Duration, err error) {
	m.t.Helper()
	delete(m.held, k)
	tooLarge := ttl >= 0 && (len(k) > maxKey || len(v) > m.c.shared.maxValue())
	switch {
	case tooLarge != errors.Is(err, ErrTooLarge), !tooLarge && err != nil:
		m.t.Fatalf("stored %d bytes under %d: got %v", len(v), len(k), err)
	case !tooLarge && ttl >= 0:
		m.held[k] = timedAnswer{present, bytes.Clone(v), m.due(ttl)}
		m.written += len(k) + len(v)
	}
}

// ended is a context with which GetOrLoad finds marks and does not load.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// check asks for the key in all ways, and returns what they agree on. From a
// tick before an entry's end on either answer is right, but a miss is final.
func (m *timed) check(k string) ([]byte, answer) {
	m.t.Helper()
	key := []byte(k)
	v, ok := m.c.HasGet(nil, key)
	left, timedOK := m.c.TTL(key)
	loaded, err := m.c.GetOrLoad(ended, nil, key, nil)
	if timedOK != ok || m.c.Has(key) != ok || (err == nil) != ok || !bytes.Equal(v, loaded) {
		m.t.Fatalf("key %.8q: HasGet says %v, TTL %v, GetOrLoad %v", k, ok, timedOK, err)
	}
	got := unknown
	switch {
	case ok:
		got = present
	case errors.Is(err, ErrAbsent):
		got = absent
	case !errors.Is(err, context.Canceled):
		m.t.Fatalf("key %.8q: GetOrLoad of an ended context: %v", k, err)
	}
	want := m.held[k]
	span := want.due - m.age
	switch {
	case got == unknown && want.answer != unknown && span >= tick && !(want.answer == absent && lastTick-m.age < tick):
		m.t.Fatalf("key %.8q is lost at %v, due at %v", k, m.age, want.due)
	case got != unknown && (got != want.answer || span <= 0 && want.due < distant):
		m.t.Fatalf("key %.8q: answer %d at %v, want %d until %v", k, got, m.age, want.answer, want.due)
	case ok && !bytes.Equal(v, want.value):
		m.t.Fatalf("key %.8q: %d bytes %.32x, want %d: %.32x", k, len(v), v, len(want.value), want.value)
	case ok && left == 0 && want.due < distant, left != 0 && (want.due == never || left > span || left <= span-tick):
		m.t.Fatalf("key %.8q: TTL says %v, want %v", k, left, span)
	}
	if got == unknown {
		delete(m.held, k)
	}
	return v, got
}

// sweep has the expired entries deleted: all that is left is found.
func (m *timed) sweep() {
	m.t.Helper()
	before := m.c.Len()
	n := m.c.DeleteExpired()
	if m.c.Len() != before-n || m.c.DeleteExpired() != 0 {
		m.t.Fatalf("DeleteExpired: %d of %d entries, %d are left", n, before, m.c.Len())
	}
	for k := range m.held {
		m.check(k)
	}
	if m.c.Len() != len(m.held) {
		m.t.Fatalf("Len is %d, %d entries and marks are found", m.c.Len(), len(m.held))
	}
}

// FuzzExpiry gives entries any times to live while any time passes.
func FuzzExpiry(f *testing.F) {
	addStreams(f, 800)
	f.Fuzz(func(t *testing.T, shape byte, data []byte) {
		in := input(data)
		g := roomy(shape)
		g.ttl = max(0, in.duration())
		m := newTimed(t, g)
		for len(in) > 0 && m.written < roomyBytes {
			k := in.key()
			switch in.byte() % 8 {
			case 0:
				v := in.value()
				m.stored(k, v, g.ttl, m.c.Set([]byte(k), v))
			case 1, 2:
				v, ttl := in.value(), in.duration()
				m.stored(k, v, ttl, m.c.SetWithTTL([]byte(k), v, ttl))
			case 3:
				v, there := m.check(k)
				ttl := in.duration()
				if m.c.Touch([]byte(k), ttl) != (there == present) {
					t.Fatalf("Touch of key %.8q, which is there: %v", k, there == present)
				}
				if there == present {
					m.stored(k, v, ttl, nil)
				}
			case 4:
				m.sweep()
			case 5:
				m.pass(in.duration())
			case 6: // to about the end of an entry
				span := min(m.held[k].due, distant) - m.age
				m.pass(max(0, span-tick+time.Duration(in.byte())*time.Millisecond))
			}
			m.check(k)
		}
		m.sweep()
	})
}

// FuzzConditional changes two keys on conditions, in a cache in which nothing
// else happens: every answer is known.
func FuzzConditional(f *testing.F) {
	rnd := workload.NewRand(2)
	for i := range 12 {
		key, data := make([]byte, i*i*2), make([]byte, 800)
		fillRandom(rnd, key)
		fillRandom(rnd, data)
		f.Add(byte(i*23), key, data)
	}
	f.Add(byte(0), make([]byte, maxKey), []byte("\x00\x01\x02\x03"))
	f.Fuzz(func(t *testing.T, shape byte, key, data []byte) {
		in := input(data)
		g := roomy(shape)
		g.ttl = time.Duration(shape>>4) * time.Second
		m := newTimed(t, g)
		for len(in) > 0 && m.written < roomyBytes {
			k := bytes.Clone(key)
			op := in.byte()
			if op&0x80 != 0 {
				k = append(k, 0)
			}
			m.condition(op, k, &in)
			m.check(string(k))
			m.pass(tick / 4)
		}
		m.sweep()
	})
}

// condition does one operation on the key.
func (m *timed) condition(op byte, key []byte, in *input) {
	k := string(key)
	had, is := m.check(k)
	there := is == present
	v, old := in.value(), in.value()
	switch op & 0x70 >> 4 {
	case 0: // seldom what anybody wants
		v = make([]byte, m.c.shared.maxValue()+1)
	case 1, 2, 3:
		v, old = old, had
	}
	want, did := false, false
	var err error
	switch op % 8 {
	case 0:
		err = m.c.Set(key, v)
		did, want = err == nil, true
	case 1:
		want = !there
		did, err = m.c.SetIfAbsent(key, v)
	case 2:
		if op&0x40 != 0 && there {
			v = had
		}
		want = !there || !bytes.Equal(had, v)
		did, err = m.c.SetIfChanged(key, v)
		if !want { // it is renewed
			m.stored(k, v, m.ttl, err)
		}
	case 3:
		want = there && bytes.Equal(had, old)
		did, err = m.c.CompareAndSwap(key, old, v)
	case 4:
		v, err = m.update(key, had, there, v, op)
		did, want = err == nil, v != nil
		if v == nil { // not kept
			did = false
			delete(m.held, k)
		}
	case 5:
		err = m.c.Append(key, v)
		did, want = err == nil, true
		v = append(had, v...)
	case 6:
		got, ok := m.c.GetAndDel([]byte("held "), key)
		if ok != there || string(got) != "held "+string(had) {
			m.t.Fatalf("GetAndDel: %v and %d bytes, want %v and %d", ok, len(got)-5, there, len(had))
		}
		delete(m.held, k)
		return
	default:
		if m.c.Del(key) != there {
			m.t.Fatalf("Del of a key that is there: %v", there)
		}
		delete(m.held, k)
		return
	}
	if did != (want && err == nil) {
		m.t.Fatalf("operation %d: stored %v, want %v", op%8, did, want)
	}
	if want {
		m.stored(k, v, m.ttl, err)
	} else if err != nil {
		m.t.Fatalf("operation %d stores nothing: got %v", op%8, err)
	}
}

// update calls Update with one of several functions, and returns the value that
// it must have stored, nil if none.
func (m *timed) update(key, had []byte, there bool, v []byte, op byte) ([]byte, error) {
	calls := 0
	want := append([]byte{}, v...)
	err := m.c.Update(key, func(old []byte, ok bool) ([]byte, bool) {
		calls++
		if ok != there || !bytes.Equal(old, had) {
			m.t.Errorf("Update gets %v and %d bytes, want %v and %d", ok, len(old), there, len(had))
		}
		switch op >> 4 % 4 {
		case 1:
			want = nil
			return v, false
		case 2: // a part of the copy, with other bytes
			for i := range old {
				old[i]++
			}
			want = append([]byte{}, old[len(old)/2:]...)
			return old[len(old)/2:], true
		}
		clear(old)
		return v, true
	})
	if calls != 1 {
		m.t.Errorf("Update: %d calls back, nobody else writes", calls)
	}
	return want, err
}

var errLoad = errors.New("a load that fails")

// FuzzGetOrLoad loads all kinds of results while any time passes.
func FuzzGetOrLoad(f *testing.F) {
	addStreams(f, 800)
	f.Fuzz(func(t *testing.T, shape byte, data []byte) {
		in := input(data)
		g := roomy(shape)
		g.ttl = max(0, in.duration())
		m := newTimed(t, g)
		for len(in) > 0 && m.written < roomyBytes {
			k := in.key()
			switch op := in.byte(); op % 8 {
			case 0:
				v, ttl := in.value(), in.duration()
				m.stored(k, v, ttl, m.c.SetWithTTL([]byte(k), v, ttl))
			case 1:
				m.c.Del([]byte(k)) // of a mark too
				delete(m.held, k)
			case 2:
				m.pass(in.duration())
			case 3:
				span := min(m.held[k].due, distant) - m.age
				m.pass(max(0, span-tick+time.Duration(in.byte())*time.Millisecond))
			case 4:
				m.sweep()
			default:
				m.load(k, op/8, &in)
			}
			m.check(k)
		}
		m.sweep()
	})
}

// load calls GetOrLoad with a load that ends in the way of that kind.
func (m *timed) load(k string, kind byte, in *input) {
	had, is := m.check(k)
	result := Loaded{Value: in.value(), TTL: in.duration(), Absent: kind%4 == 0}
	if kind == 31 {
		result.Value = make([]byte, m.c.shared.maxValue()+1) // it is returned and not stored
	}
	calls := 0
	out, err := getOrLoad(m.c, k, func(_ context.Context, key []byte) (Loaded, error) {
		calls++
		if string(key) != k {
			m.t.Errorf("the load of key %.8q gets %.8q", k, key)
		}
		clear(key)
		switch kind {
		case 1, 5:
			return result, errLoad
		case 2:
			panic(errLoad)
		case 3:
			runtime.Goexit()
		}
		return result, nil
	})
	want, wantErr, wantCalls := result.Value, error(nil), 1
	switch {
	case is == present:
		want, wantCalls = had, 0
	case is == absent:
		wantErr, wantCalls = ErrAbsent, 0
	case kind == 1 || kind == 2 || kind == 5:
		wantErr = errLoad
	case kind == 3:
		wantErr = ErrLoadExited
	case result.Absent:
		wantErr = ErrAbsent
		m.keep(k, absent, result)
	default:
		m.keep(k, present, result)
	}
	if wantErr != nil {
		want = nil
	}
	if calls != wantCalls || !errors.Is(err, wantErr) || !bytes.Equal(out, want) {
		m.t.Fatalf("GetOrLoad of key %.8q: %d calls, %d bytes, error %v; want %d, %d, %v", k, calls, len(out), err, wantCalls, len(want), wantErr)
	}
}

// keep notes the result of a load.
func (m *timed) keep(k string, a answer, r Loaded) {
	if r.TTL == 0 {
		r.TTL = m.ttl
	}
	if r.TTL >= 0 && (a == absent || len(r.Value) <= m.c.shared.maxValue()) {
		m.held[k] = timedAnswer{a, r.Value, m.due(r.TTL)}
		m.written += len(k) + len(r.Value)
	}
}

// getOrLoad returns what GetOrLoad puts behind the bytes that dst holds, and
// its panic as an error.
func getOrLoad(c *Cache, k string, load LoadFunc) (out []byte, err error) {
	defer func() {
		if p, ok := recover().(*LoadPanic); ok {
			err = p
		}
	}()
	out, err = c.GetOrLoad(context.Background(), []byte("held "), []byte(k), load)
	rest, ok := bytes.CutPrefix(out, []byte("held "))
	if !ok {
		return nil, errors.New("dst is not what it was")
	}
	return rest, err
}
