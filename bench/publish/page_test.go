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

// blocksOf returns the names of the blocks of a page.
func blocksOf(text string) (names []string) {
	for _, m := range block.FindAllStringSubmatch(text, -1) {
		names = append(names, m[2])
	}
	return names
}

var (
	// figure is what looks like a ratio or a measured time: 0.81, 16.4; not a version or a date.
	figure = regexp.MustCompile(`(?:^|[^\w./-])(\d+\.\d+|\d+ times)\b`)
	// notProse is code, and addresses of links.
	notProse = regexp.MustCompile("(?s)```.*?```|`[^`]*`|\\]\\([^)]*\\)")
	// versions are of programs; until 1.0 is about those of the project.
	versions = regexp.MustCompile(`(?:Go|Linux|fastcache|BigCache|freecache|ristretto|otter|theine|` +
		`go-cache|golang-lru|Until)\s\d+\.\d+(\.\d+)?`)
)

// figuresOf returns the figures of a page's prose.
func figuresOf(text string) (found []string) {
	text = block.ReplaceAllString(text, "")
	text = versions.ReplaceAllString(notProse.ReplaceAllString(text, "]"), "")
	for _, m := range figure.FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

// unfounded returns the figures of a page's prose that the tables do not have.
func unfounded(text, tables string) []string {
	return slices.DeleteFunc(figuresOf(text), func(f string) bool {
		known := regexp.MustCompile(`(?:^|[^\d.])` + regexp.QuoteMeta(f) + `(?:[^\d.]|$)`)
		return known.MatchString(tables)
	})
}

func TestFigures(t *testing.T) {
	page := "It takes 0.81 of the time (1.5 here), or 3 times as long.\n" +
		"Go 1.24 and fastcache\n1.13.0, `x 0.5`, [a](b-0.7.md), 2026-11-25, 16 bytes.\n" +
		"<!-- figures: run -->\n0.99\n<!-- /figures -->\n"
	require.Equal(t, []string{"0.81", "1.5", "3 times"}, figuresOf(page))
	require.Equal(t, []string{"0.81"}, unfounded(page, "| 1.5 | 3 times | 10.81 | 0.812 |"))
}

const text = "a\n<!-- figures: x -->\nold\n<!-- /figures -->\nb\n" +
	"<!-- figures: y -->\n<!-- /figures -->\n"

func TestFill(t *testing.T) {
	made, err := fill(text, map[string]string{"x": "new\n", "y": "2\n"})
	require.NoError(t, err)
	require.Equal(t, "a\n<!-- figures: x -->\nnew\n<!-- /figures -->\nb\n<!-- figures: y -->\n2\n"+
		"<!-- /figures -->\n", made)
	again, err := fill(made, map[string]string{"x": "new\n", "y": "2\n"})
	require.NoError(t, err)
	require.Equal(t, made, again)
	_, err = fill(text, map[string]string{"x": ""})
	require.ErrorContains(t, err, `"y"`)
	require.Equal(t, []string{"x", "y"}, blocksOf(text))
}

func TestFill_WrapsLongLines(t *testing.T) {
	word := strings.Repeat("w", 48)
	row := "| " + strings.Repeat(word+" ", 5) + "|\n"
	url := "![" + strings.Repeat("u", 2*maxLine) + "](x)\n"
	made, err := fill(text, map[string]string{
		"x": strings.Repeat(word+" ", 4) + "end\n- " + strings.Repeat(word+" ", 4) + "end\n",
		"y": row + url,
	})
	require.NoError(t, err)
	require.Equal(t, "a\n<!-- figures: x -->\n"+word+" "+word+"\n"+word+" "+word+"\nend\n"+
		"- "+word+" "+word+"\n  "+word+" "+word+"\n  end\n"+
		"<!-- /figures -->\nb\n<!-- figures: y -->\n"+row+url+"<!-- /figures -->\n", made)
}

func TestUpdate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.md")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	require.NoError(t, update(file, map[string]string{"x": "1\n", "y": "2\n"}))
	made, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(made), "y -->\n2\n<!--")
	require.ErrorContains(t, update(file, nil), `"x"`)
	require.ErrorIs(t, update(file+"b", nil), os.ErrNotExist)
}
