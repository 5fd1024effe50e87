package sim

import "testing"

func TestParse(t *testing.T) {
	sequence := skewed(5000, 50_000)
	same := map[string]Make{
		"fifo":                      NewFIFO,
		"lru":                       NewLRU,
		"clock/4":                   Sharded(4, NewClock),
		"s3fifo-1":                  NewS3FIFO(1),
		"s3fifo-2":                  NewS3FIFO(2),
		"ring":                      NewRing(Ring),
		"ring:ghosts=0.3:keep/8":    Sharded(8, NewRing(RingOptions{0.1, 1, 0.3, true, true})),
		"ring:small=0.2:noflow":     NewRing(RingOptions{0.2, 1, 1, false, false}),
		"ring:threshold=2:ghosts=0": NewRing(RingOptions{0.1, 2, 0, false, true}),
		"engine":                    NewEngine(Engine),
		"engine:ghosts=1:buckets=2": NewEngine(EngineOptions{Buckets: 2, Ghosts: 1}),
	}
	for spec, want := range same {
		got, err := Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		a, b := replay(got(500, 5000), sequence, one), replay(want(500, 5000), sequence, one)
		if a != b {
			t.Errorf("%s: %v, want %v", spec, a, b)
		}
	}
	for _, bad := range []string{
		"", "nothing", "fifo:keep", "ring:nothing", "ring:small=x", "ring:small=2", "ring:ghosts=-1",
		"ring/0", "ring/x",
		"engine:keep", "engine:ghosts=x", "engine:ghosts=-1", "engine:buckets=0", "engine:buckets=100000",
	} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
