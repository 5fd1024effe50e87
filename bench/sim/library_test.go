package sim

import (
	"encoding/binary"
	"testing"

	"github.com/ringcache/ringcache/bench/store"
	"github.com/ringcache/ringcache/bench/trace"
)

// library replays a load with entries of one size on a ringcache, and returns how many
// entries it holds in the end.
func library(t *testing.T, load *trace.Trace, maxBytes, valueSize int) (r Result, held int) {
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
	for i, req := range load.Requests {
		binary.LittleEndian.PutUint64(key, mix(uint64(req.Key)))
		step, hit := load.Step(i), false
		if step != trace.Write {
			_, hit = s.Get(buf, key)
			r.Add(hit, uint32(len(key)+valueSize))
		}
		if hit || step == trace.Read {
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
		tolerance = 0.75 // of a hundred; the engine moves no chunk between rings in between
		learning  = 3.0  // the same of late reads: they begin when small has grown
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
		{"lag=0.4", 1000, false},
		{"lag=0.4+hot", 1000, false},
		{"zipf-0.9", 6000, true},
		{"scan-zipf", 6000, true},
	} {
		found, err := trace.Find(sources, []string{c.load})
		if err != nil {
			t.Fatal(err)
		}
		scale, most := 1, tolerance
		if found[0].Group == trace.Late {
			scale, most = 3, learning // as many entries in the cache as the lag is a share of
		}
		load, err := found[0].Open(scale)
		if err != nil {
			t.Fatal(err)
		}
		if most == tolerance {
			load.Requests = load.Requests[:len(load.Requests)/2]
		}
		if testing.Short() {
			load.Requests = load.Requests[:len(load.Requests)/5]
		}
		want, held := library(t, load, maxBytes, c.valueSize)
		size := uint32(16 + c.valueSize)
		e := NewEngine(Engine)(int64(held)*int64(size), load.Keys).(*engine)
		var got Result
		for i, req := range load.Requests {
			switch load.Step(i) {
			case trace.Read:
				got.Add(e.Get(req.Key), size)
			case trace.Write:
				e.Access(req.Key, size)
			default:
				got.Add(e.Access(req.Key, size), size)
			}
		}
		if e.arena.sparse != c.sparse {
			t.Errorf("%s, values of %d bytes: sparse %t, want %t", c.load, c.valueSize, e.arena.sparse,
				c.sparse)
		}
		diff := got.Ratio() - want.Ratio()
		if diff < -most || diff > most {
			t.Errorf("%s, values of %d bytes, %d held: %v, want about %v", c.load, c.valueSize, held, got,
				want)
		}
	}
}
