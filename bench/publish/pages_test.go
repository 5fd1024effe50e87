package publish

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

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
	for _, name := range slices.Concat(Pages, []string{hitData}) {
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
		require.Regexp(t, block, string(made), name)
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

var (
	// figure is what looks like a ratio or a measured time: 0.81, 16.4; not a version or a date.
	figure = regexp.MustCompile(`(?:^|[^\w./-])(\d+\.\d+|\d+ times)\b`)
	// notProse is code, and addresses of links.
	notProse = regexp.MustCompile("(?s)```.*?```|`[^`]*`|\\]\\([^)]*\\)")
	// versions are of programs; until 1.0 is about those of the project.
	versions = regexp.MustCompile(`(?:Go|Linux|fastcache|BigCache|freecache|ristretto|otter|theine|` +
		`go-cache|Until) \d+\.\d+(\.\d+)?`)
)

// figuresIn returns the figures of a page's prose.
func figuresIn(page string) (found []string) {
	page = block.ReplaceAllString(page, "")
	page = versions.ReplaceAllString(notProse.ReplaceAllString(page, "]"), "")
	for _, m := range figure.FindAllStringSubmatch(page, -1) {
		found = append(found, m[1])
	}
	return found
}

// A figure in the prose is one of those in the tables.
func TestProseHasNoFiguresOfItsOwn(t *testing.T) {
	run, err := Read(filepath.Join(root, Data))
	require.NoError(t, err)
	blocks, err := run.blocks(root)
	require.NoError(t, err)
	tables := run.Markdown() + blocks["summary"]
	for _, name := range Pages {
		for _, f := range figuresIn(readPage(t, name)) {
			known := regexp.MustCompile(`(?:^|[^\d.])` + regexp.QuoteMeta(f) + `(?:[^\d.]|$)`)
			require.Regexp(t, known, tables, "%s has the figure %s, which the data does not give", name, f)
		}
	}
}

func TestFiguresIn(t *testing.T) {
	page := "It takes 0.81 of the time (1.5 here), or 3 times as long.\n" +
		"Go 1.24 and fastcache 1.13.0, `x 0.5`, [a](b-0.7.md), 2026-11-25, 16 bytes.\n" +
		"<!-- figures: run -->\n0.99\n<!-- /figures -->\n"
	require.Equal(t, []string{"0.81", "1.5", "3 times"}, figuresIn(page))
}

func TestFill(t *testing.T) {
	const page = "a\n<!-- figures: x -->\nold\n<!-- /figures -->\nb\n" +
		"<!-- figures: y -->\n<!-- /figures -->\n"
	text, err := fill(page, map[string]string{"x": "new\n", "y": "2\n"})
	require.NoError(t, err)
	require.Equal(t, "a\n<!-- figures: x -->\nnew\n<!-- /figures -->\nb\n<!-- figures: y -->\n2\n"+
		"<!-- /figures -->\n", text)
	again, err := fill(text, map[string]string{"x": "new\n", "y": "2\n"})
	require.NoError(t, err)
	require.Equal(t, text, again)
	_, err = fill(page, map[string]string{"x": ""})
	require.ErrorContains(t, err, `"y"`)
}

// Every block of the pages exists, and every question has its block.
func TestEveryQuestionIsShown(t *testing.T) {
	page := readPage(t, "docs/bench.md")
	for _, q := range questions {
		require.Contains(t, page, "<!-- figures: "+q.name+" -->")
	}
}
