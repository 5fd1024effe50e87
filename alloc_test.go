package ringcache_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache"
	"github.com/ringcache/ringcache/internal/ringtest"
)

// No call on the hot path may allocate: not on a hit, not on a miss, and not while entries are
// evicted and the index grows.
func TestCache_DoesNotAllocate(t *testing.T) {
	if ringtest.RaceEnabled {
		t.Skip("the race detector allocates on its own account")
	}
	c := ringtest.Small(t)
	const keys = 50_000
	var key [8]byte
	next := uint64(0)
	keyAt := func(id uint64) []byte {
		binary.LittleEndian.PutUint64(key[:], id)
		return key[:]
	}
	value := make([]byte, 1000)
	for range keys { // more than fits
		next++
		if err := c.Set(keyAt(next), value); err != nil {
			require.NoError(t, err)
		}
	}
	var read uint64 // walks through what is and what is not there any more
	step := func() []byte {
		read = (read + 7919) % next
		return keyAt(read)
	}
	dst := make([]byte, 0, 64*len(value))
	batch := make([][]byte, 64)
	vals := make([][]byte, len(batch))
	for i := range batch {
		batch[i] = binary.LittleEndian.AppendUint64(nil, next-uint64(i*1000))
	}
	renew := func() [][]byte {
		for i := range batch {
			binary.LittleEndian.PutUint64(batch[i], next-uint64(i))
		}
		return batch
	}
	sized := func() [][]byte {
		for i := range vals {
			vals[i] = value[:(next+uint64(i)*7)%1000]
		}
		return vals
	}
	hour, tick := time.Hour, 100*time.Millisecond
	fresh := func() []byte { next++; return keyAt(next) }
	newest := func(n int) []byte { k := fresh(); c.Set(k, value[:n]); return k }
	sum := 0
	look := func(e *ringcache.Entry[[]byte]) { sum += len(e.Value) }
	half := func(e *ringcache.Entry[[]byte]) { e.Set(value[:len(e.Value)/2]) }
	halfFor := func(e *ringcache.Entry[[]byte]) { e.SetWithTTL(value[:len(e.Value)/2], hour) }
	away := func(e *ringcache.Entry[[]byte]) { e.Del() }
	for _, tt := range []struct {
		name string
		call func()
	}{
		{"Get", func() { dst = c.Get(dst[:0], step()) }},
		{"HasGet", func() { dst, _ = c.HasGet(dst[:0], step()) }},
		{"Has", func() { c.Has(step()) }},
		{"Peek", func() { dst, _ = c.Peek(dst[:0], step()) }},
		{"GetWithTTL", func() { dst, _, _ = c.GetWithTTL(dst[:0], step()) }},
		{"GetBatch", func() { dst, _ = c.GetBatch(dst[:0], batch, vals) }},
		{"Get/dst on the stack", func() { var room [1000]byte; sum += len(c.Get(room[:0], step())) }},
		{"HasGet/dst on the stack", func() {
			var room [1000]byte
			v, _ := c.HasGet(room[:0], step())
			sum += len(v)
		}},
		{"Peek/dst on the stack", func() {
			var room [1000]byte
			v, _ := c.Peek(room[:0], step())
			sum += len(v)
		}},
		{"GetWithTTL/dst on the stack", func() {
			var room [1000]byte
			v, _, _ := c.GetWithTTL(room[:0], step())
			sum += len(v)
		}},
		{"Set/new", func() { c.Set(fresh(), value[:next%1000]) }},
		{"Set/same size", func() { c.Set(keyAt(next), value[:next%1000]) }},
		{"Set/other size", func() { read++; c.Set(keyAt(next), value[:read%1000]) }},
		{"SetBatch", func() { next += 64; c.SetBatch(renew(), sized()) }},
		{"Del", func() { c.Del(step()) }},
		{"SetWithTTL/new", func() { c.SetWithTTL(fresh(), value[:next%1000], hour) }},
		{"SetWithTTL/shortest", func() { c.SetWithTTL(fresh(), value[:next%1000], tick) }},
		{"SetWithTTL/past", func() { c.SetWithTTL(step(), value[:next%1000], -1) }},
		{"Touch", func() { c.Touch(step(), hour) }},
		{"Touch/rewritten", func() { c.Touch(newest(300), hour) }},
		{"TTL", func() { c.TTL(step()) }},
		{"DeleteExpired", func() { c.DeleteExpired() }},
		{"SetIfAbsent", func() {
			dst, _, _ = c.SetIfAbsent(dst[:0], step(), value[:500], hour)
		}},
		{"SetIfChanged", func() { c.SetIfChanged(step(), value[:500]) }},
		{"CompareAndSwap", func() { c.CompareAndSwap(step(), value[:500], value) }},
		{"Update", func() { c.Update(step(), half) }},
		{"Update/expiry", func() { c.Update(step(), halfFor) }},
		{"Update/nothing", func() { c.Update(step(), look) }},
		{"Update/del", func() { c.Update(step(), away) }},
		{"SetBatchWithTTL", func() { next += 64; c.SetBatchWithTTL(renew(), sized(), hour) }},
		{"GetAndDel", func() { dst, _ = c.GetAndDel(dst[:0], step()) }},
		{"Len", func() { c.Len() }},
		{"UpdateStats", func() { var s ringcache.Stats; c.UpdateStats(&s) }},
		{"Stats", func() { c.Stats() }},
	} {
		runs := 2000
		if tt.name == "DeleteExpired" {
			runs = 20 // each walks the whole cache
		}
		assert.Zero(t, testing.AllocsPerRun(runs, tt.call), "allocations of %s", tt.name)
	}
	require.NotZero(t, sum, "Update found nothing: the test proves little")
}

// The calls of a namespace allocate no more than those of the whole cache, up to keys of 120 bytes.
func TestAllocs_Namespace(t *testing.T) {
	ringtest.SkipUnderRace(t)
	c := ringtest.MustCache(t, ringtest.Default(16<<20)).Namespace("tenant")
	keys, vals := make([][]byte, 64), make([][]byte, 64)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "%0120d", i)
		require.NoError(t, c.Set(keys[i], keys[i]))
	}
	dst := make([]byte, 0, 1<<13)
	ctx := context.Background()
	load := func(context.Context, [][]byte) ([]ringcache.Loaded[[]byte], error) {
		panic("all keys are present")
	}
	for name, call := range map[string]func(){
		"Get":            func() { dst = c.Get(dst[:0], keys[1]) },
		"Get/stack":      func() { var room [120]byte; copy(dst[:120], c.Get(room[:0], keys[1])) },
		"Set":            func() { c.Set(keys[1], keys[2]) },
		"GetBatch":       func() { dst, _ = c.GetBatch(dst[:0], keys, vals) },
		"SetBatch":       func() { c.SetBatch(keys, keys) },
		"GetOrLoadBatch": func() { dst, _, _ = c.GetOrLoadBatch(ctx, dst[:0], keys, vals, load) },
	} {
		assert.Zero(t, testing.AllocsPerRun(1000, call), name)
	}
}
