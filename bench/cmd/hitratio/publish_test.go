package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/bench/hitratio"
	"github.com/ringcache/ringcache/bench/publish"
	"github.com/ringcache/ringcache/bench/trace"
)

// Every published set is one that the program can replay.
func TestPublishedSetsAreKnown(t *testing.T) {
	dir := writeTrace(t, "arc_oltp")
	tiny := filepath.Join(dir, "arc_oltp.csv.gz")
	for _, name := range strings.Split(fewer+",cloudphysics_io,cloudphysics_w106", ",") {
		if name != "arc_oltp" {
			require.NoError(t, os.Link(tiny, filepath.Join(dir, name+".csv.gz")))
		}
	}
	for _, set := range published {
		o, err := parseOptions(append([]string{"-traces", dir}, set...), io.Discard)
		require.NoError(t, err, "%v", set)
		require.NotEmpty(t, o.sources)
	}
}

// publishing returns what publishes two small sets below a copy of the repository's pages.
func publishing(t *testing.T) (root string, publishSets func(context.Context) (int, error)) {
	t.Helper()
	root = t.TempDir()
	for _, name := range append([]string{publish.Data}, publish.Pages...) {
		text, err := os.ReadFile(filepath.Join("../../..", name))
		require.NoError(t, err)
		file := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, text, 0o644))
	}
	set := func(percent string) []string {
		return []string{"-sizes", percent, "-budget", "8", "-stores", "ringcache,golang-lru",
			"-loads", "tiny"}
	}
	traces := writeTrace(t, "tiny")
	return root, func(ctx context.Context) (int, error) {
		var progress strings.Builder
		o, err := parseOptions([]string{"-publish", "-traces", traces, "-p", "1"}, io.Discard)
		require.NoError(t, err)
		err = o.publishAll(ctx, root, [][]string{set("10"), set("30")}, &progress)
		return strings.Count(progress.String(), "% hits"), err
	}
}

// Only what the data lacks is replayed, what no set has any more is dropped, and the page is made
// from all of it.
func TestPublishReplaysWhatIsMissing(t *testing.T) {
	root, publishSets := publishing(t)
	n, err := publishSets(t.Context())
	require.NoError(t, err)
	require.Equal(t, 4, n)
	file := filepath.Join(root, publish.HitData)
	rows, err := hitratio.ReadRows(file)
	require.NoError(t, err)
	require.Len(t, rows, 4)
	other := rows[0]
	other.Plan.Budget++
	require.NoError(t, hitratio.WriteRows(file, append(rows, other)))
	n, err = publishSets(t.Context())
	require.NoError(t, err)
	require.Zero(t, n)
	again, err := hitratio.ReadRows(file)
	require.NoError(t, err)
	require.Equal(t, rows, again)
	page, err := os.ReadFile(filepath.Join(root, "docs/hitratio.md"))
	require.NoError(t, err)
	require.Contains(t, string(page), "| 1 workloads at 10 and 30 % |")
}

// An interrupted run keeps what the data had and what was replayed, and the next one goes on.
func TestPublishGoesOn(t *testing.T) {
	root, publishSets := publishing(t)
	_, err := publishSets(t.Context())
	require.NoError(t, err)
	file := filepath.Join(root, publish.HitData)
	rows, err := hitratio.ReadRows(file)
	require.NoError(t, err)
	require.NoError(t, hitratio.WriteRows(file, rows[2:]))

	interrupted, stop := context.WithCancel(t.Context())
	stop()
	_, err = publishSets(interrupted)
	require.ErrorIs(t, err, context.Canceled)
	kept, err := hitratio.ReadRows(file)
	require.NoError(t, err)
	require.Equal(t, rows[2:], kept)
	n, err := publishSets(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, n)
}

func TestPublishWantsTraces(t *testing.T) {
	o, err := parseOptions([]string{"-publish", "-traces", ""}, io.Discard)
	require.NoError(t, err)
	err = o.publishAll(t.Context(), t.TempDir(), published, io.Discard)
	require.ErrorIs(t, err, trace.ErrNoTraces)
}
