package model

import (
	"bytes"
	"context"
	"errors"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/record"
	"github.com/ringcache/ringcache/internal/ringtest"
)

const (
	never = time.Duration(math.MaxInt64)

	// distant is the age from which on expiries may be taken for never.
	distant = 13 * 365 * 24 * time.Hour
	// lastTick is the age at which the clock stops, and negative entries end with it.
	lastTick = (math.MaxUint32 - 1) * clock.Tick
)

// timed is a cache with a clock that the input moves, and what it must hold.
type timed struct {
	t       *testing.T
	c       *ringcache.Cache
	age     time.Duration
	ttl     time.Duration // Options.TTL
	held    map[string]timedAnswer
	written int
}

// answer is what a lookup answers.
type answer byte

const (
	answerMiss answer = iota
	answerHit
	answerNegative
)

// timedAnswer is what the cache must say of a key until due.
type timedAnswer struct {
	answer
	value []byte
	due   time.Duration
}

func newTimed(t *testing.T, g ringtest.Shape) *timed {
	m := &timed{t: t, ttl: g.TTL, held: map[string]timedAnswer{}}
	g.Elapsed = func() time.Duration { return m.age }
	m.c = ringtest.MustCache(t, g)
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
	tooLarge := ttl >= 0 && (len(k) > record.MaxKey || len(v) > ringtest.Shared(m.c).MaxValue())
	switch {
	case ringtest.IsBrief(ttl):
		require.ErrorIs(m.t, err, ringcache.ErrTTLTooShort)
	case tooLarge != errors.Is(err, ringcache.ErrTooLarge), !tooLarge && err != nil:
		require.Fail(m.t, "not the error", "%d bytes under %d: got %v", len(v), len(k), err)
	case !tooLarge && ttl >= 0:
		m.held[k] = timedAnswer{answerHit, bytes.Clone(v), m.due(ttl)}
		m.written += len(k) + len(v)
	}
}

// ended is a context with which GetOrLoad finds negative entries and does not load.
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
	loaded, err := m.c.GetOrLoad(ended, nil, key, ringtest.NeverLoads)
	if timedOK != ok || m.c.Has(key) != ok || (err == nil) != ok || !bytes.Equal(v, loaded) {
		require.Fail(m.t, "no agreement",
			"key %.8q: HasGet says %v, TTL %v, GetOrLoad %v", k, ok, timedOK, err)
	}
	got := answerMiss
	switch {
	case ok:
		got = answerHit
	case errors.Is(err, ringcache.ErrAbsent):
		got = answerNegative
	default:
		require.ErrorIs(m.t, err, context.Canceled, "key %.8q: GetOrLoad of an ended context", k)
	}
	want := m.held[k]
	span := want.due - m.age
	mayBeOver := span < clock.Tick || want.answer == answerNegative && lastTick-m.age < clock.Tick
	timeIsWrong := left != 0 && (want.due == never || left > span || left <= span-clock.Tick)
	switch {
	case got == answerMiss && want.answer != answerMiss && !mayBeOver:
		require.Fail(m.t, "it is lost", "key %.8q, at %v, due at %v", k, m.age, want.due)
	case got != answerMiss && (got != want.answer || span <= 0 && want.due < distant):
		require.Fail(m.t, "not the answer", "key %.8q: %d at %v, want %d until %v",
			k, got, m.age, want.answer, want.due)
	case ok && !bytes.Equal(v, want.value):
		require.Fail(m.t, "not the value", "key %.8q: %d bytes %.32x, want %d: %.32x",
			k, len(v), v, len(want.value), want.value)
	case ok && left == 0 && want.due < distant, timeIsWrong:
		require.Fail(m.t, "not the time", "key %.8q: TTL says %v, want %v", k, left, span)
	}
	if got == answerMiss {
		delete(m.held, k)
	}
	return v, got
}

// sweep has the expired entries deleted: all that is left is found.
func (m *timed) sweep() {
	m.t.Helper()
	before := m.c.Len()
	n := m.c.DeleteExpired()
	require.Equal(m.t, before-n, m.c.Len(), "left of %d, less %d that had expired", before, n)
	require.Zero(m.t, m.c.DeleteExpired(), "once more")
	for k := range m.held {
		m.check(k)
	}
	require.Equal(m.t, len(m.held), m.c.Len(), "entries and negative entries")
}

// FuzzExpiry gives entries any times to live while any time passes.
func FuzzExpiry(f *testing.F) {
	ringtest.AddStreams(f, 800)
	f.Fuzz(func(t *testing.T, shape byte, data []byte) {
		in := ringtest.Input(data)
		g := ringtest.Roomy(ringtest.Reliable(shape))
		if g.TTL = max(0, in.Duration()); ringtest.IsBrief(g.TTL) {
			g.TTL = clock.Tick
		}
		m := newTimed(t, g)
		for len(in) > 0 && m.written < ringtest.RoomyBytes {
			m.written += in.Sink(m.c)
			k := in.Key()
			switch in.Byte() % 8 {
			case 0:
				v := in.Value()
				m.stored(k, v, g.TTL, m.c.Set([]byte(k), v))
			case 1, 2:
				v, ttl := in.Value(), in.Duration()
				m.stored(k, v, ttl, m.c.SetWithTTL([]byte(k), v, ttl))
			case 3:
				v, there := m.check(k)
				ttl := in.Duration()
				found := m.c.Touch([]byte(k), ttl)
				require.Equal(t, there == answerHit, found, "key %.8q", k)
				if found && !ringtest.IsBrief(ttl) {
					m.stored(k, v, ttl, nil)
				} else {
					delete(m.held, k)
				}
			case 4:
				m.sweep()
			case 5:
				m.pass(in.Duration())
			case 6: // to about the end of an entry
				span := min(m.held[k].due, distant) - m.age
				m.pass(max(0, span-clock.Tick+time.Duration(in.Byte())*time.Millisecond))
			}
			m.check(k)
		}
		m.sweep()
	})
}

// FuzzConditional changes two keys on conditions, in a cache in which nothing
// else happens: every answer is known.
func FuzzConditional(f *testing.F) {
	rnd := ringtest.NewRand(2)
	for i := range 12 {
		key, data := make([]byte, i*i*2), make([]byte, 800)
		ringtest.FillRandom(rnd, key)
		ringtest.FillRandom(rnd, data)
		f.Add(byte(i*23), key, data)
	}
	f.Add(byte(0), make([]byte, record.MaxKey), []byte("\x00\x01\x02\x03"))
	f.Fuzz(func(t *testing.T, shape byte, key, data []byte) {
		in := ringtest.Input(data)
		g := ringtest.Roomy(ringtest.Reliable(shape))
		g.TTL = time.Duration(shape>>4) * time.Second
		m := newTimed(t, g)
		for len(in) > 0 && m.written < ringtest.RoomyBytes {
			m.written += in.Sink(m.c)
			k := bytes.Clone(key)
			op := in.Byte()
			if op&0x80 != 0 {
				k = append(k, 0)
			}
			m.condition(op, k, &in)
			m.check(string(k))
			m.pass(clock.Tick / 4)
		}
		m.sweep()
	})
}

// condition does one operation on the key.
func (m *timed) condition(op byte, key []byte, in *ringtest.Input) {
	k := string(key)
	had, is := m.check(k)
	there, due := is == answerHit, m.held[k].due
	v, old, ttl := in.Value(), in.Value(), m.ttl // of a new entry
	timed := op&0x08 != 0
	if timed {
		ttl = in.Duration()
	}
	switch op & 0x70 >> 4 {
	case 0: // seldom what anybody wants
		v = make([]byte, ringtest.Shared(m.c).MaxValue()+1)
	case 1, 2, 3:
		v, old = old, had
	}
	want, did := false, false
	var err error
	switch op % 8 {
	case 0:
		if there = false; timed { // whatever is there
			err = m.c.SetWithTTL(key, v, ttl)
		} else {
			err = m.c.Set(key, v)
		}
		did, want = err == nil, true
	case 1:
		want = !there
		did, err = m.setIfAbsent(key, had, there, v, ttl)
	case 2:
		if op&0x40 != 0 && there {
			v = had
		}
		want = !there || !bytes.Equal(had, v)
		ttl = m.ttl
		did, err = m.c.SetIfChanged(key, v)
	case 3:
		want = there && bytes.Equal(had, old)
		did, err = m.c.CompareAndSwap(key, old, v)
	case 4:
		v, err = m.update(key, had, there, v, op, ttl)
		did, want = err == nil, v != nil
		if v == nil { // not kept
			did = false
			delete(m.held, k)
		}
	case 5:
		ttl = m.ttl
		err = m.c.Update(key, ringtest.Append(v))
		did, want = err == nil, true
		v = append(had, v...)
	case 6:
		got, ok := m.c.GetAndDel([]byte("held "), key)
		require.Equal(m.t, there, ok)
		require.Equal(m.t, "held "+string(had), string(got))
		delete(m.held, k)
		return
	default:
		require.Equal(m.t, there, m.c.Del(key))
		delete(m.held, k)
		return
	}
	require.Equal(m.t, want && err == nil, did, "operation %d stores", op%8)
	switch {
	case want && there: // it keeps its expiry
		m.stored(k, v, 0, err)
		if a, ok := m.held[k]; ok {
			a.due = due
			m.held[k] = a
		}
	case want:
		m.stored(k, v, ttl, err)
	default:
		require.NoError(m.t, err, "operation %d stores nothing", op%8)
	}
}

// setIfAbsent calls SetIfAbsent, and reports whether it had to store.
func (m *timed) setIfAbsent(
	key, had []byte, there bool, v []byte, ttl time.Duration,
) (did bool, err error) {
	out, did, err := m.c.SetIfAbsent([]byte("held "), key, v, ttl)
	require.Equal(m.t, "held "+string(had), string(out))
	if !there && err == nil && ttl < 0 {
		require.False(m.t, did, "it has expired already")
		return true, nil
	}
	return did, err
}

// update calls Update with one of several functions, and returns the value that
// it must have stored, nil if none.
func (m *timed) update(
	key, had []byte, there bool, v []byte, op byte, ttl time.Duration,
) ([]byte, error) {
	calls := 0
	want := append([]byte{}, v...)
	var ofNew []time.Duration
	if op&0x08 != 0 {
		ofNew = []time.Duration{ttl}
	}
	err := m.c.Update(key, ringtest.Replace(func(old []byte, ok bool) ([]byte, bool) {
		calls++
		require.Equal(m.t, there, ok)
		require.Equal(m.t, string(had), string(old))
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
	}, ofNew...))
	require.Equal(m.t, 1, calls, "nobody else writes")
	return want, err
}

var errLoad = errors.New("a load that fails")

// FuzzGetOrLoad loads all kinds of results while any time passes.
func FuzzGetOrLoad(f *testing.F) {
	ringtest.AddStreams(f, 800)
	f.Fuzz(func(t *testing.T, shape byte, data []byte) {
		in := ringtest.Input(data)
		g := ringtest.Roomy(ringtest.Reliable(shape))
		if g.TTL = max(0, in.Duration()); ringtest.IsBrief(g.TTL) {
			g.TTL = clock.Tick
		}
		m := newTimed(t, g)
		for len(in) > 0 && m.written < ringtest.RoomyBytes {
			m.written += in.Sink(m.c)
			k := in.Key()
			switch op := in.Byte(); op % 8 {
			case 0:
				v, ttl := in.Value(), in.Duration()
				m.stored(k, v, ttl, m.c.SetWithTTL([]byte(k), v, ttl))
			case 1:
				m.c.Del([]byte(k)) // of a negative entry too
				delete(m.held, k)
			case 2:
				m.pass(in.Duration())
			case 3:
				span := min(m.held[k].due, distant) - m.age
				m.pass(max(0, span-clock.Tick+time.Duration(in.Byte())*time.Millisecond))
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
func (m *timed) load(k string, kind byte, in *ringtest.Input) {
	had, is := m.check(k)
	result := ringtest.Loaded{Value: in.Value(), TTL: in.Duration(),
		Err: ringtest.AbsentIf(kind%4 == 0)}
	if kind == 31 {
		result.Value = make([]byte, ringtest.Shared(m.c).MaxValue()+1) // it is returned and not stored
	}
	calls := 0
	out, err := getOrLoad(m.c, k, func(_ context.Context, key []byte) ([]byte, time.Duration, error) {
		calls++
		assert.Equal(m.t, k, string(key))
		clear(key)
		switch kind {
		case 1, 5:
			return result.Value, result.TTL, errLoad
		case 2:
			panic(errLoad)
		case 3:
			runtime.Goexit()
		}
		return result.Value, result.TTL, result.Err
	})
	want, wantErr, wantCalls := result.Value, error(nil), 1
	switch {
	case is == answerHit:
		want, wantCalls = had, 0
	case is == answerNegative:
		wantErr, wantCalls = ringcache.ErrAbsent, 0
	case kind == 1 || kind == 2 || kind == 5:
		wantErr = errLoad
	case kind == 3:
		require.ErrorContains(m.t, err, ringtest.ExitedText, "key %.8q", k)
		wantErr = err
	case result.Err != nil:
		wantErr = ringcache.ErrAbsent
		m.keep(k, answerNegative, result)
	default:
		m.keep(k, answerHit, result)
	}
	if wantErr != nil {
		want = nil
	}
	require.Equal(m.t, wantCalls, calls, "loads of key %.8q", k)
	require.ErrorIs(m.t, err, wantErr, "key %.8q", k)
	require.True(m.t, bytes.Equal(out, want), "key %.8q: %.64x, want %.64x", k, out, want)
}

// keep notes the result of a load.
func (m *timed) keep(k string, a answer, r ringtest.Loaded) {
	if r.TTL == 0 {
		r.TTL = m.ttl // not brief
	}
	fits := a == answerNegative || len(r.Value) <= ringtest.Shared(m.c).MaxValue()
	if r.TTL >= 0 && !ringtest.IsBrief(r.TTL) && fits {
		m.held[k] = timedAnswer{a, r.Value, m.due(r.TTL)}
		m.written += len(k) + len(r.Value)
	}
}

// getOrLoad returns what GetOrLoad puts behind the bytes that dst holds, and
// its panic as an error.
func getOrLoad(c *ringcache.Cache, k string, load ringtest.LoadFunc) (out []byte, err error) {
	defer func() {
		if p, ok := recover().(*ringcache.LoadPanic); ok {
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
