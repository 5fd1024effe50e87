package chart

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestCharts(t *testing.T) {
	dir := t.TempDir()
	groups := []string{"one", "two", "three"}
	series := []Series{{"ours", []float64{10, 20, 30}}, {"theirs", []float64{9, math.NaN(), 33}}}
	for name, draw := range map[string]func(string) error{
		"bars":  func(file string) error { return Bars(file, "Bars", "%", groups, series) },
		"lines": func(file string) error { return Lines(file, "Lines", "ns", groups, series) },
		"dots":  func(file string) error { return Dots(file, "Dots", "points", groups, series) },
	} {
		file := filepath.Join(dir, name+".svg")
		if err := draw(file); err != nil {
			t.Fatal(err)
		}
		first, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"<svg", "ours", "theirs", "three"} {
			if !bytes.Contains(first, []byte(want)) {
				t.Errorf("%s lacks %q", name, want)
			}
		}
		if err := draw(file); err != nil {
			t.Fatal(err)
		}
		if again, err := os.ReadFile(file); err != nil || !bytes.Equal(first, again) {
			t.Errorf("%s: the same figures give another file, error %v", name, err)
		}
	}
	if err := Bars(filepath.Join(dir, "absent", "x.svg"), "", "", groups, series); err == nil {
		t.Error("no error for a directory that is not there")
	}
}

func TestLinesNeedAFigure(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.svg")
	if err := Lines(file, "", "", []string{"one"},
		[]Series{{"ours", []float64{0}}, {"theirs", []float64{math.NaN()}}}); err == nil {
		t.Error("a chart of nothing is drawn")
	}
	if xys := above([]float64{-1, 0, math.NaN(), 4}); len(xys) != 1 || xys[0].X != 3 || xys[0].Y != 4 {
		t.Errorf("%v", xys)
	}
}

func TestPointsLeaveOutWhatIsMissing(t *testing.T) {
	xys := points([]float64{5, math.NaN(), 7})
	if len(xys) != 2 || xys[0].Y != 2 || xys[1].X != 7 || xys[1].Y != 0 {
		t.Errorf("%v", xys)
	}
	if ns := numbers([]float64{math.NaN(), 1}); ns[0] != 0 || ns[1] != 1 {
		t.Errorf("%v", ns)
	}
}
