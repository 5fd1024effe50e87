package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/bench/churn"
	"github.com/ringcache/ringcache/bench/cli"
	"github.com/ringcache/ringcache/bench/compare"
	"github.com/ringcache/ringcache/bench/harness"
	"github.com/ringcache/ringcache/bench/measure"
	"github.com/ringcache/ringcache/bench/restart"
)

// TestMain lets the test program be its own child, as compare is.
func TestMain(m *testing.M) {
	if is, err := cli.Part(os.Args[1:], os.Stdout, compare.Program.Do); is {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestCompareEndToEnd(t *testing.T) {
	var out, progress bytes.Buffer
	require.NoError(t, run(t.Context(), []string{
		"-quick", "-rounds", "2", "-entries", "2000", "-duration", "1ms",
		"-stores", "ringcache,fastcache,null",
		"-loads", "get-batch,set-1000,live-10,latency-grow,set-new",
	}, &out, &progress), &progress)
	for _, want := range []string{
		"\n## 16+100\n\n| ns/op | ringcache | fastcache | null |\n", "\n| get-batch | ",
		"\n| set-1000 | ", "\n| gc ms | ringcache | fastcache | null |\n",
		"\n| overhead B/entry | ringcache | fastcache |\n",
		"\n| set p99.9 ns | ", "\n| get max ns | ", "\n| entries held | ",
		"\n| latency-grow | 1.00 (1.00-1.00), ~1.00 | 1.00 (1.00-1.00) | 0.00 (0.00-0.00), 0 |\n",
	} {
		require.Contains(t, out.String(), want)
	}
}

// A process performs the loads of each package. The one that is killed on the way leaves its
// entries.
func TestLoads(t *testing.T) {
	perform := func(load, store string) (m harness.Metrics) {
		s := harness.Spec{Load: load, Store: store, Scale: measure.Scale{Entries: 2000}}
		require.NoError(t, harness.Again(context.Background(), s, &m), "%s on %s", load, store)
		return m
	}
	for _, name := range restart.Stores {
		m := perform(restart.Kill, name)
		require.Equal(t, 1.0, m[restart.Back], name)
		require.Positive(t, m[restart.Open], name)
		require.NotContains(t, m, restart.Size, name)
		m = perform(restart.Snapshot, name)
		require.Greater(t, m[restart.Back], 0.999, name)
		for _, metric := range []string{restart.Save, restart.Size, restart.Open} {
			require.Positive(t, m[metric], name)
		}
		require.Positive(t, perform("append 0.15", name)[churn.NsWrite], name)
	}
	require.Positive(t, perform("ref-get", "ringcache")[measure.NsPerOp])
	if m := perform("json 300", "Typed"); len(m) == 0 {
		t.Error("nothing is measured")
	}
}

// The stores of a load can take part in it, and others are refused.
func TestStoresFit(t *testing.T) {
	for _, g := range compare.Program.Groups {
		for _, l := range g.Loads {
			require.NotEmpty(t, l.Stores, l.Name)
			if l.Fits != nil {
				require.False(t, l.Fits("nothing"), l.Name)
			}
		}
	}
	_, err := compare.Program.Do(harness.Spec{Load: "append 0.4", Store: "null"})
	require.ErrorContains(t, err, "cannot do that")
	_, err = compare.Program.Do(harness.Spec{Load: "json 1000", Store: "fastcache"})
	require.ErrorContains(t, err, "cannot do that")
}
