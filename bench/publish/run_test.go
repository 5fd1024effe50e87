package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/bench/compare"
	"github.com/ringcache/ringcache/bench/harness"
	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/objects"
	"github.com/ringcache/ringcache/bench/store"
)

func head() Head { return Head{Rounds: 2, Scale: Quick, Goroutines: 2, Build: "a"} }

// child answers for the processes: all figures are 7.
type child struct {
	ran  []string
	fail string        // the store whose runs fail
	stop func(ran int) // called after each
}

func (c *child) do(
	_ context.Context, s harness.Spec, m *map[string]float64, _ ...string,
) error {
	name := s.Store
	c.ran = append(c.ran, name)
	if c.stop != nil {
		c.stop(len(c.ran))
	}
	if name == c.fail {
		return errors.New("exploded, \"twice\"")
	}
	*m = map[string]float64{measure.NsPerOp: 7, objects.HotNS: 7}
	return nil
}

func total() int {
	n := 0
	for _, l := range loads() {
		n += len(l.stores)
	}
	return 2 * n
}

func TestMeasureWritesEveryRound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data.csv")
	var c child
	var out bytes.Buffer
	run, err := Measure(t.Context(), head(), file, c.do, &out)
	require.NoError(t, err)
	require.Len(t, c.ran, total())
	require.Contains(t, out.String(), fmt.Sprintf("[1/%d, ", total()))
	read, err := Read(file)
	require.NoError(t, err)
	require.Equal(t, run, read)
	require.Equal(t, measure.Summary{Median: 7, Min: 7, Max: 7, N: 2},
		read.of("dep-uniform", measure.NsPerOp, "otter"))
}

// A rival that fails is named, and takes no other's figures with it; the next run repeats
// what failed and nothing else.
func TestMeasureGoesOnAfterFailures(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data.csv")
	c := child{fail: "freecache"}
	run, err := Measure(t.Context(), head(), file, c.do, io.Discard)
	require.NoError(t, err)
	require.Len(t, c.ran, total())
	require.ErrorContains(t, run.Failure(), "exploded")
	read, err := Read(file)
	require.NoError(t, err)
	require.Equal(t, run.Failures(), read.Failures())
	require.Contains(t, fragment("run", read), "failed: dep-uniform, freecache, round 1: exploded")
	text := read.table(questions[0])
	require.Contains(t, text, "BigCache")
	require.NotContains(t, text, "freecache")

	failures := len(run.Failures())
	c = child{}
	run, err = Measure(t.Context(), head(), file, c.do, io.Discard)
	require.NoError(t, err)
	require.NoError(t, run.Failure())
	require.Len(t, c.ran, failures)
	require.Len(t, run.Results, total())
}

func TestMeasureResumes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data.csv")
	ctx, cancel := context.WithCancel(t.Context())
	c := child{stop: func(ran int) {
		if ran == 5 {
			cancel()
		}
	}}
	_, err := Measure(ctx, head(), file, c.do, io.Discard)
	require.ErrorIs(t, err, context.Canceled)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, append(text, "1,dep-unif"...), 0o644), "a line cut short")

	var out bytes.Buffer
	c = child{}
	run, err := Measure(t.Context(), head(), file, c.do, &out)
	require.NoError(t, err)
	require.Len(t, run.Results, total())
	require.Len(t, c.ran, total()-4)
	require.Contains(t, out.String(), "4 results are taken from ")

	c, out = child{}, bytes.Buffer{}
	other := head()
	other.Build = "b"
	_, err = Measure(t.Context(), other, file, c.do, &out)
	require.NoError(t, err)
	require.Len(t, c.ran, total(), "results of another build are not mixed in")
}

// Every row of the README and of the charts is measured, and every store has a column.
func TestRowsAreMeasured(t *testing.T) {
	rows := []row{getRow, mixRow, setRow, memoryRow, gcRow}
	for _, p := range pictures {
		rows = append(rows, p.rows...)
	}
	for _, row := range rows {
		same := func(l load) bool { return l.name == row.load.name }
		require.True(t, slices.ContainsFunc(loads(), same), row.load.name)
	}
	for _, l := range loads() {
		for _, name := range l.stores {
			require.True(t, slices.Contains(order, name) || name == fifo, name)
		}
	}
	for _, l := range loads() {
		require.NotNil(t, compare.Program.Find(l.name), l.name)
	}
}

// fake adds rounds of a cell.
func (r *Run) fake(load, metric, name string, rounds ...float64) {
	for i, v := range rounds {
		r.Results = append(r.Results, Result{Round: i + 1, Load: load, Store: name,
			Metrics: map[string]float64{metric: v}})
	}
}

func TestTableMarksOverlappingRanges(t *testing.T) {
	var r Run
	r.Machine.Cores, r.Machine.Date = 2, "2026-01-02"
	r.fake("dep-uniform", measure.NsPerOp, us, 50, 60, 70)
	r.fake("dep-uniform", measure.NsPerOp, "fastcache", 65, 80, 90)
	r.fake("dep-uniform", measure.NsPerOp, "otter", 100, 120, 130)
	r.fake("overwrite", measure.NsPerOp, us, 50, 60, 70)
	r.fake("overwrite", measure.NsPerOp, "fastcache", 30, 40, 45)
	r.fake("live-1", measure.GCTime, us, 0.2, 0.3, 0.4)
	r.fake("live-1", measure.GCTime, "otter", 5, 6, 7)
	r.fake("live-1", measure.GCTime, store.Null, 0.1, 0.2, 0.3)

	require.Equal(t, "| ns; 2 cores, 2026-01-02 | ringcache | fastcache | otter |\n"+
		"|---|--:|--:|--:|\n"+
		"| `dep-uniform`: each key depends on the last value | 60.0 (50.0-70.0) | "+
		"80.0 (65.0-90.0), ~0.75 | 120 (100-130), 0.50 |\n", r.table(questions[0]))
	collector := slices.IndexFunc(questions, func(q question) bool { return q.name == "collector" })
	require.Contains(t, r.table(questions[collector]),
		"| not measurable | 6.00 (5.00-7.00) | 0.20 (0.10-0.30) |")
	losses := r.losses()
	require.Equal(t, 3, strings.Count(losses, "\n"), losses)
	require.Contains(t, losses, "| 1.50 | 60.0 (50.0-70.0) | fastcache | 40.0 (30.0-45.0) |")

	r.fake("live-10", measure.GCTime, us, 0.4, 0.5, 0.6)
	r.fake("live-10", measure.GCTime, "fastcache", 0.3, 0.4, 0.5)
	r.fake("live-10", measure.GCTime, store.Null, 0.1, 0.2, 0.3)
	require.Contains(t, r.losses(), "| ~1.25 | 0.50 (0.40-0.60) | fastcache | not measurable |")
	require.Equal(t, notMeasured+"\n", (&Run{}).table(questions[0]))
}

func TestReadRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data.csv")
	for _, text := range []string{
		"", "# x\n", "# {}\na,b\n", "# {}\nround,load,store,metric,value,error\nx,a,b,c,1,\n",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		_, err := Read(file)
		require.ErrorContains(t, err, "publish: read ", text)
	}
}
