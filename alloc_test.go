package ringcache

import (
	"encoding/binary"
	"testing"
	"time"
)

// No call on the hot path may allocate, whether it hits or misses, and while
// entries are evicted and the index grows.
func TestAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates on its own account")
	}
	c := mustCache(t, defaultGeometry(minMaxBytes))
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
			t.Fatal(err)
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
	sum := 0
	look := func(v []byte) { sum += len(v) }
	calls := []struct {
		name string
		call func()
	}{
		{"Get", func() { dst = c.Get(dst[:0], step()) }},
		{"HasGet", func() { dst, _ = c.HasGet(dst[:0], step()) }},
		{"Has", func() { c.Has(step()) }},
		{"View", func() { c.View(step(), look) }},
		{"GetBatch", func() { dst, _ = c.GetBatch(dst[:0], batch, vals) }},
		{"Set/new", func() { next++; c.Set(keyAt(next), value[:next%1000]) }},
		{"Set/same size", func() { c.Set(keyAt(next), value[:next%1000]) }},
		{"Set/other size", func() { read++; c.Set(keyAt(next), value[:read%1000]) }},
		{"Del", func() { c.Del(step()) }},
		{"SetWithTTL/new", func() { next++; c.SetWithTTL(keyAt(next), value[:next%1000], time.Hour) }},
		{"SetWithTTL/expired", func() { next++; c.SetWithTTL(keyAt(next), value[:next%1000], time.Millisecond) }},
		{"Touch", func() { c.Touch(step(), time.Hour) }},
		{"Touch/rewritten", func() { next++; c.Set(keyAt(next), value[:300]); c.Touch(keyAt(next), time.Hour) }},
		{"TTL", func() { c.TTL(step()) }},
		{"DeleteExpired", func() { c.DeleteExpired() }},
		{"SetIfAbsent", func() { c.SetIfAbsent(step(), value[:500]) }},
		{"SetIfChanged", func() { c.SetIfChanged(step(), value[:500]) }},
		{"CompareAndSwap", func() { c.CompareAndSwap(step(), value[:500], value) }},
		{"Update", func() { c.Update(step(), func(old []byte, ok bool) ([]byte, bool) { return value[:len(old)/2], ok }) }},
		{"Append", func() { next++; c.Set(keyAt(next), value[:300]); c.Append(keyAt(next), value[:10]) }},
		{"GetAndDel", func() { dst, _ = c.GetAndDel(dst[:0], step()) }},
		{"Len", func() { c.Len() }},
		{"UpdateStats", func() { var s Stats; c.UpdateStats(&s) }},
	}
	for _, tt := range calls {
		if n := testing.AllocsPerRun(2000, tt.call); n != 0 {
			t.Errorf("%s: %v allocations a call", tt.name, n)
		}
	}
	if sum == 0 {
		t.Error("View found nothing: the test proves little")
	}
}
