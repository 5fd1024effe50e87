// Package trace has the sequences of requests that hit ratios are measured on:
// recorded traces, and synthetic loads.
package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Env names the environment variable with the directory of the recorded traces.
const Env = "RINGCACHE_TRACES"

// suffix is how the name of a trace's file ends.
const suffix = ".csv.gz"

// Trace is a sequence of requests for keys 0, 1, ... Keys-1.
type Trace struct {
	Name     string
	Requests []Request
	Keys     int
	Sized    bool // the requests say how large the objects are
	Copies   int  // key spaces to be interleaved: see Source.Open

	Cycle []Step // what requests do, in turn; empty: all are ReadThrough
	Warm  int    // requests before those that count
}

// Step says what a request does.
type Step uint8

// The steps.
const (
	ReadThrough Step = iota // Get, and on a miss Set
	Write                   // Set
	Read                    // Get; a load that has such requests is about them
)

// Step returns what request i does.
func (t *Trace) Step(i int) Step {
	if len(t.Cycle) == 0 {
		return ReadThrough
	}
	return t.Cycle[i%len(t.Cycle)]
}

// Group says what kind of source a trace has.
type Group string

// The groups of sources.
const (
	Recorded  Group = "traces"    // recorded in some system
	Hybrid    Group = "hybrid"    // recorded order, drawn sizes
	Synthetic Group = "synthetic" // made here
	Late      Group = "late"      // made here, of reads long after the Set
)

// Source is where a trace comes from.
type Source struct {
	Name    string
	Group   Group
	Percent float64 // of the footprint: the one size it is for; 0: any
	open    func(scale int) (*Trace, error)
}

// Sizes returns which of the sizes the source is for.
func (s Source) Sizes(sizes []float64) []float64 {
	if s.Percent > 0 {
		return []float64{s.Percent}
	}
	return sizes
}

// Open returns the trace at a scale: with that many times the keys and requests.
// A synthetic load is made with more of both. A recorded trace stays as it is,
// and has Copies set: whoever replays it makes every request that many times,
// each time in a separate key space.
func (s Source) Open(scale int) (*Trace, error) {
	t, err := s.open(scale)
	if err != nil {
		return nil, fmt.Errorf("trace: open %s: %w", s.Name, err)
	}
	t.Name = s.Name
	return t, nil
}

// Scale returns how many times the keys and requests are what the base has.
func (t *Trace) Scale() int { return max(1, t.Copies) }

// Replays returns the number of requests with all copies.
func (t *Trace) Replays() int { return len(t.Requests) * t.Scale() }

// Sources returns all sources: the traces below dir, if it is not empty, and the
// synthetic loads.
func Sources(dir string) ([]Source, error) {
	recorded, err := files(dir)
	return slices.Concat(recorded, synthetic(), late()), err
}

// ErrNoTraces is why there are no recorded traces.
var ErrNoTraces = errors.New("no recorded traces")

// files lists the recorded traces below dir.
func files(dir string) ([]Source, error) {
	if dir == "" {
		return nil, fmt.Errorf("trace: %w: no directory is named", ErrNoTraces)
	}
	var found []Source
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, suffix) {
			return err
		}
		name, err := filepath.Rel(dir, strings.TrimSuffix(path, suffix))
		if err == nil {
			found = append(found, file(filepath.ToSlash(name), path))
		}
		return err
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("trace: %w: %w", ErrNoTraces, err)
	}
	if err != nil {
		return nil, fmt.Errorf("trace: list traces: %w", err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("trace: %w: no *%s below %s", ErrNoTraces, suffix, dir)
	}
	slices.SortStableFunc(found,
		func(a, b Source) int { return strings.Compare(string(b.Group), string(a.Group)) })
	return found, nil
}

func file(name, path string) Source {
	group := Recorded
	if strings.HasPrefix(name, "hybrid/") {
		group = Hybrid
	}
	return Source{Name: name, Group: group, open: func(scale int) (*Trace, error) {
		reqs, err := loadRequests(path)
		if err != nil {
			return nil, err
		}
		t := &Trace{Requests: reqs, Copies: scale}
		return t, t.check()
	}}
}

// check counts the keys, which must be dense: ids are used as indexes.
func (t *Trace) check() error {
	if len(t.Requests) == 0 {
		return errors.New("no requests")
	}
	for i, r := range t.Requests {
		switch {
		case int(r.Key) > t.Keys:
			return fmt.Errorf("request %d: key id %d comes before %d", i+1, r.Key, t.Keys)
		case int(r.Key) == t.Keys:
			t.Keys++
		}
		t.Sized = t.Sized || r.Size > 0
	}
	return nil
}

// Find returns the sources of the given names, or groups of them, in the order of
// all.
func Find(all []Source, names []string) ([]Source, error) {
	var found []Source
	used := make([]bool, len(names))
	for _, s := range all {
		chosen := false
		for i, name := range names {
			if name == s.Name || Group(name) == s.Group {
				chosen, used[i] = true, true
			}
		}
		if chosen {
			found = append(found, s)
		}
	}
	for i, name := range names {
		if !used[i] && !slices.Contains([]Group{Recorded, Hybrid, Synthetic, Late}, Group(name)) {
			return nil, fmt.Errorf("trace: find %q: not among the %d loads", name, len(all))
		}
	}
	return found, nil
}
