package refcache

import (
	"slices"
	"testing"
)

func is(want int) func(int) bool { return func(v int) bool { return v == want } }

func TestModel_OnlyTheLastValue(t *testing.T) {
	var m Model[string, int]
	if m.Hit("a", is(1)) {
		t.Error("a hit before any write was allowed")
	}
	m.Set("a", 1)
	m.Set("a", 2)
	if m.Hit("a", is(1)) {
		t.Error("an overwritten value was allowed")
	}
	if !m.Hit("a", is(2)) {
		t.Error("the last value was refused")
	}
	if m.Hit("b", is(2)) {
		t.Error("another key's value was allowed")
	}
}

func TestModel_DroppedStaysDropped(t *testing.T) {
	var m Model[string, int]
	m.Set("a", 1)
	m.Set("b", 1)
	m.Drop("a")
	if m.Hit("a", is(1)) || !m.Hit("b", is(1)) || m.Len() != 1 {
		t.Error("Drop must take away its own key and no other")
	}
	m.Reset()
	if m.Hit("b", is(1)) || m.Len() != 0 {
		t.Error("Reset left a key behind")
	}
}

func TestModel_TryAllowsBothUntilSeen(t *testing.T) {
	var m Model[string, int]
	m.Try("a", 1) // on an empty model too
	m.Try("a", 2)
	if got := len(m.Candidates("a")); got != 2 {
		t.Fatalf("%d candidates after two tries, want 2", got)
	}
	if m.Hit("a", is(3)) {
		t.Error("a value that nobody wrote was allowed")
	}
	if !m.Hit("a", is(1)) {
		t.Error("the older candidate was refused")
	}
	if m.Hit("a", is(2)) {
		t.Error("the value changed after it had been seen")
	}
}

func TestModel_Keys(t *testing.T) {
	var m Model[string, int]
	if got := slices.Collect(m.Keys()); len(got) != 0 {
		t.Errorf("an empty model has the keys %q", got)
	}
	m.Set("b", 1)
	m.Set("a", 1)
	m.Set("c", 1)
	m.Drop("c")
	if got := slices.Sorted(m.Keys()); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %q", got)
	}
}
