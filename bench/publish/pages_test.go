package publish

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ringcache/ringcache/bench/hitpage"
	"github.com/ringcache/ringcache/bench/page"
	"github.com/stretchr/testify/require"
)

const root = "../.."

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

// The pages and the charts show what the data gives, and nothing else.
func TestPagesAreMadeFromTheData(t *testing.T) {
	run, err := Read(filepath.Join(root, Data))
	require.NoError(t, err)
	copied := t.TempDir()
	for _, name := range slices.Concat(Pages, []string{hitpage.File}) {
		file := filepath.Join(copied, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(readPage(t, name)), 0o644))
	}
	require.NoError(t, run.Update(copied))
	const advice = "run `go run ./cmd/compare -publish -from ../docs/data/bench.csv`"
	for _, name := range Pages {
		made, err := os.ReadFile(filepath.Join(copied, name))
		require.NoError(t, err)
		require.Equal(t, string(made), readPage(t, name), "%s: %s", name, advice)
		require.NotEmpty(t, page.Blocks(string(made)), name)
	}
	charts, err := os.ReadDir(filepath.Join(copied, chartDir))
	require.NoError(t, err)
	require.NotEmpty(t, charts)
	for _, c := range charts {
		made, err := os.ReadFile(filepath.Join(copied, chartDir, c.Name()))
		require.NoError(t, err)
		require.Equal(t, string(made), readPage(t, chartDir+"/"+c.Name()), advice)
	}
}

// A figure in the prose is one of those in the tables.
func TestProseHasNoFiguresOfItsOwn(t *testing.T) {
	run, err := Read(filepath.Join(root, Data))
	require.NoError(t, err)
	blocks, err := run.blocks(root)
	require.NoError(t, err)
	tables := run.Markdown() + blocks["summary"]
	for _, name := range Pages {
		require.Empty(t, page.Unfounded(readPage(t, name), tables), name)
	}
}

// Every block of the pages exists, and every question has its block.
func TestEveryQuestionIsShown(t *testing.T) {
	text := readPage(t, "docs/bench.md")
	for _, q := range questions {
		require.Contains(t, text, "<!-- figures: "+q.name+" -->")
	}
}
