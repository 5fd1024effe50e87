package room

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/clock"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// gauges are the fields of Stats that are no counters.
var gauges = []string{
	"EntriesCount", "BytesSize", "MaxBytesSize", "EffectiveMaxBytes", "ReservedBytes", "DeadBytes",
	"IndexBytes", "Compression.ColdEntries",
}

// statNumber is a number in a struct, or in one that is nested in it.
type statNumber struct {
	name  string // Policy.Ghosts
	field reflect.Value
}

// numbersOf returns the numbers of a struct in their order.
func numbersOf(v reflect.Value, path string) (all []statNumber) {
	for i := range v.NumField() {
		name := path + v.Type().Field(i).Name
		if v.Field(i).Kind() == reflect.Struct {
			all = append(all, numbersOf(v.Field(i), name+".")...)
		} else {
			all = append(all, statNumber{name, v.Field(i)})
		}
	}
	return all
}

func (n statNumber) get() uint64 {
	if n.field.CanInt() {
		return uint64(n.field.Int())
	}
	return n.field.Uint()
}

func (n statNumber) set(x int) { n.field.Set(reflect.ValueOf(x).Convert(n.field.Type())) }

// fallen returns the name of a counter that is less in after than in before, or "".
func fallen[T any](before, after *T, gauges []string) string {
	a := numbersOf(reflect.ValueOf(after).Elem(), "")
	for i, b := range numbersOf(reflect.ValueOf(before).Elem(), "") {
		if a[i].get() < b.get() && !slices.Contains(gauges, b.name) {
			return b.name
		}
	}
	return ""
}

// Sub subtracts every counter, and keeps every gauge.
func TestStats_Sub(t *testing.T) {
	var now, earlier ringcache.Stats
	n := numbersOf(reflect.ValueOf(&now).Elem(), "")
	e := numbersOf(reflect.ValueOf(&earlier).Elem(), "")
	for i := range n {
		n[i].set(1000 + 3*i)
		e[i].set(100 + i)
	}
	since := now.Sub(earlier)
	kept := 0
	for i, got := range numbersOf(reflect.ValueOf(since), "") {
		want := uint64(900 + 2*i)
		if slices.Contains(gauges, got.name) {
			want = n[i].get()
			kept++
		}
		require.Equal(t, want, got.get(), got.name)
	}
	require.Equal(t, len(gauges), kept, "a gauge that is none")
	require.EqualValues(t, 1000, now.GetCalls, "s stays as it is")
}

// mixedCalls makes random calls of all kinds, of which some expire, load and reset.
func mixedCalls(c *ringcache.Cache, ns *ringcache.Cache, seed uint64, n int) {
	random := ringtest.NewRand(seed)
	key := func() []byte { return binary.LittleEndian.AppendUint64(nil, random.Uint64N(400)) }
	load := func(context.Context, []byte) ([]byte, time.Duration, error) {
		switch random := rand.IntN(4); random {
		case 0:
			return nil, 0, ringcache.ErrAbsent
		case 1:
			return nil, 0, ringcache.ErrNoMemory
		}
		return make([]byte, 50), clock.Tick, nil
	}
	loadAll := func(_ context.Context, keys [][]byte) ([]ringtest.Loaded, error) {
		return make([]ringtest.Loaded, len(keys)), nil
	}
	ctx, vals := context.Background(), make([][]byte, 2)
	many := func() [][]byte { return [][]byte{key(), key()} }
	calls := []func(){
		func() { c.Get(nil, key()) },
		func() { c.Has(key()) },
		func() { ringtest.View(c, key(), func([]byte) {}) },
		func() { c.Peek(nil, key()) },
		func() { c.GetBatch(nil, many(), vals) },
		func() { _ = c.Set(key(), make([]byte, random.IntN(300))) },
		func() { _ = c.Set(key(), make([]byte, ringtest.Shared(c).MaxValue())) },
		func() { _ = c.Set(key(), make([]byte, ringtest.Shared(c).MaxValue()+1)) },
		func() { _ = c.SetWithTTL(key(), make([]byte, 100), clock.Tick) },
		func() { _ = c.SetBatch(many(), [][]byte{nil, nil}) },
		func() { _ = c.Update(key(), ringtest.Append([]byte("more"))) },
		func() { _, _ = c.SetIfChanged(key(), nil) },
		func() { c.Touch(key(), clock.Tick) },
		func() { c.Del(key()) },
		func() { c.GetAndDel(nil, key()) },
		func() { _, _ = c.GetOrLoad(ctx, nil, key(), load) },
		func() { _, _, _ = c.GetOrLoadBatch(ctx, nil, many(), vals, loadAll) },
		func() { ns.Get(nil, key()) },
		func() { _ = ns.Set(key(), make([]byte, 30)) },
		func() { ns.Del(key()) },
	}
	seldom := []func(){
		c.Reset,
		func() { c.DeleteExpired() },
		func() { ringtest.Resize(c, 100<<10) },
		func() { ringtest.Resize(c, 200<<10) },
		func() { ns.Reset() },
		func() {
			var saved bytes.Buffer
			if _, err := c.WriteSnapshot(&saved); err == nil {
				c.Reset()
				_, _ = c.ReadSnapshot(&saved)
			}
		},
	}
	for i := range n {
		if i%500 == 499 {
			seldom[random.IntN(len(seldom))]()
		}
		calls[random.IntN(len(calls))]()
		for range 20 { // of which many have expired
			c.Has(key())
		}
	}
}

// A lookup that has found an expired record has been counted before it knows that, and is then
// made in another way.
func TestStats_LookupThatStartsOver(t *testing.T) {
	var now time.Duration
	var seen [][2]uint64 // the sums whenever a lookup asks for the time
	var c *ringcache.Cache
	g := ringtest.Tiny(1, 1024, 256)
	g.Elapsed = func() time.Duration {
		if c != nil {
			n := ringtest.Counters(c).Sum()
			seen = append(seen, [2]uint64{n.Lookups, n.Misses})
		}
		return now
	}
	c = ringtest.MustCache(t, g)
	require.NoError(t, c.SetWithTTL([]byte("k"), []byte("v"), clock.Tick))
	now += 2 * clock.Tick
	for i := range uint64(10) {
		require.False(t, c.Has([]byte("k")))
		n := ringtest.Counters(c).Sum()
		require.Equal(t, [2]uint64{i + 1, i + 1}, [2]uint64{n.Lookups, n.Misses})
		seen = append(seen, [2]uint64{n.Lookups, n.Misses})
	}
	require.Greater(t, len(seen), 20, "the test looks too seldom")
	for i := range seen[1:] {
		require.GreaterOrEqual(t, seen[i+1][0], seen[i][0])
		require.GreaterOrEqual(t, seen[i+1][1], seen[i][1])
	}
}

// Whoever polls statistics takes a counter that falls for a new process, or for a rate below 0.
func TestStats_CountersNeverFall(t *testing.T) {
	var now atomic.Int64
	g := ringtest.Tiny(1, 1024, 256) // of few buckets, so that a look takes no longer than some calls
	g.Elapsed = func() time.Duration { return time.Duration(now.Load()) }
	g.RefreshAhead = clock.Tick
	c := ringtest.NewCache(ringtest.WithCold(g, ringtest.FlateCompressor{}))
	ns := c.Namespace("some")
	done := make(chan struct{})
	var polls sync.WaitGroup
	for range 2 {
		polls.Add(1)
		go func() {
			defer polls.Done()
			before, inSpace := c.Stats(), ns.Stats()
			for ended := false; !ended; {
				select {
				case <-done:
					ended = true
				default:
				}
				after, spaceAfter := c.Stats(), ns.Stats()
				if !assert.Empty(t, fallen(&before, &after, gauges), "has fallen") ||
					!assert.Empty(t, fallen(&inSpace, &spaceAfter, []string{"EntriesCount", "BytesSize"})) {
					return
				}
				before, inSpace = after, spaceAfter
				now.Add(int64(time.Millisecond))
			}
		}()
	}
	var calls sync.WaitGroup
	for i := range uint64(3) {
		calls.Add(1)
		go func() {
			defer calls.Done()
			mixedCalls(c, ns, i, 4000*ringtest.Rounds())
		}()
	}
	calls.Wait()
	s := c.Stats()
	t.Log(s)
	require.NotZero(t, s.Misses*s.Loads.Started*s.Loads.Errors, "they prove little")
	require.NotZero(t, s.RestoredEntries, "they prove little")
	require.NoError(t, c.Close())
	close(done)
	polls.Wait()
	require.Equal(t, s.GetCalls, c.Stats().GetCalls)
}
