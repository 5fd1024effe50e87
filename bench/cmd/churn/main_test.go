package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/bench/churn"
	"github.com/ringcache/ringcache/bench/cli"
)

// TestMain lets the test program be its own child, as churn is.
func TestMain(m *testing.M) {
	if is, err := cli.Part(os.Args[1:], os.Stdout, churn.Run); is {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestChurnEndToEnd(t *testing.T) {
	dir := t.TempDir()
	md, csv := filepath.Join(dir, "out.md"), filepath.Join(dir, "out.csv")
	var progress bytes.Buffer
	require.NoError(t, run(t.Context(), []string{
		"-quick", "-mean", "4000", "-rounds", "2", "-stores", "ringcache,ringcache-file,fastcache",
		"-loads", "churn-zipf,grow-ttl,delete-half", "-o", md, "-csv", csv,
	}, io.Discard, &progress), &progress)

	text, err := os.ReadFile(md)
	require.NoError(t, err)
	for _, want := range []string{
		"`go run ./cmd/churn -quick",
		"\n| hit ratio of the reads, % | ringcache | ringcache-file | fastcache |\n",
		"\n| requests of 1,000 that find their session lost | ringcache | ringcache-file |\n",
		"\n| entries evicted | ringcache | ringcache-file |\n",
		"\n| share found of the new entries | ringcache | ringcache-file | fastcache |\n",
		"\n| 32 MB, values of 4000 bytes, live 0.72 | ",
	} {
		require.Contains(t, string(text), want)
	}
	require.Regexp(t, `live 0.50 \| \d\.\d{3} \(\d\.\d{3}-\d\.\d{3}\) \|`, string(text))

	lines, err := os.ReadFile(csv)
	require.NoError(t, err)
	require.Contains(t, string(lines), "\n2,delete-half,32,4000,0.72,ringcache-file,ns per write,")
	require.Equal(t, 2, strings.Count(string(lines), ",fastcache,share found of the old entries,"))
}

func TestOptions_Refuses(t *testing.T) {
	for _, bad := range [][]string{
		{"more"}, {"-rounds", "0"}, {"-turns", "0"}, {"-mb", "16"}, {"-mb", "x"}, {"-mean", "10"},
		{"-live", "0"}, {"-live", "NaN"}, {"-live", "x"}, {"-loads", "nothing"}, {"-stores", "nothing"},
		{"-payload", "xml"}, {"-baseline", "/nothing"}, {"-stores", "ringcache-baseline"},
	} {
		_, err := parseOptions(bad, io.Discard)
		require.Error(t, err, "%v", bad)
	}
	o, err := parseOptions([]string{"-loads", "grow-ttl", "-stores", "fastcache"}, io.Discard)
	require.NoError(t, err)
	_, err = o.plan()
	require.ErrorContains(t, err, "none of the stores")
}

func TestOptions_QuickLeavesWhatIsAskedFor(t *testing.T) {
	o, err := parseOptions([]string{"-quick", "-rounds", "3", "-live", "0.3,0.7"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, []int{32}, o.mbs)
	require.Equal(t, []float64{0.3, 0.7}, o.lives)
	require.Equal(t, 2, o.turns)
	require.Equal(t, 3, o.rounds)
}

func TestFailuresAndRefusalsAreShown(t *testing.T) {
	o, err := parseOptions([]string{"-loads", "churn", "-live", "0.5", "-stores", "ringcache"},
		io.Discard)
	require.NoError(t, err)
	c := churn.Case{Load: "churn", MB: 64, Mean: 400, Live: 0.5}
	d := document{options: o, results: []result{
		{Case: c, store: "ringcache", err: errors.New("wrong value")},
		{Case: c, store: "ringcache", metrics: churn.Metrics{churn.Found: 0.9999, churn.Refused: 7}},
	}}
	text := string(d.markdown())
	require.Contains(t, text, "wrong value")
	require.Contains(t, text, "ringcache refused 7 writes of churn, 64 MB")
	require.Contains(t, text, "| 0.999 |", "not all")
	require.ErrorContains(t, d.failure(), "1 of 2 runs failed")
}
