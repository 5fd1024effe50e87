package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/store"
)

// plan lists all runs in their order. Stores take turns within a load. Another one
// begins for every load and round, and every second round goes backwards, so that
// no store always follows the same one.
func (o *options) plan() ([]result, error) {
	loads, err := measure.FindLoads(o.Loads)
	if err != nil {
		return nil, err
	}
	var runs []result
	for round := range o.Rounds {
		for i, l := range loads {
			for _, cpu := range o.cpusOf(l) {
				for _, name := range o.turns(i+round, round%2 == 1) {
					if fits(l, name) {
						runs = append(runs, result{Round: round, Load: l.Name, Store: name, CPU: cpu})
					}
				}
			}
		}
	}
	return runs, nil
}

// turns returns the stores, beginning with the one at first.
func (o *options) turns(first int, backwards bool) []string {
	first %= len(o.Stores)
	names := slices.Concat(o.Stores[first:], o.Stores[:first])
	if backwards {
		slices.Reverse(names[1:])
	}
	return names
}

func (o *options) cpusOf(l *measure.Load) []int {
	if l.PerCPU {
		return o.CPUs
	}
	return o.CPUs[len(o.CPUs)-1:]
}

// fits reports whether the store can run the load: a store without a bound is
// never full.
func fits(l *measure.Load, name string) bool {
	info, err := store.Find(name)
	return err == nil && (info.Bounded || !l.Full)
}

// runAll carries out the plan. A failed run is noted and the rest goes on.
func (o *options) runAll(ctx context.Context, progress io.Writer) ([]result, error) {
	runs, err := o.plan()
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	began := time.Now()
	for i := range runs {
		r := &runs[i]
		start := time.Now()
		r.Metrics, err = o.runChild(ctx, exe, *r)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			r.Error = err.Error()
		}
		r.Seconds = time.Since(start).Seconds()
		left := time.Since(began) / time.Duration(i+1) * time.Duration(len(runs)-i-1)
		fmt.Fprintf(progress, "[%d/%d, %v left] round %d  %-12s cpu=%d  %-12s %v\n",
			i+1, len(runs), left.Round(time.Second), r.Round+1, r.Load, r.CPU, r.Store, r)
	}
	return runs, nil
}

// runChild runs this program once more, for one run.
func (o *options) runChild(ctx context.Context, exe string, r result) (measure.Metrics, error) {
	spec, err := json.Marshal(measure.Spec{Load: r.Load, Store: r.Store, Scale: o.Scale})
	if err != nil {
		return nil, fmt.Errorf("write run: %w", err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, exe, childFlag, string(spec))
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", r.CPU))
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		reason, _, _ := strings.Cut(stderr.String(), "\n") // of a panic, the rest is the stack
		return nil, fmt.Errorf("run: %w: %s", err, reason)
	}
	var m measure.Metrics
	if err := json.Unmarshal(stdout.Bytes(), &m); err != nil {
		return nil, fmt.Errorf("read result: %w", err)
	}
	return m, nil
}
