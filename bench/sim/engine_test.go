package sim

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ringcache/ringcache/internal/policy"
)

// each calls fn with every bucket, the large ones last.
func (e *engine) each(fn func(b *engineBucket)) {
	for i := range e.buckets {
		fn(&e.buckets[i])
	}
	for i := range e.arena.buckets {
		fn(&e.arena.buckets[i])
	}
}

// validate reports what in the engine contradicts something else.
func (e *engine) validate() (err error) {
	var used int64
	count := 0
	e.each(func(b *engineBucket) {
		var bad error
		for ring := range b.rings {
			weight, wrong := e.validateRing(b, policy.Ring(ring))
			used += int64(weight)
			bad = errors.Join(bad, wrong)
		}
		count += b.live()
		if bad = errors.Join(bad, e.validateGhosts(b)); bad != nil {
			err = errors.Join(err, fmt.Errorf("bucket %d, large %t: %w", b.number, b.large, bad))
		}
	})
	if used != e.used || count != e.count || used > e.capacity {
		err = errors.Join(err,
			fmt.Errorf("buckets have %d entries of %d, counted as %d of %d, at most %d", count, used,
				e.count, e.used, e.capacity))
	}
	return err
}

func (e *engine) validateRing(b *engineBucket, ring policy.Ring) (weight int, err error) {
	r := &b.rings[ring]
	for i := r.queue.tail; i < r.queue.head; i++ {
		key := r.keys[i&uint64(len(r.keys)-1)]
		s := e.standings[key]
		if !e.holds(key) || s.ring != ring || s.ghost != 0 || s.large != b.large ||
			e.bucket(key, s.large) != b {
			return 0, fmt.Errorf("ring %d: key %d is held %t, %+v", ring, key, e.holds(key), s)
		}
		weight += int(e.size[key])
	}
	if weight != r.used || r.used > r.held()*r.chunk {
		return 0, fmt.Errorf("ring %d: weight %d, counted as %d, in %d chunks of %d", ring, weight,
			r.used, r.held(), r.chunk)
	}
	return weight, nil
}

func (e *engine) validateGhosts(b *engineBucket) error {
	var of [2]int
	for i, key := range b.ghosts {
		s := e.standings[key]
		if e.holds(key) || int(s.ghost) != i+1 || e.bucket(key, s.large) != b {
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
// turn, with and without entries that are large beside the others.
func TestEngineIsConsistent(t *testing.T) {
	const keys = 5000
	type sizer func(request int, key uint32) uint32
	single := func(int, uint32) uint32 { return 1 }
	mixed := func(_ int, key uint32) uint32 { return weight(key) }
	tailed := func(_ int, key uint32) uint32 {
		if key%50 == 0 {
			return 20 * weight(key)
		}
		return weight(key)
	}
	for name, c := range map[string]struct {
		o        EngineOptions
		capacity int64
		size     sizer
	}{
		"entries":        {EngineOptions{8, 0.6}, 700, single},
		"few entries":    {Engine, 30, single},
		"sparse entries": {Engine, 700, single},
		"one bucket":     {EngineOptions{1, 0.6}, 700, single},
		"bytes":          {EngineOptions{8, 0.6}, 40_000, mixed},
		"sparse bytes":   {EngineOptions{32, 0.6}, 40_000, mixed},
		"some large":     {EngineOptions{8, 0.6}, 40_000, tailed},
		"some too large": {EngineOptions{8, 0.6}, 10_000, tailed},
		"now this or that": {EngineOptions{16, 0.6}, 80_000,
			func(i int, key uint32) uint32 { return mixed(i, key) * uint32(1+i/5000%2*9) }},
		"no ghosts": {EngineOptions{8, 0}, 700, single},
	} {
		e := NewEngine(c.o)(c.capacity, keys).(*engine)
		for i, key := range skewed(keys, 50_000) {
			size := c.size(i, key)
			large := e.isLarge(int(size))
			if e.holds(key) {
				large = e.standings[key].large
			}
			b := e.bucket(key, large)
			before := b.used()
			e.Access(key, size)
			if most := max(b.chunks*e.chunk, before, int(size)); b.used() > most {
				t.Fatalf("%s, request %d: %d in a bucket that may have %d", name, i, b.used(), most)
			}
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
		e.each(func(b *engineBucket) {
			for _, key := range b.ghosts {
				ghosts++
				oldest = min(oldest, key)
			}
		})
		if want := int(factor * float64(e.count)); ghosts < want-4 || ghosts > want {
			t.Errorf("%v ghosts for each of %d entries: %d", factor, e.count, ghosts)
		}
		if latest := uint32(keys - e.count - ghosts); factor > 0 && oldest > latest-latest/20 {
			t.Errorf("%v ghosts for each entry: the oldest is %d, but in order of age it would be %d",
				factor, oldest, latest)
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
	e.standings[key] = standing{ring: policy.Main, freq: 2, mark: true}
	b.evictTail(policy.Main, &work)
	if s := e.standings[key]; s != (standing{ring: policy.Main, freq: 1}) || !e.holds(key) {
		t.Errorf("reinserted: %+v, held %t", s, e.holds(key))
	}

	if err := e.validate(); err != nil {
		t.Error(err)
	}
}

// TestEngineTrials wants a ghost that comes straight to main for the first time to be on trial, one
// that comes to small to be marked, and the learner to hear of what becomes of them.
func TestEngineTrials(t *testing.T) {
	const keys = 2000
	e := NewEngine(EngineOptions{Buckets: 4, Ghosts: 1})(500, keys).(*engine)
	marked := [2]int{}
	for _, key := range skewed(keys, 50_000) {
		before, held := e.standings[key], e.holds(key)
		e.Access(key, 1)
		s := e.standings[key]
		if !e.holds(key) || held {
			continue
		}
		full := e.bucket(key, s.large).policy.Full()
		want := before.ghost > 0 && full && (s.ring == policy.Small || before.freq < policy.MaxFreq)
		if s.mark != want {
			t.Fatalf("key %d was %+v and is %+v", key, before, s)
		}
		if s.mark {
			marked[s.ring]++
		}
	}
	if marked[policy.Small] == 0 || marked[policy.Main] == 0 {
		t.Errorf("ghosts that came to small, and to main: %v", marked)
	}
	if l := &e.learners[0]; l.Small == 0 || l.Small == 0.1 {
		t.Errorf("nothing was learned: %+v", l.Lessons)
	}
}

// TestEngineSeeks wants a Get that misses on a ghost to count once.
func TestEngineSeeks(t *testing.T) {
	const keys = 5000
	e := NewEngine(EngineOptions{Buckets: 4, Ghosts: 1})(500, keys).(*engine)
	for key := range uint32(keys) {
		e.Access(key, 1)
	}
	near, far := 0, 0
	for key := range uint32(keys) {
		s := &e.standings[key]
		if s.ghost == 0 {
			continue
		}
		want := e.bucket(key, s.large).isNear(s)
		for range 2 {
			if e.Get(key) || s.mark != want {
				t.Fatalf("key %d, near %t: %+v", key, want, *s)
			}
		}
		if want {
			near++
		} else {
			far++
		}
	}
	if near == 0 || far == 0 {
		t.Errorf("%d ghosts were near, %d far", near, far)
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
		ghosts := e.bucket(key, false).ghosts
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

// TestEngineSparse wants entries in the large buckets as long as the others would
// hold few of them, and the memory to follow them.
func TestEngineSparse(t *testing.T) {
	const keys, capacity = 300_000, 512 * 100
	e := NewEngine(Engine)(capacity, keys).(*engine)
	set := func(from, to, size uint32, sparse bool) {
		t.Helper()
		for key := from; key < to; key++ {
			e.Access(key, size)
		}
		large := e.largeUsed()
		if sparse {
			large = int(e.used) - large
		}
		if e.arena.sparse != sparse || large > capacity/15 || e.used < capacity*95/100 {
			t.Fatalf("entries of %d: sparse %t, %d of %d in large buckets", size, e.arena.sparse,
				e.largeUsed(), e.used)
		}
		if err := e.validate(); err != nil {
			t.Fatal(err)
		}
	}
	set(0, 60_000, 1, false)
	if e.learners[0].Small == 0 || e.learners[1].Small != 0 {
		t.Errorf("learned from buckets: %+v, from large ones: %+v", e.learners[0], e.learners[1])
	}
	set(100_000, 120_000, 10, true)
	if e.learners[1].Small == 0 {
		t.Error("nothing was learned from large buckets")
	}
	set(120_000, 300_000, 1, false)
}

// TestEngineBalance wants large entries to have the part of the capacity that they
// have in what is set.
func TestEngineBalance(t *testing.T) {
	const keys, capacity = 400_000, 512 * 160
	e := NewEngine(Engine)(capacity, keys).(*engine)
	for key := range uint32(keys) {
		size := uint32(1)
		if key%200 == 0 {
			size = 66 // above an eighth of a bucket, and a quarter of all
		}
		e.Access(key, size)
	}
	if share := float64(e.largeUsed()) / capacity; e.arena.sparse || share < 0.22 || share > 0.29 {
		t.Errorf("large entries have %.2f of the capacity, want about a quarter; sparse %t", share,
			e.arena.sparse)
	}
	if err := e.validate(); err != nil {
		t.Error(err)
	}
	e.Access(1, capacity/8)
	if e.holds(1) {
		t.Error("an eighth of the capacity is held")
	}
}

// TestEngineKeepsTwoChunks wants tiny entries to have up to two chunks in each
// bucket, and at least one, when nearly all that is set is large.
func TestEngineKeepsTwoChunks(t *testing.T) {
	const keys, capacity = 400_000, 512 * 2048
	e := NewEngine(Engine)(capacity, keys).(*engine)
	for key := range uint32(keys) {
		size := uint32(4) // too small for a large bucket in any case
		if key%2 == 0 {
			size = 200
		}
		e.Access(key, size)
	}
	kept := float64(e.used-int64(e.largeUsed())) / (512 * 2 * 64)
	if !e.arena.sparse || kept < 0.5 || kept > 1.05 {
		t.Errorf("tiny entries have %.2f of two chunks; sparse %t", kept, e.arena.sparse)
	}
	if err := e.validate(); err != nil {
		t.Error(err)
	}
}

// TestEngineMakesRoom sets a first large entry when small ones have everything, and
// a small one when large ones have.
func TestEngineMakesRoom(t *testing.T) {
	const keys, capacity = 200_000, 512 * 100
	e := NewEngine(Engine)(capacity, keys).(*engine)
	for key := range uint32(keys / 2) {
		e.Access(key, 1)
	}
	e.Access(keys-1, 3000)
	if !e.holds(keys-1) || e.used > capacity || e.used < capacity*9/10 {
		t.Errorf("held %t; %d of %d", e.holds(keys-1), e.used, capacity)
	}

	const tiny, most = 4, 512 * 2048 // 4 is too small for a large bucket in any case
	e = NewEngine(Engine)(most, keys).(*engine)
	for key := range uint32(keys / 2) {
		e.Access(key, 200)
	}
	e.add(keys-1, uint32(e.spare())) // the rest that is no multiple of 200
	for key := uint32(keys / 2); key < keys/2+100; key++ {
		if e.Access(key, tiny); !e.holds(key) || e.used > most {
			t.Fatalf("held %t; %d of %d", e.holds(key), e.used, most)
		}
	}
}

// TestEngineShrinksBitByBit wants no more than a few chunks to go at once when all
// that is set has become large.
func TestEngineShrinksBitByBit(t *testing.T) {
	const keys, capacity, size = 200_000, 512 * 128, 20
	e := NewEngine(Engine)(capacity, keys).(*engine)
	for key := range uint32(keys / 2) {
		e.Access(key, 1)
	}
	e.arena.large = 9 * e.arena.small
	before := e.used
	e.Access(keys-1, size)
	if went, most := int(before+size-e.used), 2*size+growStep*e.chunk+e.chunk; went > most {
		t.Errorf("a large entry drives out %d, want at most %d", went, most)
	}

	e.arena.large, e.arena.sparse = 0, false
	b := e.bucket(0, false)
	held := b.used()
	e.arena.buckets[0].rings[policy.Main].used += capacity / 2
	key := uint32(keys / 2)
	for e.bucket(key, false) != b {
		key++
	}
	e.Access(key, 1)
	if e.standings[key].large || b.quota() > b.chunks || b.chunks*e.chunk > held*2/3 {
		t.Fatal("the bucket's quota has not fallen")
	}
	if went := held + 1 - b.used(); went > 1+2*e.chunk {
		t.Errorf("a small entry drives out %d of %d", went, held)
	}
}

func BenchmarkEngine(b *testing.B) {
	const keys = 100_000
	sequence := skewed(keys, 1_000_000)
	for b.Loop() {
		replay(NewEngine(Engine)(keys/4, keys), sequence, one)
	}
}
