package table

import (
	"math"
	"testing"
)

func all(int) bool { return true }

func TestMarkdown(t *testing.T) {
	tab := New("load", []string{"ours", "a", "b"}, []Diff{
		{"- best", "ours", []string{"a", "b"}},
		{"- a", "ours", []string{"a", "absent"}},
		{"- absent", "ours", []string{"absent"}},
	})
	tab.Add("one", []float64{50, 40.006, 49.999})
	tab.Add("two", []float64{10, 12, 11})
	tab.Add("three", []float64{70, None, 60})
	tab.AddMeans("mean", all)
	tab.AddMeans("mean of one", func(i int) bool { return i == 0 })
	tab.AddMeans("mean of none", func(int) bool { return false })
	tab.AddLeast("least", all)
	const want = `| load | ours | a | b | - best | - a |
|---|--:|--:|--:|--:|--:|
| one | **50.00** | 40.01 | **50.00** | +0.00 | +9.99 |
| two | 10.00 | **12.00** | 11.00 | -2.00 | -2.00 |
| three | **70.00** | - | 60.00 | - | - |
| mean (2) | 30.00 | 26.00 | **30.50** | -1.00 | +4.00 |
| mean of one (1) | **50.00** | 40.01 | **50.00** | +0.00 | +9.99 |
| mean of none (0) | - | - | - | - | - |
| least | - | - | - | -2.00 | -2.00 |
`
	if got := string(tab.Markdown()); got != want {
		t.Fatalf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestMeansAreOfTheSameRows leaves out a row for all columns if one of them has no
// figure there.
func TestMeansAreOfTheSameRows(t *testing.T) {
	tab := New("", []string{"a", "b"}, nil)
	tab.Add("", []float64{1, 2})
	tab.Add("", []float64{100, None})
	tab.AddMeans("mean", all)
	if got := tab.Foot[0].Values; got[0] != 1 || got[1] != 2 {
		t.Fatalf("means %v", got)
	}
	if !math.IsNaN(None) {
		t.Fatal("None is a number")
	}
}
