package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/bench/publish"
)

// The pages are made again from data, below the root that is named and nowhere else.
func TestPublishFrom(t *testing.T) {
	const root = "../../.."
	copied := t.TempDir()
	files := append([]string{publish.Data, "docs/data/hitratio.csv"}, publish.Pages...)
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		file := filepath.Join(copied, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, text, 0o644))
	}
	data := filepath.Join(copied, publish.Data)
	moved := filepath.Join(copied, "moved.csv")
	require.NoError(t, os.Rename(data, moved))
	var out bytes.Buffer
	args := []string{"-publish", "-from", moved, "-root", copied}
	require.NoError(t, run(t.Context(), args, &out, io.Discard))
	require.FileExists(t, data)
	require.FileExists(t, filepath.Join(copied, "docs/charts/reading.svg"))
	args = []string{"-publish", "-quick", "-from", moved}
	require.NoError(t, run(t.Context(), args, &out, io.Discard))
	require.Contains(t, out.String(), "## Reading\n")
}

func TestPublishOptions(t *testing.T) {
	for _, bad := range [][]string{{"extra"}, {"-rounds", "4"}} {
		_, err := parsePublication(append([]string{"-publish"}, bad...), io.Discard)
		require.Error(t, err, "%v", bad)
	}
	p, err := parsePublication([]string{"-publish"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, publish.Rounds, p.Rounds)
	require.Equal(t, "..", p.root)
	p, err = parsePublication([]string{"-publish", "-quick"}, io.Discard)
	require.NoError(t, err)
	require.Empty(t, p.root)
}
