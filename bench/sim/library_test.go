package sim

import (
	"encoding/binary"
	"testing"

	"github.com/ringcache/ringcache/bench/store"
	"github.com/ringcache/ringcache/bench/trace"
)

// library replays requests for entries of one size read-through on a ringcache,
// and returns how many entries it holds in the end.
func library(t *testing.T, requests []trace.Request, maxBytes, valueSize int) (r Result, held int) {
	t.Helper()
	info, err := store.Find("ringcache")
	if err != nil {
		t.Fatal(err)
	}
	s, err := info.New(store.Config{MaxBytes: maxBytes})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	key, value := make([]byte, 16), make([]byte, valueSize)
	buf := make([]byte, 0, valueSize)
	for _, req := range requests {
		binary.LittleEndian.PutUint64(key, mix(uint64(req.Key)))
		_, hit := s.Get(buf, key)
		r.Add(hit, uint32(len(key)+valueSize))
		if hit {
			continue
		}
		if err := s.Set(key, value); err != nil {
			t.Fatal(err)
		}
	}
	return r, s.(store.Counter).Len()
}

// TestEngineLikeTheLibrary wants the engine to hit as often as the cache whose
// policy it runs, when both hold the same: in the many buckets and, with values
// of 6 KB, in a sparse cache.
func TestEngineLikeTheLibrary(t *testing.T) {
	const (
		maxBytes  = 32 << 20
		tolerance = 0.5 // of a hundred; runs of the library differ by a tenth
	)
	sources, _ := trace.Sources("") // there are no recorded ones
	for _, c := range []struct {
		load      string
		valueSize int
		sparse    bool
	}{
		{"zipf-0.9", 1000, false},
		{"scan-zipf", 1000, false},
		{"churn", 1000, false},
		{"zipf-0.9", 6000, true},
		{"scan-zipf", 6000, true},
	} {
		found, err := trace.Find(sources, []string{c.load})
		if err != nil {
			t.Fatal(err)
		}
		load, err := found[0].Open(1)
		if err != nil {
			t.Fatal(err)
		}
		requests := load.Requests[:len(load.Requests)/2]
		if testing.Short() {
			requests = requests[:len(requests)/5]
		}
		want, held := library(t, requests, maxBytes, c.valueSize)
		size := uint32(16 + c.valueSize)
		e := NewEngine(Engine)(int64(held)*int64(size), load.Keys).(*engine)
		var got Result
		for _, req := range requests {
			got.Add(e.Access(req.Key, size), size)
		}
		if e.region.sparse != c.sparse {
			t.Errorf("%s, values of %d bytes: sparse %t, want %t", c.load, c.valueSize, e.region.sparse, c.sparse)
		}
		diff := got.Ratio() - want.Ratio()
		if diff < -tolerance || diff > tolerance {
			t.Errorf("%s, values of %d bytes, %d held: %v, want about %v", c.load, c.valueSize, held, got, want)
		}
	}
}
