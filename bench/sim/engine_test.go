package sim

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ringcache/ringcache/internal/policy"
)

// validate reports the first thing in the engine that contradicts another.
func (e *engine) validate() error {
	var used int64
	count := 0
	for i := range e.buckets {
		b := &e.buckets[i]
		for ring := range b.rings {
			weight, err := e.validateRing(b, policy.Ring(ring))
			if err != nil {
				return fmt.Errorf("bucket %d: %w", i, err)
			}
			used += int64(weight)
		}
		if b.used() > b.room() {
			return fmt.Errorf("bucket %d: %d of %d used", i, b.used(), b.room())
		}
		if err := e.validateGhosts(b); err != nil {
			return fmt.Errorf("bucket %d: %w", i, err)
		}
		count += b.live()
	}
	if used != e.used || count != e.count {
		return fmt.Errorf("buckets have %d entries of %d, want %d of %d", count, used, e.count, e.used)
	}
	return nil
}

func (e *engine) validateRing(b *engineBucket, ring policy.Ring) (weight int, err error) {
	r := &b.rings[ring]
	for i := r.queue.tail; i < r.queue.head; i++ {
		key := r.keys[i&uint64(len(r.keys)-1)]
		s := e.standings[key]
		if !e.holds(key) || s.ring != ring || s.ghost != 0 || e.bucket(key) != b {
			return 0, fmt.Errorf("ring %d: key %d is held %t, %+v", ring, key, e.holds(key), s)
		}
		weight += int(e.size[key])
	}
	if weight != r.used || r.used > r.held()*r.chunk {
		return 0, fmt.Errorf("ring %d: weight %d, counted as %d, in %d chunks of %d", ring, weight, r.used, r.held(), r.chunk)
	}
	return weight, nil
}

func (e *engine) validateGhosts(b *engineBucket) error {
	var of [2]int
	for i, key := range b.ghosts {
		s := e.standings[key]
		if e.holds(key) || int(s.ghost) != i+1 {
			return fmt.Errorf("ghost %d: key %d is held %t, %+v", i, key, e.holds(key), s)
		}
		of[s.ring]++
	}
	if of != b.ghostsOf {
		return fmt.Errorf("ghosts of the rings %v, counted as %v", of, b.ghostsOf)
	}
	return nil
}

// TestEngineIsConsistent replays weights that make it sparse, dense, and both in
// turn.
func TestEngineIsConsistent(t *testing.T) {
	const keys = 5000
	for name, c := range map[string]struct {
		o        EngineOptions
		capacity int64
		size     func(request int, key uint32) uint32
	}{
		"entries":        {EngineOptions{8, 0.6}, 700, func(int, uint32) uint32 { return 1 }},
		"sparse entries": {Engine, 700, func(int, uint32) uint32 { return 1 }},
		"bytes":          {EngineOptions{8, 0.6}, 40_000, func(_ int, key uint32) uint32 { return weight(key) }},
		"sparse bytes":   {EngineOptions{32, 0.6}, 40_000, func(_ int, key uint32) uint32 { return weight(key) }},
		"now this or that": {EngineOptions{16, 0.6}, 40_000, func(i int, key uint32) uint32 {
			return weight(key) * uint32(1+i/5000%2*9)
		}},
		"no ghosts": {EngineOptions{8, 0}, 700, func(int, uint32) uint32 { return 1 }},
	} {
		e := NewEngine(c.o)(c.capacity, keys).(*engine)
		for i, key := range skewed(keys, 50_000) {
			e.Access(key, c.size(i, key))
			if i%97 != 0 {
				continue
			}
			if err := e.validate(); err != nil {
				t.Fatalf("%s, request %d: %v", name, i, err)
			}
		}
	}
}

// TestEngineGhosts wants as many as were asked for, the older ones among them:
// which is forgotten is a matter of chance.
func TestEngineGhosts(t *testing.T) {
	const keys = 20_000
	for _, factor := range []float64{0, 0.5, 2} {
		e := NewEngine(EngineOptions{Buckets: 4, Ghosts: factor})(1000, keys).(*engine)
		for key := range uint32(keys) {
			e.Access(key, 1)
		}
		ghosts, oldest := 0, uint32(keys)
		for i := range e.buckets {
			for _, key := range e.buckets[i].ghosts {
				ghosts++
				oldest = min(oldest, key)
			}
		}
		if want := int(factor * float64(e.count)); ghosts < want-4 || ghosts > want {
			t.Errorf("%v ghosts for each of %d entries: %d", factor, e.count, ghosts)
		}
		if latest := uint32(keys - e.count - ghosts); factor > 0 && oldest > latest-latest/20 {
			t.Errorf("%v ghosts for each entry: the oldest is %d, but in order of age it would be %d", factor, oldest, latest)
		}
	}
}

// TestEngineMoves follows frequencies and trials from ring to ring.
func TestEngineMoves(t *testing.T) {
	e := NewEngine(EngineOptions{Buckets: 1, Ghosts: 1})(100, 1000).(*engine)
	b := &e.buckets[0]
	for key := range uint32(200) {
		e.Access(key, 1)
	}
	small, main := &b.rings[policy.Small], &b.rings[policy.Main]
	work := policy.SetWork(1)

	key := small.keys[small.queue.tail&uint64(len(small.keys)-1)]
	for range 5 {
		e.Access(key, 1)
	}
	if f := e.standings[key].freq; f != policy.MaxFreq {
		t.Errorf("after 5 reads the frequency is %d", f)
	}
	small.pop()
	b.promote(key, 1, &work)
	if s := e.standings[key]; s.ring != policy.Main || s.freq != 0 {
		t.Errorf("promoted: %+v", s)
	}

	key = main.keys[main.queue.tail&uint64(len(main.keys)-1)]
	e.standings[key] = standing{ring: policy.Main, freq: 2, trial: true}
	b.evictTail(policy.Main, &work)
	if s := e.standings[key]; s != (standing{ring: policy.Main, freq: 1}) || !e.holds(key) {
		t.Errorf("reinserted: %+v, held %t", s, e.holds(key))
	}

	if err := e.validate(); err != nil {
		t.Error(err)
	}
}

// TestEngineTrials wants a ghost that comes straight to main to be on trial, and
// the learner to hear of what becomes of it.
func TestEngineTrials(t *testing.T) {
	const keys = 2000
	e := NewEngine(EngineOptions{Buckets: 4, Ghosts: 1})(500, keys).(*engine)
	onTrial := 0
	for _, key := range skewed(keys, 50_000) {
		ghost := e.standings[key].ghost > 0
		e.Access(key, 1)
		s := e.standings[key]
		if !e.holds(key) || s.freq > 0 {
			continue // held before
		}
		full := e.bucket(key).policy.Full()
		if want := ghost && full && s.ring == policy.Main; s.trial != want {
			t.Fatalf("key %d, a ghost %t: %+v", key, ghost, s)
		}
		if s.trial {
			onTrial++
		}
	}
	if onTrial == 0 {
		t.Error("no ghost was let into main")
	}
	if l := &e.learners[0]; l.Small == 0 || l.Small == 0.1 {
		t.Errorf("nothing was learned: %+v", l.Lessons)
	}
}

// TestEngineJudges reads every key once more when it has been dropped, and never
// again: such ghosts are not to be trusted.
func TestEngineJudges(t *testing.T) {
	const keys = 20_000
	e := NewEngine(EngineOptions{Buckets: 4, Ghosts: 1})(400, keys).(*engine)
	again := make([]bool, keys)
	read := 0
	for key := range uint32(keys) {
		e.Access(key, 1)
		ghosts := e.bucket(key).ghosts
		if i := slices.IndexFunc(ghosts, func(key uint32) bool { return !again[key] }); i >= 0 {
			ghost := ghosts[i]
			again[ghost] = true
			read++
			e.Access(ghost, 1)
		}
	}
	if read < keys/4 {
		t.Fatalf("only %d ghosts of %d keys were read", read, keys)
	}
	if e.learners[0].Trust {
		t.Error("ghosts are trusted")
	}
}

// TestEngineRing follows what a ring holds of two chunks that it fills to the last
// byte: its head follows its tail within one of them.
func TestEngineRing(t *testing.T) {
	r := engineRing{chunk: 10}
	expect := func(what string, held int, fits bool) {
		t.Helper()
		if r.held() != held || r.fits(5, 2) != fits {
			t.Fatalf("%s: %d chunks, fits %t: want %d, %t", what, r.held(), r.fits(5, 2), held, fits)
		}
	}
	expect("empty", 0, true)
	for i, held := range []int{1, 1, 2, 2} {
		r.push(uint32(i), 5, 2)
		expect("filled", held, i < 3)
	}
	r.release(5)
	expect("half of a chunk is left", 2, true)
	r.push(4, 5, 2)
	expect("it is written again", 2, false)
	r.release(5)
	expect("it is the head's alone", 2, true)
	r.push(5, 5, 2)
	r.release(20)
	expect("empty again, where a chunk ends", 0, true)
}

// TestEngineSparse wants four buckets for entries of which 512 would hold few,
// and a learner of their own.
func TestEngineSparse(t *testing.T) {
	const keys, capacity = 200_000, 512 * 100
	e := NewEngine(Engine)(capacity, keys).(*engine)
	set := func(from, to, size uint32) {
		for key := from; key < to; key++ {
			e.Access(key, size)
		}
		if err := e.validate(); err != nil {
			t.Fatal(err)
		}
	}
	set(0, 50_000, 1)
	if e.sparse || len(e.buckets) != 512 || e.learners[1].Small != 0 {
		t.Fatalf("100 entries a bucket: sparse %t, %d buckets", e.sparse, len(e.buckets))
	}
	set(100_000, 110_000, 10)
	if !e.sparse || len(e.buckets) != 4 || e.learners[1].Small == 0 {
		t.Fatalf("10 entries a bucket: sparse %t, %d buckets", e.sparse, len(e.buckets))
	}
	if e.used < capacity*95/100 {
		t.Errorf("sparse: %d of %d held", e.used, capacity)
	}
	set(110_000, 200_000, 1)
	if e.sparse || len(e.buckets) != 512 || e.used < capacity*95/100 {
		t.Errorf("100 entries a bucket again: sparse %t, %d buckets, %d held", e.sparse, len(e.buckets), e.used)
	}
}

// TestEngineDealsOutEntries wants those that are held to stay so when the buckets
// become others.
func TestEngineDealsOutEntries(t *testing.T) {
	const keys = 8000
	e := NewEngine(Engine)(512*64, keys).(*engine)
	for key := range uint32(keys) {
		e.Access(key, 1)
	}
	before := e.count
	e.deal(largeBuckets)
	if e.count != before || before < keys*9/10 {
		t.Errorf("%d entries of %d after the deal, %d before", e.count, keys, before)
	}
	if err := e.validate(); err != nil {
		t.Error(err)
	}
}

func BenchmarkEngine(b *testing.B) {
	const keys = 100_000
	sequence := skewed(keys, 1_000_000)
	for b.Loop() {
		replay(NewEngine(Engine)(keys/4, keys), sequence, one)
	}
}
