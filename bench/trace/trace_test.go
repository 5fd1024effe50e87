package trace

import (
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// write makes a trace file of the given lines.
func write(t *testing.T, dir, name, lines string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name)+suffix)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	_, err = z.Write([]byte(lines))
	if err := errors.Join(err, z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestSourcesFindsTraces(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "hybrid/b", "0,10\n0,10\n1,20\n")
	write(t, dir, "c", "0,0\n1,0\n0,0\n2,0\n")
	all, err := Sources(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2+len(synthetic())+len(late()) || all[0].Name != "c" || all[1].Name != "hybrid/b" ||
		all[1].Group != Hybrid {
		t.Fatalf("unexpected sources: %v", all)
	}
	c, err := all[0].Open(3)
	if err != nil {
		t.Fatal(err)
	}
	if c.Keys != 3 || c.Sized || c.Scale() != 3 || c.Replays() != 12 || c.Name != "c" {
		t.Fatalf("unexpected trace: %+v", c)
	}
	if b, err := all[1].Open(1); err != nil || !b.Sized || b.Keys != 2 {
		t.Fatalf("unexpected trace: %+v, error %v", b, err)
	}
}

func TestWithoutTracesThereAreSyntheticLoads(t *testing.T) {
	for _, dir := range []string{"", t.TempDir(), filepath.Join(t.TempDir(), "absent")} {
		all, err := Sources(dir)
		if !errors.Is(err, ErrNoTraces) || len(all) != len(synthetic())+len(late()) {
			t.Fatalf("%d sources, error %v", len(all), err)
		}
	}
}

func TestBadTraces(t *testing.T) {
	dir := t.TempDir()
	for name, lines := range map[string]string{"empty": "", "sparse": "0,0\n2,0\n", "words": "a,b\n"} {
		write(t, dir, name, lines)
		if _, err := file(name, filepath.Join(dir, name+suffix)).Open(1); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestFind(t *testing.T) {
	all, _ := Sources("")
	found, err := Find(all, []string{"loop", "zipf-0.99", "traces"})
	if err != nil || len(found) != 2 || found[0].Name != "zipf-0.99" {
		t.Fatalf("found %v, error %v", found, err)
	}
	if found, err := Find(all, []string{"synthetic"}); err != nil || len(found) != len(synthetic()) {
		t.Fatalf("%d found, error %v", len(found), err)
	}
	if found, err := Find(all, []string{"late"}); err != nil || len(found) != len(late()) {
		t.Fatalf("%d found, error %v", len(found), err)
	}
	if _, err := Find(all, []string{"nothing"}); err == nil {
		t.Fatal("an unknown name is found")
	}
}

// TestSyntheticLoads pins keys and a checksum of each load, so that figures of
// different times are of the same loads.
func TestSyntheticLoads(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the last bit of a logarithm may differ")
	}
	want := map[string][2]uint64{
		"zipf-0.7":  {98715, 14323235077412715924},
		"zipf-0.8":  {96602, 11879286790572948939},
		"zipf-0.9":  {91398, 7000387933129193603},
		"zipf-0.99": {82170, 12790059970528790352},
		"zipf-1.1":  {64860, 14632648889846670753},
		"zipf-1.2":  {46506, 5598455723855648345},
		"scan-zipf": {276535, 3906847485018031702},
		"loop":      {100000, 17692396676705427744},
		"loops":     {100000, 1265733472447447328},
		"churn":     {82404, 13730689815620367683},
		"shift":     {96673, 5324562963190725377},
	}
	for _, s := range synthetic() {
		tr, err := s.Open(1)
		if err != nil {
			t.Fatal(err)
		}
		var sum uint64
		for _, r := range tr.Requests {
			sum = sum*31 + uint64(r.Key)
		}
		if got := [2]uint64{uint64(tr.Keys), sum}; got != want[s.Name] {
			t.Errorf("%s: %d keys, checksum %d", s.Name, got[0], got[1])
		}
	}
}

func TestScaleMultipliesKeys(t *testing.T) {
	all := synthetic()
	loop, err := Find(all, []string{"loop"})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := loop[0].Open(3)
	if err != nil || tr.Keys != 3*baseKeys || tr.Replays() != 3*baseRequests || tr.Scale() != 1 {
		t.Fatalf("%d keys, %d requests, scale %d, error %v", tr.Keys, tr.Replays(), tr.Scale(), err)
	}
}

// TestLoopsCoversAllLengths wants every phase to go round in its loop.
func TestLoopsCoversAllLengths(t *testing.T) {
	src := newLoops(1000, 0)
	for _, length := range []int{12, 120, 360} {
		var first []uint64
		for range length {
			first = append(first, src())
		}
		for range 4 {
			for i := range length {
				if id := src(); id != first[i] {
					t.Fatalf("loop of %d: id %d at %d, was %d", length, id, i, first[i])
				}
			}
		}
	}
}

// TestChurnMoves wants the window of popular keys to move by one id at a time.
func TestChurnMoves(t *testing.T) {
	const n, m = 100, 400 // so by one id after 8 requests
	src := newChurn(n, m)
	for i := range uint64(10_000) {
		low := i / 8
		if id := src(); id < low || id >= low+n/2 {
			t.Fatalf("request %d: id %d outside [%d, %d)", i, id, low, low+n/2)
		}
	}
}

func TestLoopGoesRound(t *testing.T) {
	src := newLoop(3, 0)
	for i := range uint64(7) {
		if id := src(); id != i%3 {
			t.Fatalf("id %d at %d", id, i)
		}
	}
}
