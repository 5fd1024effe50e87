package publish

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcache/ringcache/bench/hitratio"
)

const root = "../.."

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

func published(t *testing.T) (*Run, Hits) {
	t.Helper()
	run, err := Read(filepath.Join(root, Data))
	require.NoError(t, err)
	rows, err := hitratio.ReadRows(filepath.Join(root, HitData))
	require.NoError(t, err)
	return run, rows
}

// The pages and the charts show what the data gives, and nothing else.
func TestPagesAreMadeFromTheData(t *testing.T) {
	run, _ := published(t)
	copied := t.TempDir()
	for _, name := range slices.Concat(Pages, []string{HitData}) {
		file := filepath.Join(copied, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(readFile(t, name)), 0o644))
	}
	require.NoError(t, run.Update(copied))
	charts, err := os.ReadDir(filepath.Join(root, chartDir))
	require.NoError(t, err)
	made, err := os.ReadDir(filepath.Join(copied, chartDir))
	require.NoError(t, err)
	require.Len(t, charts, len(made), "charts that nothing makes")
	files := slices.Clone(Pages)
	for _, c := range made {
		files = append(files, chartDir+"/"+c.Name())
	}
	const advice = "run `go run ./cmd/compare -publish -from ../docs/data/bench.csv`"
	for _, name := range files {
		made, err := os.ReadFile(filepath.Join(copied, name))
		require.NoError(t, err)
		require.True(t, string(made) == readFile(t, name), "%s: %s", name, advice) // without both
	}
}

// Every block that is made is on a page.
func TestEveryBlockIsShown(t *testing.T) {
	run, hits := published(t)
	for _, pages := range [][]string{Pages[:2], Pages[2:]} {
		var shown []string
		for _, name := range pages {
			shown = append(shown, blocksOf(readFile(t, name))...)
		}
		for name := range run.blocks(pages[0], hits) {
			require.Contains(t, shown, name)
		}
	}
}

// A figure in the prose is one of those in the tables.
func TestProseHasNoFiguresOfItsOwn(t *testing.T) {
	run, hits := published(t)
	for _, name := range append(slices.Clone(Pages), "docs/peers.md", "docs/policy.md") {
		of := name
		if name == "docs/policy.md" {
			of = hitPage
		}
		tables := ""
		for _, text := range run.blocks(of, hits) {
			tables += text
		}
		require.Empty(t, unfounded(readFile(t, name), tables), name)
	}
}
