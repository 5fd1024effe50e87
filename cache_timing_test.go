package ringcache_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringcache/ringcache"
)

// The benchmarks of this file compare ringcache with the stores from which a program is most likely
// to migrate, and then measure its own operations. Each of them checks the values that it reads and
// fails on a wrong one. Their common code is in stores_timing_test.go.

// ---- The reference benchmark of the field: 65,536 items with 4-byte keys and values, all of them
// in each iteration. An item counts as one byte, so MB/s reads as millions of operations a second.
// As is usual for this benchmark, the maps keep the caller's value without a copy.

const referenceItems = 1 << 16

type referenceOp func(s timingStore) error

func BenchmarkCacheSet(b *testing.B) { benchReference(b, referenceRing, referenceSet) }
func BenchmarkCacheGet(b *testing.B) { benchReference(b, referenceRing, referenceGet) }
func BenchmarkCacheSetGet(b *testing.B) {
	benchReference(b, referenceRing, referenceSet, referenceGet)
}

func BenchmarkBigCacheSet(b *testing.B) { benchReference(b, referenceBig, referenceSet) }
func BenchmarkBigCacheGet(b *testing.B) { benchReference(b, referenceBig, referenceGet) }
func BenchmarkBigCacheSetGet(b *testing.B) {
	benchReference(b, referenceBig, referenceSet, referenceGet)
}

func BenchmarkGoCacheSet(b *testing.B) { benchReference(b, referenceGo, referenceSet) }
func BenchmarkGoCacheGet(b *testing.B) { benchReference(b, referenceGo, referenceGet) }
func BenchmarkGoCacheSetGet(b *testing.B) {
	benchReference(b, referenceGo, referenceSet, referenceGet)
}

func BenchmarkStdMapSet(b *testing.B) { benchReference(b, referenceMap, referenceSet) }
func BenchmarkStdMapGet(b *testing.B) { benchReference(b, referenceMap, referenceGet) }
func BenchmarkStdMapSetGet(b *testing.B) {
	benchReference(b, referenceMap, referenceSet, referenceGet)
}

func BenchmarkSyncMapSet(b *testing.B) { benchReference(b, referenceSync, referenceSet) }
func BenchmarkSyncMapGet(b *testing.B) { benchReference(b, referenceSync, referenceGet) }
func BenchmarkSyncMapSetGet(b *testing.B) {
	benchReference(b, referenceSync, referenceSet, referenceGet)
}

func referenceRing() (timingStore, error) { return newTimingRing(referenceItems, 4) }
func referenceBig() (timingStore, error)  { return newTimingBig(referenceItems, 4, minTimingBytes) }
func referenceGo() (timingStore, error)   { return newTimingGo(asIs), nil }
func referenceMap() (timingStore, error)  { return newTimingMap(asIs), nil }
func referenceSync() (timingStore, error) { return newTimingSync(asIs), nil }

// benchReference runs ops one after another, each over all items.
func benchReference(b *testing.B, open func() (timingStore, error), ops ...referenceOp) {
	s, err := open()
	checkOpened(b, err)
	defer freeTimingStore(s)
	if err := referenceSet(s); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(ops) * referenceItems))
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			for _, op := range ops {
				if err := op(s); err != nil {
					b.Error(err)
					return
				}
			}
		}
	})
	b.StopTimer()
	if err := referenceGet(s); err != nil {
		b.Error(err)
	}
}

const referenceValue = "ring"

func referenceSet(s timingStore) error {
	k, v := make([]byte, 4), []byte(referenceValue)
	for i := range uint32(referenceItems) {
		binary.LittleEndian.PutUint32(k, i)
		if err := s.Set(k, v); err != nil {
			return err
		}
	}
	return nil
}

// referenceGet allows one miss in a thousand: a cache may drop entries.
func referenceGet(s timingStore) error {
	k, buf := make([]byte, 4), make([]byte, 0, 4)
	misses := 0
	for i := range uint32(referenceItems) {
		binary.LittleEndian.PutUint32(k, i)
		v, ok := s.HasGet(buf, k)
		if !ok {
			misses++
		} else if string(v) != referenceValue {
			return fmt.Errorf("get item %d: value %q", i, v)
		}
	}
	if misses > referenceItems/1000 {
		return fmt.Errorf("get items: %d of %d missed", misses, referenceItems)
	}
	return nil
}

// ---- A million entries in random order, one operation in an iteration.

// BenchmarkEntries compares the stores. Each is filled once and then serves all three operations;
// op=set, which may evict entries, comes last.
func BenchmarkEntries(b *testing.B) {
	for _, valueSize := range []int{100, 1000} {
		for _, maker := range timingMakers {
			var s timingStore
			run := func(op string, set, get bool) {
				name := fmt.Sprintf("op=%s/store=%s/value=%d", op, maker.name, valueSize)
				b.Run(name, func(b *testing.B) {
					if s == nil {
						s = filledTimingStore(b, maker.make, valueSize)
					}
					benchEntries(b, s, valueSize, set, get)
				})
			}
			run("get", false, true)
			run("setget", true, true)
			run("set", true, false)
			if s != nil {
				freeTimingStore(s)
				s = nil
				debug.FreeOSMemory()
			}
		}
	}
}

func benchEntries(b *testing.B, s timingStore, valueSize int, set, get bool) {
	var hits atomic.Uint64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		keys := newTimingKeys()
		n, err := entryOps(pb, s, keys, valueSize, set, get)
		hits.Add(n)
		if err != nil {
			b.Error(err)
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
	if get {
		reportHits(b, hits.Load(), uint64(b.N))
	}
	if n := sampleHits(b, s, valueSize); n < timingSample/2 {
		b.Errorf("%d of %d entries found afterwards", n, timingSample)
	}
}

// entryOps is the loop of one goroutine; it returns the number of hits.
func entryOps(
	pb *testing.PB, s timingStore, keys *timingKeys, valueSize int, set, get bool,
) (uint64, error) {
	var hits uint64
	val, buf := make([]byte, valueSize), make([]byte, 0, valueSize)
	for pb.Next() {
		i := keys.next()
		if set {
			putTimingValue(val, i)
			if err := s.Set(keys.k, val); err != nil {
				return hits, err
			}
		}
		if get {
			v, ok := s.HasGet(buf, keys.k)
			if ok && !isTimingValue(v, valueSize, i) {
				return hits, errWrongValue
			}
			if ok {
				hits++
			}
		}
	}
	return hits, nil
}

// BenchmarkGC measures a full collection while a store holds a million entries; store=none is the
// time for the test binary itself.
func BenchmarkGC(b *testing.B) {
	b.Run("entries=0/store=none", func(b *testing.B) { benchGC(b) })
	for _, maker := range timingMakers {
		var s timingStore
		b.Run("entries=1M/store="+maker.name, func(b *testing.B) {
			if s == nil {
				s = filledTimingStore(b, maker.make, 100)
			}
			benchGC(b)
			if n := sampleHits(b, s, 100); n < timingSample*99/100 { // and it was alive meanwhile
				b.Errorf("%d of %d entries found afterwards", n, timingSample)
			}
		})
		if s != nil {
			freeTimingStore(s)
			s = nil
			debug.FreeOSMemory()
		}
	}
}

func benchGC(b *testing.B) {
	runtime.GC() // what the fill has left
	for b.Loop() {
		runtime.GC()
	}
	b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "gc-ms")
}

// ---- ringcache's own operations, one goroutine, entries of 16 + 100 bytes.

const ringValueSize = 100

// filledRing is a cache that holds a million entries.
func filledRing(b *testing.B) *ringcache.Cache {
	b.Helper()
	c, err := newTimingRing(timingEntries, ringValueSize)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	fillTiming(b, c, 0, timingEntries, ringValueSize)
	return c
}

func BenchmarkGetBatch(b *testing.B) {
	for _, n := range []int{8, 64, 512} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) { benchGetBatch(b, n) })
	}
}

func benchGetBatch(b *testing.B, n int) {
	c := filledRing(b)
	draw := newTimingKeys()
	want, keys, vals := make([]uint64, n), make([][]byte, n), make([][]byte, n)
	for i := range keys {
		keys[i] = make([]byte, timingKeySize)
	}
	dst := make([]byte, 0, n*ringValueSize)
	var hits, reads uint64
	b.ReportAllocs()
	for b.Loop() {
		for i := range keys {
			want[i] = draw.next()
			copy(keys[i], draw.k)
		}
		_, found := c.GetBatch(dst, keys, vals)
		for i, v := range vals {
			if v != nil && !isTimingValue(v, ringValueSize, want[i]) {
				b.Fatal(errWrongValue)
			}
		}
		hits += uint64(found)
		reads += uint64(n)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(reads), "ns/key")
	reportHits(b, hits, reads)
}

// BenchmarkSetBatch sets existing entries, half of them to a value of another length. keys=1 is
// Set.
func BenchmarkSetBatch(b *testing.B) {
	for _, n := range []int{1, 8, 64, 512} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) { benchSetBatch(b, n) })
	}
}

func benchSetBatch(b *testing.B, n int) {
	c := filledRing(b)
	draw := newTimingKeys()
	keys, vals := make([][]byte, n), make([][]byte, n)
	for i := range keys {
		keys[i], vals[i] = make([]byte, timingKeySize), make([]byte, ringValueSize)
	}
	var writes, last uint64
	b.ReportAllocs()
	for b.Loop() {
		size := ringValueSize - int(writes/uint64(n)%2)
		for i := range keys {
			last = draw.next()
			copy(keys[i], draw.k)
			vals[i] = vals[i][:size]
			putTimingValue(vals[i], last)
		}
		var err error
		if n == 1 {
			err = c.Set(keys[0], vals[0])
		} else {
			err = c.SetBatch(keys, vals)
		}
		if err != nil {
			b.Fatal(err)
		}
		writes += uint64(n)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(writes), "ns/key")
	if got, ok := c.HasGet(nil, keys[n-1]); !ok || !isTimingValue(got, len(vals[n-1]), last) {
		b.Errorf("the last entry is not there: found %v, value %x", ok, got)
	}
}

func BenchmarkHas(b *testing.B) {
	c := filledRing(b)
	draw := newTimingKeys()
	var hits, reads uint64
	b.ReportAllocs()
	for b.Loop() {
		draw.next()
		if c.Has(draw.k) {
			hits++
		}
		reads++
	}
	reportHits(b, hits, reads)
}

// BenchmarkExpiry reads entries that never expire, or that expire by a TTL, an idle time, or both.
// In the last case the TTL ends within half of the idle time: no read can extend the expiry.
func BenchmarkExpiry(b *testing.B) {
	for name, o := range map[string]ringcache.Options{
		"never": {}, "ttl": {TTL: time.Hour}, "idle": {ExpireAfterAccess: time.Hour},
		"both": {TTL: time.Hour, ExpireAfterAccess: time.Hour},
		"last": {TTL: time.Hour, ExpireAfterAccess: 3 * time.Hour},
	} {
		o.MaxBytes = 256 << 20
		b.Run(name, func(b *testing.B) {
			c, err := ringcache.NewWithOptions(o)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			fillTiming(b, c, 0, timingEntries, ringValueSize)
			benchExpiry(b, c)
		})
	}
}

func benchExpiry(b *testing.B, c *ringcache.Cache) {
	draw := newTimingKeys()
	var hits, reads uint64
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		want := draw.next()
		if dst = c.Get(dst[:0], draw.k); len(dst) > 0 {
			if hits++; !isTimingValue(dst, ringValueSize, want) {
				b.Fatal(errWrongValue)
			}
		}
		reads++
	}
	reportHits(b, hits, reads)
}

// BenchmarkMiss reads keys that were never stored.
func BenchmarkMiss(b *testing.B) {
	c := filledRing(b)
	draw := newTimingKeys()
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		putTimingKey(draw.k, timingEntries+draw.next())
		if dst = c.Get(dst[:0], draw.k); len(dst) > 0 {
			b.Fatalf("got %q for a key that was never stored", dst)
		}
	}
}

// BenchmarkFill fills a fresh cache in each iteration.
func BenchmarkFill(b *testing.B) {
	for b.Loop() {
		c, err := newTimingRing(timingEntries, ringValueSize)
		if err != nil {
			b.Fatal(err)
		}
		fillTiming(b, c, 0, timingEntries, ringValueSize)
		reportOverhead(b, c)
		if n := sampleHits(b, c, ringValueSize); n < timingSample*99/100 {
			b.Fatalf("%d of %d entries found", n, timingSample)
		}
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*timingEntries), "ns/entry")
}

// BenchmarkSetEvict stores new keys into a full cache.
func BenchmarkSetEvict(b *testing.B) {
	for _, mb := range []int{32, 256} {
		b.Run(fmt.Sprintf("max=%dMB", mb), func(b *testing.B) { benchSetEvict(b, mb<<20) })
	}
}

func benchSetEvict(b *testing.B, maxBytes int) {
	c := ringcache.New(maxBytes)
	defer c.Close()
	var next uint64
	// Until every entry has been replaced once.
	for s := (ringcache.Stats{}); s.EvictedEntries <= s.EntriesCount; s = c.Stats() {
		fillTiming(b, c, next, next+timingEntries/10, ringValueSize)
		next += timingEntries / 10
	}
	k, v := make([]byte, timingKeySize), make([]byte, ringValueSize)
	b.ReportAllocs()
	for b.Loop() {
		putTimingKey(k, next)
		putTimingValue(v, next)
		if err := c.Set(k, v); err != nil {
			b.Fatal(err)
		}
		next++
	}
	reportOverhead(b, c)
	if got, ok := c.HasGet(nil, k); !ok || !isTimingValue(got, ringValueSize, next-1) {
		b.Errorf("the last entry is not there: found %v, value %x", ok, got)
	}
}

// reportOverhead reports the memory overhead of an entry, without its key and value.
func reportOverhead(b *testing.B, c *ringcache.Cache) {
	b.Helper()
	var s ringcache.Stats
	c.UpdateStats(&s)
	perEntry := float64(s.ReservedBytes)/float64(s.EntriesCount) - timingKeySize - ringValueSize
	b.ReportMetric(perEntry, "B/entry")
}
