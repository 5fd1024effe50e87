package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/bench/hitpage"
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

// publishing returns a publication of two small sets, whose data is in a temporary directory.
func publishing(t *testing.T) *publication {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(hitpage.File)), 0o755))
	set := func(percent string) []string {
		return []string{"-sizes", percent, "-budget", "8", "-stores", "ringcache,golang-lru"}
	}
	return &publication{root: root, traces: writeTrace(t, "tiny"), workers: 1,
		sets: [][]string{append(set("10"), "-loads", "tiny"), append(set("30"), "-loads", "tiny")}}
}

// Only what the data lacks is replayed, and what is to be renewed.
func TestPublishReplaysWhatIsMissing(t *testing.T) {
	p := publishing(t)
	replayed := func(ctx context.Context) (n int, err error) {
		var progress strings.Builder
		err = p.replay(ctx, &progress)
		return strings.Count(progress.String(), "% hits"), err
	}
	n, err := replayed(t.Context())
	require.NoError(t, err)
	require.Equal(t, 4, n)
	n, err = replayed(t.Context())
	require.NoError(t, err)
	require.Zero(t, n)
	data, err := hitpage.Read(filepath.Join(p.root, hitpage.File))
	require.NoError(t, err)
	require.Len(t, data, 4)

	p.renew = []string{"ringcache"}
	n, err = replayed(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, n)
}

// An interrupted run leaves the data as it was, and the next one goes on with what it has.
func TestPublishGoesOn(t *testing.T) {
	p := publishing(t)
	sets := p.sets
	p.sets = append(sets[:1:1], []string{"-loads", "unknown"})
	require.ErrorContains(t, p.replay(t.Context(), io.Discard), "unknown")
	require.NoFileExists(t, filepath.Join(p.root, hitpage.File))

	p.sets = sets
	var progress strings.Builder
	require.NoError(t, p.replay(t.Context(), &progress))
	require.Equal(t, 2, strings.Count(progress.String(), "% hits"))
	require.NoFileExists(t, filepath.Join(p.root, hitpage.File+".partial"))
}

func TestPublishWantsTraces(t *testing.T) {
	p := publishing(t)
	p.traces = ""
	require.ErrorIs(t, p.replay(t.Context(), io.Discard), trace.ErrNoTraces)
	_, err := parsePublication([]string{"-publish", "extra"}, io.Discard)
	require.ErrorContains(t, err, "extra")
}
