package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/measure"
)

// program has loads that take no time. Those of "other" fail on fastcache.
var program = &Program{
	Name: "program", Title: "A title", Package: "./program", Quick: measure.Quick, Base: "fastcache",
	Want: map[string]float64{"held": 1},
	Groups: []Group{
		{
			Name: "first", Note: "A note.", Metrics: []string{"ns/op", "share found"},
			Loads: []*Load{
				{
					Name: "a", Stores: []string{"ringcache", "fastcache"},
					Fits: func(store string) bool { return store != "otter" && store != "nothing" },
					Run: func(s Spec) (Metrics, error) {
						ns := map[string]float64{"ringcache": 10, "fastcache": 20}[s.Store]
						return Metrics{"ns/op": ns, "held": 0.5, "extra": 1}, nil
					},
				},
				{
					Name: "b", Stores: []string{"ringcache", "otter"},
					Run: func(s Spec) (Metrics, error) {
						return Metrics{"share found": 0.99999, "round": float64(s.Round)}, nil
					},
				},
			},
		},
		{
			Name: "other", Metrics: []string{"ns/op"},
			Loads: Rows([]string{"c", "d"}, []string{"fastcache"}, func(s Spec) (Metrics, error) {
				return nil, fmt.Errorf("wrong value in %s", s.Load)
			}),
		},
	},
}

// TestMain lets the test program be its own child.
func TestMain(m *testing.M) {
	if is, err := cli.Part(os.Args[1:], os.Stdout, program.Do); is {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestTurns(t *testing.T) {
	names := []string{"a", "b", "c"}
	for _, test := range []struct {
		turn, round int
		want        []string
	}{
		{0, 0, []string{"a", "b", "c"}},
		{2, 0, []string{"c", "a", "b"}},
		{0, 1, []string{"b", "a", "c"}},
		{1, 1, []string{"c", "b", "a"}},
		{4, 2, []string{"a", "b", "c"}},
	} {
		require.Equal(t, test.want, Turns(names, test.turn, test.round), "%+v", test)
	}
	require.Equal(t, []string{"a", "b", "c"}, names)
	require.Empty(t, Turns(nil, 1, 1))
}

func TestEndToEnd(t *testing.T) {
	dir := t.TempDir()
	md, csv := filepath.Join(dir, "out.md"), filepath.Join(dir, "out.csv")
	var progress bytes.Buffer
	err := program.Run(t.Context(), []string{
		"-quick", "-rounds", "2", "-o", md, "-csv", csv,
	}, io.Discard, &progress)
	require.ErrorContains(t, err, "4 of 12 runs failed, the first: c, fastcache, round 1: ", &progress)
	require.ErrorContains(t, err, "wrong value in c")
	require.Equal(t, 12, strings.Count(progress.String(), "\n"), &progress)

	text, err := os.ReadFile(md)
	require.NoError(t, err)
	for _, want := range []string{
		"# A title\n", "`go run ./program -quick -rounds 2",
		"\n## first\n\nA note.\n\n| ns/op | ringcache | fastcache |\n|---|--:|--:|\n" +
			"| a | 10.0 (10.0-10.0), 0.50 | 20.0 (20.0-20.0) |\n",
		"\n| share found | ringcache | otter |\n|---|--:|--:|\n| b | 0.999 (0.999-0.999) |",
		"\n- a, ringcache: held 0.50 (0.50-0.50)\n", "- c, fastcache, round 1: ",
	} {
		require.Contains(t, string(text), want)
	}
	lines, err := os.ReadFile(csv)
	require.NoError(t, err)
	require.Contains(t, string(lines), "round,load,store,metric,value,error\n")
	require.Contains(t, string(lines), "\n2,a,fastcache,ns/op,20,\n")
	require.Contains(t, string(lines), "\n2,b,otter,round,2,\n")
	require.Contains(t, string(lines), "\n2,d,fastcache,,,run: exit status 1: wrong value in d\n")
}

// An interrupt leaves what was done before it, and is an error.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	progress := writer(func(line []byte) {
		if bytes.HasPrefix(line, []byte("[1/")) {
			cancel()
		}
	})
	err := program.Run(ctx, []string{"-quick", "-loads", "a,b"}, &out, progress)
	require.ErrorIs(t, err, context.Canceled)
	require.Contains(t, out.String(), "**Interrupted**: 1 runs")
	require.Contains(t, out.String(), "| a |")
}

type writer func(line []byte)

func (w writer) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}

func TestPerformStopsWhenAResultCannotBeKept(t *testing.T) {
	runs := Plan([]Part{{"a", []string{"ringcache"}}}, 3, measure.Quick)
	full := errors.New("disk full")
	n := 0
	child := func(context.Context, Spec, *Metrics, ...string) error { n++; return nil }
	err := Perform(t.Context(), runs, child, io.Discard, func(Result) error { return full })
	require.ErrorIs(t, err, full)
	require.Less(t, n, 3)
}

func TestOptions(t *testing.T) {
	for _, bad := range [][]string{
		{"-stores", "nothing"}, {"-stores", "ringcache-baseline"}, {"-loads", "nothing"},
		{"-rounds", "-1"}, {"-entries", "1"}, {"-duration", "-1s"},
		{"extra"}, {"-loads", "a", "-stores", "otter"}, {"-baseline", "/missing"},
	} {
		_, err := program.parse(bad, io.Discard)
		require.Error(t, err, "%v", bad)
	}
	o, err := program.parse([]string{"-quick", "-rounds", "3", "-entries", "5000", "-loads", "d,b"},
		io.Discard)
	require.NoError(t, err)
	require.Equal(t, 3, o.rounds)
	require.Equal(t, 5000, o.scale.Entries, "-quick leaves what is asked for")
	require.Equal(t, measure.Quick.FullMB, o.scale.FullMB)
	require.Equal(t, []string{"b", "d"}, []string{o.parts[0].Load, o.parts[1].Load})
	o, err = program.parse([]string{"-loads", "first", "-stores", "otter,null"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, []string{"null"}, o.parts[0].Stores, "a store that cannot do it is left out")
	require.Equal(t, []string{"otter"}, o.parts[1].Stores)
}

// Every store is the first one of a load at some time.
func TestPlanRotates(t *testing.T) {
	names := []string{"x", "otter", "z"}
	runs := Plan([]Part{{"b", names}}, 3, measure.Quick)
	require.Len(t, runs, 9)
	require.Equal(t, []string{"x", "otter", "z"},
		[]string{runs[0].Store, runs[3].Store, runs[6].Store})
	require.Equal(t, 3, runs[8].Round)
}

// fake makes a program that writes down what it is told to run, and says that it took
// four seconds.
func fake(t *testing.T) (exe string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no shell")
	}
	exe = filepath.Join(t.TempDir(), "old")
	script := "#!/bin/sh\necho \"$1 $2\" >>\"$0.told\"\necho '{\"ns/op\": 4e9}'\n"
	require.NoError(t, os.WriteFile(exe, []byte(script), 0o755))
	return exe
}

func TestBaselineRunsInTheOtherProgram(t *testing.T) {
	exe := fake(t)
	var out, progress bytes.Buffer
	require.NoError(t, program.Run(t.Context(), []string{
		"-quick", "-entries", "2000", "-duration", "1ms", "-rounds", "2",
		"-stores", "fastcache,ringcache", "-loads", "a", "-baseline", exe,
	}, &out, &progress), &progress)
	require.Contains(t, out.String(), "\n| ns/op | fastcache | ringcache | ringcache-baseline |\n")
	require.Contains(t, out.String(), " | 4000000000 (4000000000-4000000000) |\n")
	require.Contains(t, out.String(), "ratio to the median of ringcache-baseline")

	said, err := os.ReadFile(exe + ".told")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	require.Len(t, lines, 2, "one for each round")
	for i, line := range lines {
		flag, arg, _ := strings.Cut(line, " ")
		require.Equal(t, "-child", flag)
		var spec Spec
		require.NoError(t, json.Unmarshal([]byte(arg), &spec))
		want := Spec{Load: "a", Store: "ringcache", Round: i + 1, Scale: measure.Quick}
		want.Scale.Entries, want.Scale.Duration = 2000, time.Millisecond
		require.Equal(t, want, spec)
	}
}

func TestBaselineOptions(t *testing.T) {
	exe := fake(t)
	for stores, want := range map[string][]string{
		"ringcache,null":          {"ringcache", "ringcache-baseline", "null"},
		"fastcache":               {"ringcache-baseline", "fastcache"},
		"null,fastcache-baseline": {"null", "fastcache-baseline"},
		"":                        {"ringcache", "ringcache-baseline", "fastcache"},
	} {
		o, err := program.parse([]string{"-baseline", exe, "-stores", stores, "-loads", "a"}, io.Discard)
		require.NoError(t, err)
		require.Equal(t, want, o.parts[0].Stores)
	}
	_, err := program.parse([]string{"-baseline", exe, "-stores", "nothing-baseline"}, io.Discard)
	require.Error(t, err)
	t.Chdir(filepath.Dir(exe))
	o, err := program.parse([]string{"-baseline", filepath.Base(exe)}, io.Discard)
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(o.baseline), "it is found from any directory: %s", o.baseline)
}

func TestTable(t *testing.T) {
	values := map[[2]string][]float64{
		{"reads", "a"}: {3, 1, 2}, {"reads", "b"}: {6, 7, 8}, {"writes", "b"}: {7},
	}
	get := func(row, column string) measure.Summary {
		return measure.Summarize(values[[2]string{row, column}])
	}
	rows, columns := []string{"reads", "writes", "none"}, []string{"a", "b", "none"}
	require.Equal(t, "\n| ns | a | b |\n|---|--:|--:|\n"+
		"| reads | 2.00 (1.00-3.00) | 7.00 (6.00-8.00), 3.50 |\n| writes | - | 7.00 |\n",
		string(Table("ns", rows, columns, "a", get)))
	require.Empty(t, Table("ns", []string{"none"}, columns, "a", get))
	require.Equal(t, "0.999", share(0.99999), "not all")
}

func TestDoRefuses(t *testing.T) {
	for _, s := range []Spec{{Load: "x", Store: "ringcache"}, {Load: "a", Store: "otter"}} {
		_, err := program.Do(s)
		require.Error(t, err, "%+v", s)
	}
}
