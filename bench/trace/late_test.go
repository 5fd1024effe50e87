package trace

import "testing"

// TestLateReads wants each key to be set once and read once, so many Sets later,
// and popular ones beside them.
func TestLateReads(t *testing.T) {
	const keys, held = 20_000, 2000
	for _, hot := range []bool{false, true} {
		tr := newLate(keys, 0.4, hot)
		sets, reads, beside := map[uint32]int{}, map[uint32]bool{}, map[uint32]int{}
		for i, r := range tr.Requests {
			switch tr.Step(i) {
			case Write:
				if _, again := sets[r.Key]; again || beside[r.Key] > 0 {
					t.Fatalf("hot %t: key %d is set again", hot, r.Key)
				}
				sets[r.Key] = len(sets)
			case Read:
				if i < tr.Warm {
					continue
				}
				at, set := sets[r.Key]
				if behind := len(sets) - 1 - at; !set || reads[r.Key] || behind != held*4/10 {
					t.Fatalf("hot %t: key %d is read %d Sets later, again %t", hot, r.Key, behind, reads[r.Key])
				}
				reads[r.Key] = true
			default:
				beside[r.Key]++
			}
		}
		want, reading := 0, 0
		if hot {
			want = held / hotPart
			reading = 2 * len(sets)
		}
		sum := 0
		for _, n := range beside {
			sum += n
		}
		if len(beside) > want || len(beside) < want*9/10 || sum != reading ||
			tr.Keys != len(sets)+len(beside) {
			t.Errorf("hot %t: %d keys beside, read %d times, want %d, %d", hot, len(beside), sum, want,
				reading)
		}
		if turns := float64(tr.Warm) / float64(len(tr.Cycle)) / held; turns != lateWarm {
			t.Errorf("hot %t: %v turns before reads count", hot, turns)
		}
	}
}

// TestLateLoads wants the loads to be the same at all times, and of one size.
func TestLateLoads(t *testing.T) {
	for _, s := range late() {
		tr, err := s.Open(1)
		if err != nil {
			t.Fatal(err)
		}
		if sizes := s.Sizes([]float64{1, 30}); len(sizes) != 1 || sizes[0] != latePercent {
			t.Errorf("%s: sizes %v", s.Name, sizes)
		}
		if tr.Keys > baseKeys || tr.Keys < baseKeys*99/100 || len(tr.Requests)%len(tr.Cycle) != 0 {
			t.Errorf("%s: %d keys, %d requests", s.Name, tr.Keys, len(tr.Requests))
		}
	}
}
