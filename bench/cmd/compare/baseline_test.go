package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/bench/measure"
)

// fake makes a program that writes down what it is told to run, and says that it took
// four seconds.
func fake(t *testing.T) (exe, told string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no shell")
	}
	exe = filepath.Join(t.TempDir(), "old")
	told = exe + ".told"
	script := "#!/bin/sh\necho \"$1 $2\" >>\"$0.told\"\necho '{\"ns/op\": 4e9}'\n"
	require.NoError(t, os.WriteFile(exe, []byte(script), 0o755))
	return exe, told
}

func TestBaselineRunsInTheOtherProgram(t *testing.T) {
	exe, told := fake(t)
	var out, progress bytes.Buffer
	require.NoError(t, run(t.Context(), []string{
		"-quick", "-entries", "2000", "-duration", "1ms", "-cpu", "1", "-rounds", "2",
		"-stores", "fastcache,ringcache", "-loads", "dep-uniform", "-baseline", exe,
	}, &out, &progress), &progress)

	text := out.String()
	require.Contains(t, text, "\n| | fastcache | ringcache | ringcache-baseline |\n")
	require.Contains(t, text, " | 4000000000 (4000000000-4000000000) |\n")
	require.Contains(t, text, "\nRatio to fastcache:\n")
	require.Contains(t, text, "\nRatio to ringcache-baseline:\n")
	require.Contains(t, text, " | 1.00 |\n")

	said, err := os.ReadFile(told)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	require.Len(t, lines, 2, "one for each round")
	for _, line := range lines {
		flag, arg, _ := strings.Cut(line, " ")
		require.Equal(t, "-child", flag)
		var spec measure.Spec
		require.NoError(t, json.Unmarshal([]byte(arg), &spec))
		require.Equal(t, "ringcache", spec.Store)
		require.Equal(t, "dep-uniform", spec.Load)
		require.Equal(t, 2000, spec.Scale.Entries)
	}
}

func TestBaselineOptions(t *testing.T) {
	exe, _ := fake(t)
	for _, bad := range [][]string{
		{"-stores", "ringcache-baseline"},
		{"-baseline", exe + "-missing"},
		{"-baseline", exe, "-stores", "nothing-baseline"},
	} {
		_, err := parseOptions(bad, new(bytes.Buffer))
		require.Error(t, err, "%v", bad)
	}
	for stores, want := range map[string][]string{
		"ringcache,null":          {"ringcache", "ringcache-baseline", "null"},
		"fastcache":               {"ringcache-baseline", "fastcache"},
		"null,fastcache-baseline": {"null", "fastcache-baseline"},
	} {
		o, err := parseOptions([]string{"-baseline", exe, "-stores", stores}, new(bytes.Buffer))
		require.NoError(t, err)
		require.Equal(t, want, o.Stores)
	}
	t.Chdir(filepath.Dir(exe))
	o, err := parseOptions([]string{"-baseline", filepath.Base(exe)}, new(bytes.Buffer))
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(o.stores.Baseline),
		"it is found from any directory: %s", o.stores.Baseline)
}

// TestBaselineFits leaves a store out of what it cannot do in either program.
func TestBaselineFits(t *testing.T) {
	exe, _ := fake(t)
	args := []string{"-baseline", exe, "-stores", "sync.Map-baseline,null", "-loads", "set-new"}
	o, err := parseOptions(args, new(bytes.Buffer))
	require.NoError(t, err)
	runs, _, err := o.plan()
	require.NoError(t, err)
	for _, r := range runs {
		require.Equal(t, "null", r.Store)
	}
}
