// Package compare has the program that compares caches: all loads, and who takes part in them.
package compare

import (
	"context"
	"fmt"

	"github.com/ringcache/ringcache/bench/churn"
	"github.com/ringcache/ringcache/bench/harness"
	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/objects"
	"github.com/ringcache/ringcache/bench/restart"
	"github.com/ringcache/ringcache/bench/store"
)

// Program is cmd/compare.
var Program = &harness.Program{
	Name: "compare", Title: "ringcache and other caches", Package: "./cmd/compare",
	Groups: append(timed(), rewritten(), decoded(), restarted()),
	Quick:  measure.Quick,
	Base:   "fastcache",
	Want:   map[string]float64{measure.Held: 1, churn.Refused: 0},
}

// timed are the loads of package measure.
func timed() (groups []harness.Group) {
	for _, l := range measure.Loads {
		if n := len(groups); n == 0 || groups[n-1].Name != l.Group {
			groups = append(groups, harness.Group{Name: l.Group, Metrics: measure.MetricsOf(l.Group)})
		}
		g := &groups[len(groups)-1]
		g.Loads = append(g.Loads, &harness.Load{
			Name: l.Name, Stores: store.Names(store.All), Fits: isStore,
			Run: func(s harness.Spec) (harness.Metrics, error) {
				return measure.Run(s.Load, s.Store, s.Scale)
			},
		})
	}
	return groups
}

func isStore(name string) bool {
	_, err := store.Find(name)
	return err == nil
}

// rewritten are the loads of package churn.
func rewritten() harness.Group {
	g := harness.Group{Name: "churn", Metrics: churn.Rows}
	for _, l := range churn.Loads {
		g.Loads = append(g.Loads, &harness.Load{
			Name: l.Name, Stores: store.Names(store.Writes),
			Fits: func(name string) bool { return name != store.Null && isStore(name) },
			Run: func(s harness.Spec) (harness.Metrics, error) {
				return churn.Run(s.Load, s.Store, s.Scale.IsSmall())
			},
		})
	}
	return g
}

// decoded are the loads of package objects.
func decoded() harness.Group {
	g := harness.Group{Name: "decoded", Metrics: objects.Rows}
	for _, bytes := range objects.Sizes {
		g.Loads = append(g.Loads, &harness.Load{
			Name: fmt.Sprintf("json %d", bytes), Stores: objects.StoreNames,
			Run: func(s harness.Spec) (harness.Metrics, error) {
				return objects.Run(bytes, s.Store, s.Scale)
			},
		})
	}
	return g
}

// restarted are the loads of package restart.
func restarted() harness.Group {
	g := harness.Group{Name: "restart", Metrics: restart.Rows}
	for _, name := range []string{restart.Kill, restart.Snapshot} {
		g.Loads = append(g.Loads, &harness.Load{
			Name: name, Stores: restart.Stores,
			Run: runRestart,
		})
	}
	return g
}

func runRestart(s harness.Spec) (harness.Metrics, error) {
	task := restart.Task{Load: s.Load, Store: s.Store, Entries: s.Scale.Entries, Dir: s.Dir}
	return task.Run(func(dir string) (m measure.Metrics, err error) {
		s.Dir = dir
		err = harness.Again(context.Background(), s, &m)
		return m, err
	})
}
