package load

import "testing"

var formats = []Format{{4, 4}, {16, 8}, {16, 100}, {16, 1000}, {16, maxValue}}

func TestKeysDiffer(t *testing.T) {
	for _, f := range formats {
		seen := map[string]bool{}
		key := make([]byte, f.KeySize)
		for id := range uint64(100_000) {
			f.Key(key, id)
			seen[string(key)] = true
		}
		if len(seen) != 100_000 {
			t.Fatalf("%v: %d keys of 100000 ids differ", f, len(seen))
		}
	}
}

func TestValuesVerify(t *testing.T) {
	for _, f := range formats {
		v := make([]byte, f.ValueSize)
		for id := range uint64(1000) {
			for _, version := range []uint64{0, 1, id, MaxVersions - 1} {
				f.Value(v, id, version)
				got, err := f.Verify(v, id)
				if err != nil || got != version || !f.Plausible(v, id) {
					t.Fatalf("%v: id %d version %d: got version %d, error %v", f, id, version, got, err)
				}
			}
		}
	}
}

func TestWrongValuesAreFound(t *testing.T) {
	for _, f := range formats {
		v := make([]byte, f.ValueSize)
		for id := range uint64(1000) {
			f.Value(v, id+1, 0)
			if _, err := f.Verify(v, id); err == nil || f.Plausible(v, id) {
				t.Fatalf("%v: the value of another id passes", f)
			}
			f.Value(v, id, 0)
			if f.Plausible(v[1:], id) {
				t.Fatalf("%v: a short value passes", f)
			}
		}
	}
}

// TestMixedValuesAreFound puts the halves of two versions together, and flips
// each byte once.
func TestMixedValuesAreFound(t *testing.T) {
	f := Format{16, 100}
	v, w := make([]byte, 100), make([]byte, 100)
	for id := range uint64(1000) {
		f.Value(v, id, 1)
		f.Value(w, id, 2)
		copy(v[50:], w[50:])
		if _, err := f.Verify(v, id); err == nil {
			t.Fatalf("id %d: a mixture of two versions passes", id)
		}
	}
	for i := range v {
		f.Value(v, 1, 1)
		v[i] ^= 0x80
		if _, err := f.Verify(v, 1); err == nil {
			t.Fatalf("a flipped bit in byte %d passes", i)
		}
	}
}

func TestGeneratorsDoNotAllocate(t *testing.T) {
	f := Format{16, 100}
	key, val := make([]byte, 16), make([]byte, 100)
	allocs := testing.AllocsPerRun(100, func() {
		f.Key(key, 1)
		f.Value(val, 1, 2)
		if !f.Plausible(val, 1) {
			t.Error("implausible")
		}
	})
	if allocs != 0 {
		t.Fatalf("%v allocations", allocs)
	}
}
