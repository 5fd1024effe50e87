// Package harness is how everything here is measured: each run in its own process, the stores in
// turns, several rounds, and tables of the medians with their ranges.
package harness

import (
	"context"
	"fmt"
	"slices"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/measure"
)

// Metrics are the results of a run by name.
type Metrics = measure.Metrics

// Spec is what a process measures.
type Spec struct {
	Load, Store string
	Scale       measure.Scale
	Round       int    // from 1
	Dir         string `json:",omitempty"` // for the second process of a run
}

// Load is one thing to measure, a row of the tables.
type Load struct {
	Name   string
	Stores []string                // that are measured unless others are asked for
	Fits   func(store string) bool // whether one can take part; nil: one of Stores
	Run    func(Spec) (Metrics, error)
}

func (l *Load) fits(store string) bool {
	if l.Fits == nil {
		return slices.Contains(l.Stores, Bare(store))
	}
	return l.Fits(Bare(store))
}

// Rows returns loads that differ in what run makes of their names.
func Rows(names, stores []string, run func(Spec) (Metrics, error)) (loads []*Load) {
	for _, name := range names {
		loads = append(loads, &Load{Name: name, Stores: stores, Run: run})
	}
	return loads
}

// Group is a part of a document: loads with the same metrics.
type Group struct {
	Name, Note string
	Metrics    []string // a table each
	Loads      []*Load
}

// Program measures groups of loads.
type Program struct {
	Name, Title string
	Package     string // for the command in the document
	Groups      []Group
	Quick       measure.Scale
	Base        string             // the store that ratios are to; "": there are none
	Want        map[string]float64 // other values of these metrics are named at the end
}

// Main runs the program with the arguments of the process, and ends the process.
func (p *Program) Main() { cli.Main(p.Name, p.Run) }

// Do performs a run in this process, which should do nothing else and end afterwards.
func (p *Program) Do(s Spec) (Metrics, error) {
	l := p.Find(s.Load)
	if l == nil {
		return nil, fmt.Errorf("no load %q", s.Load)
	}
	if !l.fits(s.Store) {
		return nil, fmt.Errorf("run %s on %s: the store cannot do that", s.Load, s.Store)
	}
	return l.Run(s)
}

// Find returns the load of that name, or nil.
func (p *Program) Find(name string) *Load {
	for _, g := range p.Groups {
		for _, l := range g.Loads {
			if l.Name == name {
				return l
			}
		}
	}
	return nil
}

// find returns the loads of which the name or the group is in the list; all if it is empty.
func (p *Program) find(list []string) ([]*Load, error) {
	var found []*Load
	known := map[string]bool{}
	for _, g := range p.Groups {
		known[g.Name] = true
		for _, l := range g.Loads {
			known[l.Name] = true
			if len(list) == 0 || slices.Contains(list, l.Name) || slices.Contains(list, g.Name) {
				found = append(found, l)
			}
		}
	}
	for _, name := range list {
		if !known[name] {
			return nil, fmt.Errorf("-loads: no load or group %q", name)
		}
	}
	return found, nil
}

// Again performs s in another process of this program.
func Again(ctx context.Context, s Spec, m *Metrics, env ...string) error {
	return cli.Again(ctx, s, m, env...)
}
